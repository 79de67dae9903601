// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCustomUpgrader_ends_on_SIGTERM runs the example of an operator with a runbook of its own, and
// terminates it as a kubelet does.
func TestCustomUpgrader_ends_on_SIGTERM(t *testing.T) {
	t.Parallel()
	example := filepath.Join(t.TempDir(), "custom-upgrader")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", example, ".")
	build.Dir = filepath.Join(repository, "docs", "examples", "custom-upgrader")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the example: %v\n%s", err, out)
	}
	server := startServer(t)
	server.openshift(t)
	server.apply(t, kustomized(t))
	kubeconfig, _ := server.account(t, home)
	operator := startProgram(t, example, kubeconfig)
	waitUntil(t, "the example is ready", func(ctx context.Context) bool {
		return operator.probe(ctx, "/readyz") == http.StatusOK
	})
	if err := operator.process.Stop(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	if status := operator.process.Err().Error(); !strings.Contains(status, "exit status 0") {
		t.Errorf("the example did not end on SIGTERM: %s", status)
	}
}

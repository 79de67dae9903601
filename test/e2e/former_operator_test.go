// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOperator_beside_the_former_one starts the operator while the former one runs, and after it was
// scaled to 0, as docs/migrate.md says. Then it scales the former one to 1 again.
func TestOperator_beside_the_former_one(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.openshift(t)
	s.apply(t, kustomized(t))
	s.kubectl(t, "apply", "--filename=testdata/former/deployment.yaml")
	upgrade := object(upgradeConfigKind, home, "cluster", map[string]any{"spec": map[string]any{
		"type": "OSD", "upgradeAt": "2030-01-31T01:00:00Z", "PDBForceDrainTimeout": int64(60),
		"desired": map[string]any{"version": "4.20.6", "channel": "stable-4.20"},
	}})
	if err := s.client.Create(t.Context(), upgrade); err != nil {
		t.Fatal(err)
	}
	kubeconfig, _ := s.account(t, home)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	printed, err := exec.CommandContext(ctx, program(t), "--kubeconfig="+kubeconfig, "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0").CombinedOutput()
	if err == nil || ctx.Err() != nil || !strings.Contains(string(printed), "docs/migrate.md") {
		t.Fatalf("the operator ended with %v, want an error that names docs/migrate.md:\n%s", err, printed)
	}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(upgrade), upgrade); err != nil {
		t.Fatal(err)
	}
	reason := s.kubectl(t, "--namespace="+home, "get", "upgrade", "cluster", `--output=jsonpath={.status.conditions[?(@.type=="Accepted")].reason}`)
	if reason != "OtherOperator" {
		t.Errorf("the condition Accepted has reason %q, want OtherOperator", reason)
	}
	if events := s.kubectl(t, "--namespace="+home, "get", "events"); !strings.Contains(events, "OtherOperator") {
		t.Errorf("no Event says so:\n%s", events)
	}

	s.kubectl(t, "--namespace=openshift-managed-upgrade-operator", "scale", "deployment/managed-upgrade-operator", "--replicas=0")
	r := startReplica(t, kubeconfig, "--leader-elect=false")
	waitUntil(t, "the operator is ready", func(ctx context.Context) bool { return r.probe(ctx, "/readyz") == http.StatusOK })

	s.kubectl(t, "--namespace=openshift-managed-upgrade-operator", "scale", "deployment/managed-upgrade-operator", "--replicas=1")
	waitUntil(t, "the operator has ended", func(ctx context.Context) bool { return r.probe(ctx, "/healthz") != http.StatusOK })
}

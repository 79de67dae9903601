// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
)

// Shells complete objects, versions, and namespaces, but not files.
func TestCompletion(t *testing.T) {
	t.Parallel()
	cluster := clitest.Offering(t, clitest.AnUpgrade(), clitest.AJob("night", clitest.FailedRecord()), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, clitest.HealthyPool("infra"))
	for line, want := range map[string]string{
		"pause ":                                 "upgrade/cluster",
		"retry upgradejob/":                      "upgradejob/night",
		"history u":                              "upgrade/cluster upgradejob/night",
		"history upgrade/cluster ":               "",
		"schedule --to 4.20.":                    "4.20.7 4.20.8 4.20.9",
		"start --to ":                            "4.20.7 4.20.8 4.20.9",
		"pre-checks --version 4.20.9":            "4.20.9",
		"watch --namespace sh":                   "shop",
		"status --node worker-0":                 "worker-0",
		"worker-nodes start --pool inf":          "infra",
		"pre-checks --version 4.20.8 --accept=x": "",
	} {
		words := strings.Split(line, " ")
		got := runOn(t, cluster, "", append([]string{"__complete"}, words...)...)
		values := strings.Split(strings.TrimSpace(got.Out), "\n")
		directive := values[len(values)-1]
		if diff := cmp.Diff(want, strings.Join(values[:len(values)-1], " ")); diff != "" || directive != ":4" {
			t.Errorf("%q (-want +got):\n%s%s", line, diff, directive)
		}
	}
	cluster.Err = func(string) error { return errors.New("down") }
	if got := runOn(t, cluster, "", "__complete", "schedule", "--to", ""); got.Out != ":4\n" {
		t.Errorf("without a cluster: %+v", got)
	}
}

// oc and kubectl run kubectl_complete-update with the words typed so far.
func TestCompletion_by_the_plugin_of_kubectl(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "kubectl-update"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "../../deploy/krew/kubectl_complete-update", "history", "")
	cmd.Env = []string{"PATH=" + folder + ":" + os.Getenv("PATH")}
	if printed, err := cmd.CombinedOutput(); err != nil || string(printed) != "__complete\nhistory\n\n" {
		t.Errorf("%v: it runs kubectl-update with %q", err, printed)
	}
}

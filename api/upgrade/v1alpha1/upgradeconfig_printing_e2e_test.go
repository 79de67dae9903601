// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
)

func TestPrinterColumns_show_the_progress(t *testing.T) {
	t.Parallel()
	object := upgradeConfig("printed")
	server.MustCreate(t, object)
	fresh := devtest.ParseTable(server.RunKubectl(t, "", "get", "upgrade", "printed"))
	want := [][]string{{"NAME", "VERSION", "PHASE", "STEP", "SINCE", "COMMENCED", "MESSAGE"}, {"printed", "4.4.6"}}
	if diff := cmp.Diff(want, fresh); diff != "" {
		t.Errorf("without a status (-want +got):\n%s", diff)
	}

	since := time.Now().Add(-3 * time.Hour).UTC().Format(time.RFC3339)
	inProgress := summary(map[string]any{"type": "Progressing", "reason": "AllWorkerNodesUpgraded", "message": "worker: 2 of 3 nodes are updated", "lastTransitionTime": since})
	inProgress["history"] = []any{historyRecord(map[string]any{"commenceTime": since}), map[string]any{"version": "4.4.5", "phase": "Upgraded"}}
	server.MustUpdateStatus(t, object, inProgress)
	want[1] = []string{"printed", "4.4.6", "Upgrading", "AllWorkerNodesUpgraded", "3h", "3h", "worker: 2 of 3 nodes are updated"}
	if diff := cmp.Diff(want, devtest.ParseTable(server.RunKubectl(t, "", "get", "upgradeconfigs.upgrade.managed.openshift.io", "printed"))); diff != "" {
		t.Errorf("while it runs (-want +got):\n%s", diff)
	}
	want[0], want[1] = append(want[0], "UPGRADE AT", "TYPE"), append(want[1], "2020-06-20T12:00:00Z", "OSD")
	if diff := cmp.Diff(want, devtest.ParseTable(server.RunKubectl(t, "", "get", "upgrade", "printed", "--output=wide"))); diff != "" {
		t.Errorf("all of it (-want +got):\n%s", diff)
	}
}

func TestExplain_describes_every_field(t *testing.T) {
	t.Parallel()
	server.CheckExplain(t, map[string]string{
		"upgrade.spec.type":                               "is the cluster upgrader",
		"upgrade.spec.upgradeAt":                          "for example 2020-05-01T12:00:00Z",
		"upgrade.spec.PDBForceDrainTimeout":               "how many minutes",
		"upgrade.spec.desired.version":                    "for example 4.4.6",
		"upgrade.spec.desired.channel":                    "for example fast-4.4",
		"upgrade.spec.desired.image":                      "by digest",
		"upgrade.spec.desired.acceptedRisks":              "risks of a conditional update",
		"upgrade.spec.capacityReservation":                "adds a node",
		"upgrade.spec.paused":                             "holds the upgrade",
		"upgrade.status.history":                          "newest first",
		"upgrade.status.history.phase":                    "Upgrading",
		"upgrade.status.history.conditions":               "in the order of the runbook",
		"upgrade.status.history.conditions.reason":        "CamelCase",
		"upgrade.status.conditions":                       "Accepted, Progressing, Succeeded, Slow, Ready, Reconciling, and Stalled",
		"upgrade.status.nextTime":                         "next change on its own",
		"upgrade.status.observedGeneration":               "generation of the spec",
		"upgrade.status.history.conditions.lastProbeTime": "at least every five minutes",
	})
}

func TestUpgradeAt_needs_no_quotes(t *testing.T) {
	t.Parallel()
	server.RunKubectl(t, `
apiVersion: upgrade.managed.openshift.io/v1alpha1
kind: UpgradeConfig
metadata: {name: unquoted}
spec:
  type: OSD
  upgradeAt: 2020-06-20T12:00:00Z
  PDBForceDrainTimeout: 120
  desired: {channel: fast-4.4, version: 4.4.6}
`, "apply", "--filename=-", "--validate=strict")
	if got := server.RunKubectl(t, "", "get", "upgrade", "unquoted", "--output=jsonpath={.spec.upgradeAt}"); got != "2020-06-20T12:00:00Z" {
		t.Errorf("the time became %q", got)
	}
}

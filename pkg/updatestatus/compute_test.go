// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

func decode(t testing.TB, value string) any {
	t.Helper()
	if value == "" {
		return nil
	}
	var decoded any
	if err := json.Unmarshal([]byte(value), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestCompute_Updating(t *testing.T) {
	t.Parallel()
	c := newCluster(4, 1)
	c.node("worker-1").Annotations["machineconfiguration.openshift.io/desiredConfig"] = rendered("worker", newRelease)
	c.node("worker-1").Annotations["machineconfiguration.openshift.io/state"] = "Working"
	status := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t)})
	got := map[string]string{}
	for _, name := range []string{"", "worker", "master", "unassigned"} {
		for _, condition := range []string{v1beta1.ConditionUpdatePending, v1beta1.ConditionUpdateActive} {
			got[name+" "+condition] = describe(section(status, name), condition)
		}
	}
	want := map[string]string{
		" UpdatePending":           "False ClusterVersionReconciled: ClusterVersion release has reconciled.",
		" UpdateActive":            "False ClusterVersionReconciled: ClusterVersion release has reconciled.",
		"worker UpdatePending":     "True WorkerDoesNotMatchRelease: At least one worker (worker-1, worker-2) does not match target release.",
		"worker UpdateActive":      "True WorkersUpdateActive: At least one worker (worker-1, worker-2) is being reconciled with release.",
		"master UpdatePending":     "no section",
		"master UpdateActive":      "no section",
		"unassigned UpdatePending": "no section",
		"unassigned UpdateActive":  "no section",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	progress := map[string]*v1beta1.Progress{"": {Total: 4, Updated: 4}, "worker": {Total: 3, Updated: 1, Updating: 1, Pending: 1}}
	for name, want := range progress {
		if diff := cmp.Diff(want, section(status, name).Progress); diff != "" {
			t.Errorf("progress of %q (-want +got):\n%s", name, diff)
		}
	}
}

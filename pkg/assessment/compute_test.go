// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/assessment"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// TestComputed_statuses judges clusters together with the insights of the built-in informers, as the
// controller and the CLI do.
func TestComputed_statuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cluster func() *fixture
		want    updatev1beta1.AssessmentState
		summary string
		remedy  string
		chains  [][]string
	}{
		"idle":        {idleCluster, updatev1beta1.StateIdle, "", "oc update pre-checks --version 4.20.8", nil},
		"progressing": {progressingCluster, progressing, "", "", nil},
		"stuck drain": {stuckDrainCluster, stuck, "Pool worker has made no progress", "oc -n shop scale deployment/api --replicas=3", [][]string{{
			"PodDisruptionBudget shop/api allows 0 disruptions (2 of 2 required)", "pod shop/api-7c9f4-x2k1p cannot be evicted",
			"drain of node worker-4 cannot finish, and nothing forces it", "pool worker waits: 1 node at a time",
		}}},
		"stuck operator": {stuckOperatorCluster, stuck, "Operator authentication has been failing", "oc -n openshift-authentication get pods -o wide", [][]string{{
			"ClusterOperator authentication is degraded (OAuthServerDeployment): 1 of 3 pods is not ready", "ClusterVersion is failing",
		}}},
		"paused": {
			func() *fixture { return pausedCluster(updatev1beta1.ReasonPaused) }, waiting, "Pool worker is paused",
			`oc patch machineconfigpool worker --type=merge -p '{"spec":{"paused":false}}'`,
			[][]string{{"MachineConfigPool worker is paused"}},
		},
		"node that does not come back": {func() *fixture { return nodeUnchanged("NodeRebooting", 45*time.Minute) }, progressing, "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := tc.cluster()
			status, in := f.build()
			got := *updatestatus.Compute(updatestatus.Input{
				Facts: in.Facts, Previous: updatev1beta1.UpdateStatusStatus{PastUpdates: status.PastUpdates},
			}).Assessment
			command := ""
			if len(got.Remedy.Commands) > 0 {
				command = got.Remedy.Commands[0]
			}
			if got.State != tc.want || got.Summary != tc.summary || command != tc.remedy {
				t.Errorf("%s: %q, %q; not %s: %q, %q", got.State, got.Summary, command, tc.want, tc.summary, tc.remedy)
			}
			if diff := cmp.Diff(tc.chains, chains(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if name == "paused" && len(got.Watch) > 0 {
				t.Errorf("watched, although it is the cause: %q", watchedMessages(got))
			}
		})
	}
}

// TestAssess_follow_up keeps an insight that needs attention after the update. "Nothing." would deny it.
func TestAssess_follow_up(t *testing.T) {
	t.Parallel()
	status, in := idleCluster().build()
	status.AfterUpdate = []updatev1beta1.RetainedInsight{{UpdateInformer: "etcd", Insight: updatev1beta1.Insight{UUID: "1", UID: "backup"}}}
	got := assessment.Assess(status, in)
	if got.State != updatev1beta1.StateIdle || got.ActionRequired || got.Remedy.Text != "Follow up on the last update:" {
		t.Errorf("%s, action required: %t: %+v", got.State, got.ActionRequired, got.Remedy)
	}
}

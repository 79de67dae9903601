// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// Hook steps without hooks and delayed-pool steps without pools are recorded but not published.
// Other skipped steps are published.
func TestFromRecord_leaves_out_steps_that_concern_nothing(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(noon)
	skipped := func(step, reason string) history.StepCondition {
		result := engine.Skip(reason, "skipped")
		return history.StepCondition{
			Type: step, Status: metav1.ConditionTrue, Reason: result.Reason(), Message: result.Message(), StartTime: &at, CompleteTime: &at, LastTransitionTime: &at,
		}
	}
	record := history.Record{Version: "4.4.6", Attempt: 1, UpgradeAt: &at, Conditions: []history.StepCondition{
		skipped("StartHooksDone", "NoHooks"), skipped("PoolsPaused", "NoDelayedPools"), skipped("ClusterSettled", "NotCommenced"),
	}}
	var steps []string
	for _, n := range notify.FromRecord(subject, record) {
		steps = append(steps, n.Step+" "+string(n.Class))
	}
	if diff := cmp.Diff([]string{"ClusterSettled Skipped"}, steps); diff != "" {
		t.Errorf("steps that are published (-want +got):\n%s", diff)
	}
}

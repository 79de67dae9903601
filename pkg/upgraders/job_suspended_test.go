// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"context"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// A suspension skips a requested upgrade unless it has commenced, even if the cache is behind.
func TestUpgradeCommenced_suspended(t *testing.T) {
	t.Parallel()
	requested := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{DesiredUpdate: &configv1.Update{Version: "4.4.6"}},
		Status: configv1.ClusterVersionStatus{
			Desired:          configv1.Release{Version: "4.4.5"},
			History:          []configv1.UpdateHistory{{Version: "4.4.5", State: configv1.CompletedUpdate}},
			AvailableUpdates: []configv1.Release{{Version: "4.4.6"}},
		},
	}
	accepted := requested.DeepCopy()
	accepted.Status.Desired.Version = "4.4.6"
	accepted.Status.History = []configv1.UpdateHistory{{Version: "4.4.6", State: configv1.PartialUpdate}, {Version: "4.4.5", State: configv1.CompletedUpdate}}
	freeze := &maintenancev1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "freeze"},
		Spec:       maintenancev1beta1.UpgradeSuspensionWindowSpec{Start: "2027-03-01T00:00:00Z", End: "2027-03-05T00:00:00Z", JobSelector: &maintenancev1beta1.LabelSelector{}},
	}
	job := &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "job"},
		Spec: maintenancev1beta1.UpgradeJobSpec{
			StartAfter: "2027-03-02T21:00:00Z", StartBefore: "2027-03-02T22:00:00Z", DesiredVersion: maintenancev1beta1.DesiredVersion{Version: "4.4.6"},
		},
	}
	for name, tc := range map[string]struct {
		live   *configv1.ClusterVersion
		reason string
	}{
		"requested":      {live: requested, reason: "Suspended"},
		"accepted since": {live: accepted, reason: engine.ReasonDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cached, live := simulation.NewFakeClient(t, requested, freeze), simulation.NewFakeClient(t, tc.live, freeze)
			at := metav1.NewTime(time.Date(2027, 3, 2, 21, 1, 0, 0, time.UTC))
			record := history.Record{Version: "4.4.6", RequestTime: &at, StartTime: &at, Conditions: []history.StepCondition{
				{Type: lockStep, Status: metav1.ConditionTrue, Reason: engine.ReasonDone, StartTime: &at, CompleteTime: &at},
				{Type: stepUpgradeCommenced, Status: metav1.ConditionFalse, Reason: "Requested", StartTime: &at, LastProbeTime: &at, LastTransitionTime: &at},
			}}
			s := newJobSteps(Deps{Client: cached, Live: live, Config: config.Default()}, job, record)
			e := engine.Engine{Clock: testingclock.NewFakePassiveClock(at.Add(time.Minute)), Save: func(context.Context, history.Record) error { return nil }}
			book := engine.Runbook{Steps: []engine.Step{s.LockAcquired(nil), s.UpgradeCommenced()}}
			record, _, err := e.Pass(t.Context(), book, record, engine.Constraints{})
			if got := record.Step(stepUpgradeCommenced); err != nil || got.Reason != tc.reason {
				t.Errorf("%s: %s, %v; want %s", got.Reason, got.Message, err, tc.reason)
			}
		})
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

func TestUpdate_took(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		update clusterstate.Update
		want   time.Duration
	}{
		"completed":           {clusterstate.Update{Completed: true, Start: start, End: start.Add(time.Hour)}, time.Hour},
		"not completed":       {clusterstate.Update{Start: start, End: start.Add(time.Hour)}, 0},
		"unknown start":       {clusterstate.Update{Completed: true, End: start}, 0},
		"unknown end":         {clusterstate.Update{Completed: true, Start: start}, 0},
		"ended when it began": {clusterstate.Update{Completed: true, Start: start, End: start}, 0},
	} {
		if got := tc.update.Duration(); got != tc.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// The first update in the history is the installation, regardless of its version.
func TestUpdateKind(t *testing.T) {
	t.Parallel()
	versions := []string{"odd", "4.20.6", "4.20.6", "4.20.7", "4.20.6", "4.19.9", "3.11.0"}
	want := []clusterstate.UpdateKind{
		clusterstate.UpdateOther, clusterstate.UpdateMigration, clusterstate.UpdateDowngrade, clusterstate.UpdatePatch, clusterstate.UpdateMinor,
		clusterstate.UpdateMajor, clusterstate.UpdateInstallation,
	}
	var v clusterstate.Version
	for _, version := range versions {
		v.Updates = append(v.Updates, clusterstate.Update{Release: clusterstate.Release{Version: version}})
	}
	for i := range versions {
		if got := v.UpdateKind(i); got != want[i] {
			t.Errorf("%s: got %s, want %s", versions[i], got, want[i])
		}
	}
	if got := (clusterstate.Version{}).UpdateKind(0); got != clusterstate.UpdateInstallation {
		t.Errorf("empty history: got %s", got)
	}
}

// The condition Progressing may contradict the history for a minute. Without a history, nothing is
// contradicted.
func TestVersion_Contradiction(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		progressing configv1.ConditionStatus
		states      []configv1.UpdateState
		after       time.Duration
		contradicts bool
	}{
		"no history":                        {configv1.ConditionFalse, nil, time.Hour, false},
		"installed, and progressing":        {configv1.ConditionTrue, []configv1.UpdateState{configv1.CompletedUpdate}, time.Hour, true},
		"installed, and just progressing":   {configv1.ConditionTrue, []configv1.UpdateState{configv1.CompletedUpdate}, time.Minute, false},
		"installed":                         {configv1.ConditionFalse, []configv1.UpdateState{configv1.CompletedUpdate}, time.Hour, false},
		"being installed":                   {configv1.ConditionTrue, []configv1.UpdateState{configv1.PartialUpdate}, time.Hour, false},
		"being installed, not progressing":  {configv1.ConditionFalse, []configv1.UpdateState{configv1.PartialUpdate, configv1.CompletedUpdate}, time.Hour, true},
		"being installed, it is not known":  {configv1.ConditionUnknown, []configv1.UpdateState{configv1.PartialUpdate}, time.Hour, false},
		"installed, of a clock that is off": {configv1.ConditionTrue, []configv1.UpdateState{configv1.CompletedUpdate}, -time.Hour, false},
	} {
		version := &configv1.ClusterVersion{}
		for _, state := range tc.states {
			version.Status.History = append(version.Status.History, configv1.UpdateHistory{Version: "4.20.5", State: state})
		}
		version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorProgressing, Status: tc.progressing, LastTransitionTime: metav1.NewTime(noon)}}
		if got := clusterstate.VersionOf(version).Contradiction(noon.Add(tc.after)); (got != "") != tc.contradicts {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

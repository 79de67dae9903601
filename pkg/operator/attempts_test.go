// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/nodekeeper"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestUpgradeConfigSource(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	start, now := metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon)
	for name, tc := range map[string]struct {
		change func(*upgradev1alpha1.UpgradeConfig)
		want   []time.Duration // PDB timeouts of the active attempts
	}{
		"committed":             {func(*upgradev1alpha1.UpgradeConfig) {}, []time.Duration{2 * time.Hour}},
		"without a PDB timeout": {func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.PDBForceDrainTimeout = nil }, []time.Duration{-1}},
		"a PDB timeout of 0":    {func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.PDBForceDrainTimeout = new(int32(0)) }, []time.Duration{0}},
		"without a history":     {func(c *upgradev1alpha1.UpgradeConfig) { c.Status.History = nil }, nil},
		"not started":           {func(c *upgradev1alpha1.UpgradeConfig) { c.Status.History[0].StartTime = nil }, nil},
		"not committed yet":     {func(c *upgradev1alpha1.UpgradeConfig) { c.Status.History[0].Conditions[0].CompleteTime = nil }, nil},
		"failed at the commit": {func(c *upgradev1alpha1.UpgradeConfig) {
			c.Status.History[0].Conditions[0].Status = metav1.ConditionFalse
		}, nil},
		"finished":           {func(c *upgradev1alpha1.UpgradeConfig) { c.Status.History[0].CompleteTime = &now }, nil},
		"of an unknown type": {func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.Type = "Other" }, nil},
		"behind a newer, pending": {func(c *upgradev1alpha1.UpgradeConfig) {
			c.Status.History = append([]history.Record{{Version: "4.20.7", Attempt: 1}}, c.Status.History...)
		}, []time.Duration{2 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := &upgradev1alpha1.UpgradeConfig{
				ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "upgrade", UID: "upgrade-1"},
				Spec:       upgradev1alpha1.UpgradeConfigSpec{Type: "OSD", PDBForceDrainTimeout: new(int32(120))},
				Status: upgradev1alpha1.UpgradeConfigStatus{History: []history.Record{{
					Version: "4.20.6", Attempt: 1, StartTime: &start,
					Conditions: []history.StepCondition{{
						Type: "Commence", Status: metav1.ConditionTrue, Reason: "Done", StartTime: &start, CompleteTime: &start,
					}},
				}}},
			}
			tc.change(cfg)
			runbook := func(cfg *upgradev1alpha1.UpgradeConfig) engine.Runbook {
				if cfg.Spec.Type != "OSD" {
					return engine.Runbook{}
				}
				return engine.Runbook{Steps: []engine.Step{{Name: "Commence", Commit: &engine.Commit{}}, {Name: "WorkersUpgraded"}}}
			}
			source := UpgradeConfigSource(manager.Kind{}, testingclock.NewFakePassiveClock(noon), runbook)
			got, err := source.Active(t.Context(), simulation.NewFakeClient(t, cfg))
			if err != nil {
				t.Fatal(err)
			}
			var want []nodekeeper.Attempt
			for _, timeout := range tc.want {
				want = append(want, nodekeeper.Attempt{
					Version: "4.20.6", Key: "upgrade.managed.openshift.io/UpgradeConfig/upgrade-1/4.20.6/1", StartTime: start.Time, PDBTimeout: timeout, PDBTimeoutField: "PDBForceDrainTimeout",
				})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("active attempts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpgradeJobSource(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	start, now := metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon)
	for name, tc := range map[string]struct {
		change func(*maintenancev1beta1.UpgradeJob)
		want   []time.Duration // PDB timeouts of the active attempts
	}{
		"committed":                  {func(*maintenancev1beta1.UpgradeJob) {}, []time.Duration{2 * time.Hour}},
		"drains are forced at once":  {func(j *maintenancev1beta1.UpgradeJob) { j.Spec.Config.ForceDrainAfter = "0s" }, []time.Duration{0}},
		"no drain is forced":         {func(j *maintenancev1beta1.UpgradeJob) { j.Spec.Config.ForceDrainAfter = "" }, nil},
		"a duration that is not one": {func(j *maintenancev1beta1.UpgradeJob) { j.Spec.Config.ForceDrainAfter = "1d" }, nil},
		"not committed yet":          {func(j *maintenancev1beta1.UpgradeJob) { j.Status.History[0].Conditions[0].CompleteTime = nil }, nil},
		"finished":                   {func(j *maintenancev1beta1.UpgradeJob) { j.Status.History[0].CompleteTime = &now }, nil},
		"not started":                {func(j *maintenancev1beta1.UpgradeJob) { j.Status.History[0].StartTime = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &maintenancev1beta1.UpgradeJob{
				ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "job", UID: "job-1"},
				Spec:       maintenancev1beta1.UpgradeJobSpec{Config: maintenancev1beta1.UpgradeJobConfig{ForceDrainAfter: "2h"}},
				Status: maintenancev1beta1.UpgradeJobStatus{History: []history.Record{{
					Version: "4.20.6", Attempt: 1, StartTime: &start,
					Conditions: []history.StepCondition{{
						Type: "Commence", Status: metav1.ConditionTrue, Reason: "Done", StartTime: &start, CompleteTime: &start,
					}},
				}}},
			}
			tc.change(job)
			runbook := func(*maintenancev1beta1.UpgradeJob, history.Record) engine.Runbook {
				return engine.Runbook{Steps: []engine.Step{{Name: "Commence", Commit: &engine.Commit{}}, {Name: "WorkersUpgraded"}}}
			}
			got, err := UpgradeJobSource(manager.Kind{}, testingclock.NewFakePassiveClock(noon), runbook).Active(t.Context(), simulation.NewFakeClient(t, job))
			if err != nil {
				t.Fatal(err)
			}
			var want []nodekeeper.Attempt
			for _, timeout := range tc.want {
				want = append(want, nodekeeper.Attempt{
					Version: "4.20.6", Key: "managedupgrade.appuio.io/UpgradeJob/job-1/4.20.6/1", StartTime: start.Time,
					PDBTimeout: timeout, PDBTimeoutField: "config.forceDrainAfter",
				})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("active attempts (-want +got):\n%s", diff)
			}
		})
	}
}

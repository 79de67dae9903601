// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const later = "4.20.7"

// newConfig returns an UpgradeConfig scheduled to start in an hour.
func newConfig() *upgradev1alpha1.UpgradeConfig {
	return &upgradev1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "weekly", UID: "uid"},
		Spec:       upgradev1alpha1.UpgradeConfigSpec{Type: "OSD", UpgradeAt: now.Add(time.Hour).Format(time.RFC3339), Desired: upgradev1alpha1.Update{Version: later}, PDBForceDrainTimeout: new(int32(60))},
	}
}

// newRecord returns the record of a second attempt that started 30 minutes ago and has the given steps.
func newRecord(steps ...history.StepCondition) history.Record {
	return history.Record{
		Version: later, Attempt: 2, Phase: history.PhaseUpgrading, StartTime: new(ago(30 * time.Minute)), UpgradeAt: new(ago(30 * time.Minute)),
		PrecedingVersion: newRelease, Conditions: steps,
	}
}

// stepDone returns the completed step A.
func stepDone() history.StepCondition {
	return history.StepCondition{Type: "A", Status: metav1.ConditionTrue, StartTime: new(ago(30 * time.Minute)), CompleteTime: new(ago(20 * time.Minute))}
}

// stepRunning returns step B while it runs.
func stepRunning() history.StepCondition {
	return history.StepCondition{Type: "B", Status: metav1.ConditionFalse, Message: "waiting", StartTime: new(ago(20 * time.Minute))}
}

// stepFailed returns step B after it failed.
func stepFailed() history.StepCondition {
	return history.StepCondition{Type: "B", Status: metav1.ConditionFalse, StartTime: new(ago(20 * time.Minute)), CompleteTime: new(ago(10 * time.Minute))}
}

func condition(name string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Reason: "R", Message: "m", LastTransitionTime: ago(time.Minute)}
}

func TestUpgrades(t *testing.T) {
	t.Parallel()
	failed := func(c *upgradev1alpha1.UpgradeConfig) {
		record := newRecord(stepDone(), stepFailed())
		record.Phase, record.CompleteTime, record.Message = history.PhaseFailed, new(ago(10*time.Minute)), "timed out"
		c.Status.History = []history.Record{record}
	}
	cases := map[string]struct {
		change func(*upgradev1alpha1.UpgradeConfig)
		others []*maintenancev1beta1.UpgradeJob
		want   []string
	}{
		"scheduled": {func(*upgradev1alpha1.UpgradeConfig) {}, nil, []string{"info UpgradeConfig/ops/weekly/1/Schedule UpgradeScheduled"}},
		"due": {func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.UpgradeAt = now.Format(time.RFC3339) }, nil, []string{
			"info UpgradeConfig/ops/weekly/1/Schedule UpgradeDue",
		}},
		"without a valid time": {func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.UpgradeAt = "noon" }, nil, nil},
		"paused": {func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.Paused = new(true) }, nil, []string{
			"info UpgradeConfig/ops/weekly/1/Paused UpgradePaused",
		}},
		"pre-check found problems": {func(c *upgradev1alpha1.UpgradeConfig) {
			c.Status.Conditions = []metav1.Condition{condition(history.ConditionPreCheckPassed, "False")}
		}, nil, []string{"info UpgradeConfig/ops/weekly/1/Schedule UpgradeScheduled", "warning UpgradeConfig/ops/weekly/1/PreCheck UpgradePreCheckFailed"}},
		"pre-check passed": {func(c *upgradev1alpha1.UpgradeConfig) {
			c.Status.Conditions = []metav1.Condition{condition(history.ConditionPreCheckPassed, "True")}
		}, nil, []string{"info UpgradeConfig/ops/weekly/1/Schedule UpgradeScheduled"}},
		"not accepted": {func(c *upgradev1alpha1.UpgradeConfig) {
			c.Status.Conditions = []metav1.Condition{condition(history.ConditionAccepted, "False")}
		}, nil, []string{"info UpgradeConfig/ops/weekly/1/Schedule UpgradeScheduled", "warning UpgradeConfig/ops/weekly/1/Accepted UpgradeNotAccepted"}},
		"installed":        {func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.Desired.Version = newRelease }, nil, nil},
		"installed before": {func(c *upgradev1alpha1.UpgradeConfig) { c.Spec.Desired.Version = oldRelease }, nil, nil},
		"failed, and an update without an upgrade began later": {func(c *upgradev1alpha1.UpgradeConfig) {
			failed(c)
			c.Status.History[0].StartTime, c.Status.History[0].CompleteTime = new(ago(9*time.Hour)), new(ago(8*time.Hour))
		}, nil, nil},
		"a step runs": {func(c *upgradev1alpha1.UpgradeConfig) {
			c.Status.History = []history.Record{newRecord(stepDone(), stepRunning())}
		}, nil, []string{
			"status UpgradeConfig/ops/weekly/2/B UpgradeStepRunning",
		}},
		"between two steps": {func(c *upgradev1alpha1.UpgradeConfig) { c.Status.History = []history.Record{newRecord(stepDone())} }, nil, []string{
			"status UpgradeConfig/ops/weekly/2/Started UpgradeInProgress",
		}},
		"a step is slow": {func(c *upgradev1alpha1.UpgradeConfig) {
			c.Status.History = []history.Record{newRecord(stepDone(), stepRunning())}
			c.Status.Conditions = []metav1.Condition{condition(history.ConditionSlow, "True")}
		}, nil, []string{"warning UpgradeConfig/ops/weekly/2/B UpgradeStepSlow"}},
		"a step is unknown": {func(c *upgradev1alpha1.UpgradeConfig) {
			step := stepRunning()
			step.Status = metav1.ConditionUnknown
			c.Status.History = []history.Record{newRecord(stepDone(), step)}
		}, nil, []string{"warning UpgradeConfig/ops/weekly/2/B UpgradeStepUnknown"}},
		"failed": {failed, nil, []string{"error UpgradeConfig/ops/weekly/2/B UpgradeFailed"}},
		"failed, and installed since": {func(c *upgradev1alpha1.UpgradeConfig) {
			failed(c)
			c.Spec.Desired.Version, c.Status.History[0].Version = newRelease, newRelease
		}, nil, nil},
		"failed, and another one started later": {failed, []*maintenancev1beta1.UpgradeJob{newJob(func(r *history.Record) { r.StartTime = new(ago(time.Minute)) })}, []string{
			"status UpgradeJob/ops/night/2/B UpgradeStepRunning",
		}},
		"failed, and another one started earlier": {failed, []*maintenancev1beta1.UpgradeJob{newJob(func(r *history.Record) { r.StartTime = new(ago(time.Hour)) })}, []string{
			"error UpgradeConfig/ops/weekly/2/B UpgradeFailed", "status UpgradeJob/ops/night/2/B UpgradeStepRunning",
		}},
		"record of another version": {func(c *upgradev1alpha1.UpgradeConfig) {
			failed(c)
			c.Status.History[0].Version = "4.20.1"
		}, nil, []string{"info UpgradeConfig/ops/weekly/1/Schedule UpgradeScheduled"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.complete()
			config := newConfig()
			tc.change(config)
			c.others = append(c.others, config)
			for _, job := range tc.others {
				c.others = append(c.others, job)
			}
			var got []string
			for _, f := range find(t, checks.InformerUpgrades, c.facts(t)) {
				got = append(got, levels[f.Level]+" "+f.UID()+" "+f.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUpgrades_after_a_rollback rolls the cluster back from the release of an upgrade. The upgrade to it is not installed
// then, although the history has its release.
func TestUpgrades_after_a_rollback(t *testing.T) {
	t.Parallel()
	failed := newRecord(stepDone(), stepFailed())
	failed.Version, failed.Phase, failed.CompleteTime = newRelease, history.PhaseFailed, new(ago(10*time.Minute))
	for want, records := range map[string][]history.Record{"UpgradeScheduled": nil, "UpgradeFailed": {failed}} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.complete()
			c.version.Status.History = append([]configv1.UpdateHistory{
				{State: configv1.CompletedUpdate, StartedTime: ago(50 * time.Minute), CompletionTime: new(ago(40 * time.Minute)), Version: oldRelease, Image: "quay.io/r@sha256:5"},
			}, c.version.Status.History...)
			config := newConfig()
			config.Spec.Desired.Version, config.Status.History = newRelease, records
			c.others = append(c.others, config)
			found := find(t, checks.InformerUpgrades, c.facts(t))
			if len(found) != 1 || found[0].Reason != want {
				t.Errorf("found %+v, want %s", found, want)
			}
		})
	}
}

// TestUpgrades_below_a_rollback rolls the cluster back. An upgrade to an even earlier release is still installed.
func TestUpgrades_below_a_rollback(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.complete()
	entry := func(version string, from time.Duration) configv1.UpdateHistory {
		return configv1.UpdateHistory{State: configv1.CompletedUpdate, StartedTime: ago(from), CompletionTime: new(ago(from - time.Minute)), Version: version}
	}
	c.version.Status.History = append(append([]configv1.UpdateHistory{entry(oldRelease, 5*time.Minute)}, c.version.Status.History...), entry("4.20.4", 1000*time.Hour))
	config := newConfig()
	config.Spec.Desired.Version = "4.20.4"
	c.others = append(c.others, config)
	if found := find(t, checks.InformerUpgrades, c.facts(t)); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

// newJob returns an UpgradeJob whose second attempt is at step B.
func newJob(change func(*history.Record)) *maintenancev1beta1.UpgradeJob {
	record := newRecord(stepDone(), stepRunning())
	change(&record)
	first := history.Record{Version: later, Attempt: 1, Phase: history.PhaseFailed, StartTime: new(ago(9 * time.Hour)), CompleteTime: new(ago(8 * time.Hour))}
	return &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "night", UID: "job"},
		Spec: maintenancev1beta1.UpgradeJobSpec{
			StartAfter: "2026-11-22T11:30:00Z", StartBefore: "2026-11-22T12:30:00Z", DesiredVersion: maintenancev1beta1.DesiredVersion{Version: later},
			Config: maintenancev1beta1.UpgradeJobConfig{ForceDrainAfter: "30m"},
		},
		Status: maintenancev1beta1.UpgradeJobStatus{
			History:            []history.Record{record, first},
			MachineConfigPools: []maintenancev1beta1.MachineConfigPoolStatus{{Name: "worker", State: "Paused", ReleaseAfter: new(ago(-time.Hour))}},
		},
	}
}

// TestUpgrades_of_jobs covers the states that UpgradeJobs share with UpgradeConfigs and those that only
// UpgradeJobs have.
func TestUpgrades_of_jobs(t *testing.T) {
	t.Parallel()
	status := func(name string, status metav1.ConditionStatus) func(*maintenancev1beta1.UpgradeJob) {
		return func(j *maintenancev1beta1.UpgradeJob) {
			j.Status.Conditions = []metav1.Condition{condition(name, status)}
		}
	}
	ended := func(phase history.Phase) func(*maintenancev1beta1.UpgradeJob) {
		return func(j *maintenancev1beta1.UpgradeJob) {
			record := newRecord(stepDone(), stepFailed())
			record.Phase, record.CompleteTime, record.Message = phase, new(ago(10*time.Minute)), "timed out"
			j.Status.History = []history.Record{record}
		}
	}
	record := func(steps ...history.StepCondition) func(*maintenancev1beta1.UpgradeJob) {
		return func(j *maintenancev1beta1.UpgradeJob) { j.Status.History = []history.Record{newRecord(steps...)} }
	}
	pending := func(j *maintenancev1beta1.UpgradeJob) { j.Status.History = nil }
	tonight := func(j *maintenancev1beta1.UpgradeJob) {
		j.Spec.StartAfter, j.Spec.StartBefore = "2026-11-22T22:00:00Z", "2026-11-22T23:00:00Z"
	}
	unknown := stepRunning()
	unknown.Status = metav1.ConditionUnknown
	for name, tc := range map[string]struct {
		changes []func(*maintenancev1beta1.UpgradeJob)
		want    []string
	}{
		"scheduled":                {[]func(*maintenancev1beta1.UpgradeJob){pending, tonight}, []string{"info 1/Schedule UpgradeScheduled"}},
		"due":                      {[]func(*maintenancev1beta1.UpgradeJob){pending}, []string{"info 1/Schedule UpgradeDue"}},
		"invalid window":           {[]func(*maintenancev1beta1.UpgradeJob){pending, func(j *maintenancev1beta1.UpgradeJob) { j.Spec.StartAfter = "noon" }}, nil},
		"pre-check found problems": {[]func(*maintenancev1beta1.UpgradeJob){pending, tonight, status(history.ConditionPreCheckPassed, "False")}, []string{"info 1/Schedule UpgradeScheduled", "warning 1/PreCheck UpgradePreCheckFailed"}},
		"not accepted":             {[]func(*maintenancev1beta1.UpgradeJob){pending, tonight, status(history.ConditionAccepted, "False")}, []string{"info 1/Schedule UpgradeScheduled", "warning 1/Accepted UpgradeNotAccepted"}},
		"installed":                {[]func(*maintenancev1beta1.UpgradeJob){pending, func(j *maintenancev1beta1.UpgradeJob) { j.Spec.DesiredVersion.Version = newRelease }}, nil},
		"a step runs":              {nil, []string{"status 2/B UpgradeStepRunning"}},
		"between two steps":        {[]func(*maintenancev1beta1.UpgradeJob){record(stepDone())}, []string{"status 2/Started UpgradeInProgress"}},
		"a step is slow":           {[]func(*maintenancev1beta1.UpgradeJob){status(history.ConditionSlow, "True")}, []string{"warning 2/B UpgradeStepSlow"}},
		"a step is unknown":        {[]func(*maintenancev1beta1.UpgradeJob){record(stepDone(), unknown)}, []string{"warning 2/B UpgradeStepUnknown"}},
		"failed":                   {[]func(*maintenancev1beta1.UpgradeJob){ended(history.PhaseFailed)}, []string{"error 2/B UpgradeFailed"}},
		"failed, and installed since": {[]func(*maintenancev1beta1.UpgradeJob){ended(history.PhaseFailed), func(j *maintenancev1beta1.UpgradeJob) {
			j.Spec.DesiredVersion.Version, j.Status.History[0].Version = newRelease, newRelease
		}}, nil},
		"upgraded": {[]func(*maintenancev1beta1.UpgradeJob){ended(history.PhaseUpgraded)}, nil},
		"skipped":  {[]func(*maintenancev1beta1.UpgradeJob){ended(history.PhaseSkipped)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.complete()
			job := newJob(func(*history.Record) {})
			for _, change := range tc.changes {
				change(job)
			}
			c.others = append(c.others, job)
			var got []string
			for _, f := range find(t, checks.InformerUpgrades, c.facts(t)) {
				got = append(got, levels[f.Level]+" "+strings.TrimPrefix(f.UID(), "UpgradeJob/ops/night/")+" "+f.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGather_reads_upgrades_in_one_shape(t *testing.T) {
	t.Parallel()
	c := newCluster()
	config, job := newConfig(), newJob(func(*history.Record) {})
	c.others = append(c.others, job, config)
	got := c.facts(t).Upgrades
	want := []checks.Upgrade{
		{
			Resource: checks.Resource{Group: "upgrade.managed.openshift.io", Kind: "UpgradeConfig", Namespace: "ops", Name: "weekly"}, APIVersion: "upgrade.managed.openshift.io/v1alpha1", UID: "uid",
			To: later, Phase: history.PhaseNew, Start: now.Add(time.Hour), PDBTimeout: time.Hour,
		},
		{
			Resource: checks.Resource{Group: "managedupgrade.appuio.io", Kind: "UpgradeJob", Namespace: "ops", Name: "night"}, APIVersion: "managedupgrade.appuio.io/v1beta1", UID: "job",
			To: later, From: newRelease, Phase: history.PhaseUpgrading, Start: now.Add(-30 * time.Minute), StartBefore: now.Add(30 * time.Minute), PDBTimeout: 30 * time.Minute,
			Record: &job.Status.History[0], Step: &job.Status.History[0].Conditions[1],
			Pools: []checks.UpgradePool{{Name: "worker", State: "Paused", ReleaseAfter: now.Add(time.Hour)}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("upgrades (-want +got):\n%s", diff)
	}
}

// Suspended starts of a schedule are skipped. The version of the next start is the one that would be
// installed now.
func TestGather_reads_schedules(t *testing.T) {
	t.Parallel()
	const minor = "4.21.0"
	start := func(in time.Duration, suspendedBy string) maintenancev1beta1.NextPossibleSchedule {
		return maintenancev1beta1.NextPossibleSchedule{Time: metav1.NewTime(now.Add(in)), SuspendedBy: suspendedBy}
	}
	found := func(in time.Duration, to string) []checks.Schedule {
		return []checks.Schedule{{
			Resource:   checks.Resource{Group: "managedupgrade.appuio.io", Kind: "UpgradeConfig", Namespace: "ops", Name: "weekly"},
			APIVersion: "managedupgrade.appuio.io/v1beta1", Start: now.Add(in), To: to,
		}}
	}
	for name, tc := range map[string]struct {
		change func(*maintenancev1beta1.UpgradeConfig)
		begin  func(*cluster) // change of the cluster; nil for none
		want   []checks.Schedule
	}{
		"next start": {func(*maintenancev1beta1.UpgradeConfig) {}, nil, found(time.Hour, minor)},
		"patch versions": {func(u *maintenancev1beta1.UpgradeConfig) {
			u.Spec.UpdatePolicy = maintenancev1beta1.UpdatePolicyPatchOnly
		}, nil, found(time.Hour, later)},
		"start that is past": {func(u *maintenancev1beta1.UpgradeConfig) {
			u.Status.NextPossibleSchedules[0] = start(0, "")
		}, nil, found(48*time.Hour, minor)},
		"start that is suspended": {func(u *maintenancev1beta1.UpgradeConfig) {
			u.Status.NextPossibleSchedules[0] = start(time.Hour, "UpgradeSuspensionWindow holidays")
		}, nil, found(48*time.Hour, minor)},
		"suspended":           {func(u *maintenancev1beta1.UpgradeConfig) { u.Spec.Schedule.Suspend = new(true) }, nil, nil},
		"never":               {func(u *maintenancev1beta1.UpgradeConfig) { u.Status.NextPossibleSchedules = nil }, nil, nil},
		"no update available": {func(*maintenancev1beta1.UpgradeConfig) {}, func(c *cluster) { c.version.Status.AvailableUpdates = nil }, found(time.Hour, "")},
		"update in progress":  {func(*maintenancev1beta1.UpgradeConfig) {}, func(c *cluster) { c.version.Status.History[0].State = configv1.PartialUpdate }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.complete()
			updateAll(c)
			c.version.Spec.Channel = "stable"
			c.version.Status.AvailableUpdates = []configv1.Release{{Version: later, Image: "image"}, {Version: minor, Image: "another"}}
			config := &maintenancev1beta1.UpgradeConfig{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "weekly"},
				Status:     maintenancev1beta1.UpgradeConfigStatus{NextPossibleSchedules: []maintenancev1beta1.NextPossibleSchedule{start(time.Hour, ""), start(48*time.Hour, "")}},
			}
			tc.change(config)
			if tc.begin != nil {
				tc.begin(c)
			}
			c.others = append(c.others, config)
			if diff := cmp.Diff(tc.want, c.facts(t).Schedules); diff != "" {
				t.Errorf("schedules (-want +got):\n%s", diff)
			}
		})
	}
}

// A cache lists objects in any order.
func TestSchedules_are_sorted(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.complete()
	updateAll(c)
	for _, name := range []string{"a", "b", "c"} {
		c.others = append(c.others, &maintenancev1beta1.UpgradeConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name},
			Status:     maintenancev1beta1.UpgradeConfigStatus{NextPossibleSchedules: []maintenancev1beta1.NextPossibleSchedule{{Time: ago(-time.Hour)}}},
		})
	}
	reversed := interceptor.NewClient(simulation.NewFakeClient(t, c.objects()...), interceptor.Funcs{
		List: func(ctx context.Context, r client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := r.List(ctx, list, opts...)
			if configs, is := list.(*maintenancev1beta1.UpgradeConfigList); is {
				slices.Reverse(configs.Items)
			}
			return err
		},
	})
	var got []string
	for _, schedule := range gather(t, reversed, nil).Schedules {
		got = append(got, schedule.Resource.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
		t.Errorf("schedules (-want +got):\n%s", diff)
	}
}

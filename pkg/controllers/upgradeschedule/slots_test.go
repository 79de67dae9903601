// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestJobJustInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config())
	w.RunTo(tuesday.Add(-time.Nanosecond))
	if len(w.starts) > 0 {
		t.Fatalf("an UpgradeJob exists before the start; %s", w.describe())
	}
	w.expectCondition("Scheduled", "True Scheduled")
	w.phase = ""
	w.RunTo(tuesday)
	cfg := w.get()
	want := &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "weekly-1804021200-" + hashOf(string(cfg.UID)),
			Labels:      map[string]string{"upgrade-config": "weekly", maintenancev1beta1.ConfigLabel: string(cfg.UID), maintenancev1beta1.SlotLabel: "1804021200"},
			Annotations: map[string]string{"note": "x"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "managedupgrade.appuio.io/v1beta1", Kind: "UpgradeConfig", Name: "weekly", UID: cfg.UID, Controller: new(true),
			}},
		},
		Spec: maintenancev1beta1.UpgradeJobSpec{
			StartAfter: "2027-03-02T21:00:00Z", StartBefore: "2027-03-02T22:00:00Z",
			DesiredVersion:                  maintenancev1beta1.DesiredVersion{Version: "4.20.6", Image: "quay.io/release@sha256:4206"},
			DesiredVersionCheckAvailability: new(true),
			Config:                          cfg.Spec.JobTemplate.Spec.Config,
		},
	}
	ignored := cmpopts.IgnoreFields(maintenancev1beta1.UpgradeJob{}, "TypeMeta", "ObjectMeta.UID", "ObjectMeta.ResourceVersion", "ObjectMeta.CreationTimestamp", "ObjectMeta.Generation")
	if diff := cmp.Diff(want, w.job(), ignored); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if cfg.Spec.JobTemplate.Spec.Config.UpgradeTimeout != "12h" {
		t.Error("the defaults of the definition are not applied, so the test shows little")
	}
	if got := w.lastSlot(); got != "03-02 21:00 JobCreated" || cfg.Status.LastSlot.Job != want.Name || cfg.Status.LastScheduledVersion != "4.20.6" || !cfg.Status.LastScheduledUpgrade.Equal(new(metav1.NewTime(tuesday))) {
		t.Errorf("the status is %+v", cfg.Status)
	}
	if diff := cmp.Diff([]string{"JobCreated"}, w.events()); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}

func TestRequestsOfASlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config(pinned("48h")))
	w.phase = ""
	w.RunTo(tuesday.Add(-48 * time.Hour).Add(24*time.Hour + time.Second)) // pinned at creation, because the start is less than 48h away
	want := []string{
		"get UpgradeConfig", "list UpgradeJobList", "create UpgradeJob", "create Event", "patch UpgradeConfig/status",
	}
	if diff := cmp.Diff(want, w.Requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	w.Requests = nil
	w.RunTo(tuesday.Add(-time.Second))
	if diff := cmp.Diff([]string(nil), w.Requests); diff != "" {
		t.Errorf("requests between pinning and start (-want +got):\n%s", diff)
	}
	w.RunFor(time.Hour)
	if diff := cmp.Diff([]string{"patch UpgradeConfig/status"}, w.Requests); diff != "" { // updates the next starts
		t.Errorf("requests at the start (-want +got):\n%s", diff)
	}
}

func TestPinnedVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config(pinned("4h")))
	w.RunTo(tuesday.Add(-4*time.Hour - time.Nanosecond))
	if len(w.starts) > 0 {
		t.Fatalf("an UpgradeJob exists before the version is pinned; %s", w.describe())
	}
	w.RunTo(tuesday.Add(-4 * time.Hour))
	w.offer("4.20.6", "4.20.7")
	w.RunFor(week)
	if diff := cmp.Diff([]string{"03-02 21:00 4.20.6"}, w.starts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPinLongerThanTheRhythm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config(pinned("200h")))
	w.RunTo(tuesday.Add(2 * week))
	// 200h are a week and 32h, so the slots of this week and the next are pinned on Monday.
	if diff := cmp.Diff([]string{"03-02 21:00 4.20.6", "03-09 21:00 4.20.6"}, w.starts[:2]); diff != "" || len(w.starts) != 2 {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := w.lastSlot(); got != "03-23 21:00 NoUpdate" {
		t.Errorf("the last slot is %q: each is served at its own pinning", got)
	}
}

func TestNotTooManyJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config(pinned("24h"), func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Cron = "* * * * *" }))
	w.phase = ""
	w.RunFor(time.Minute)
	if len(w.starts) != maxPending {
		t.Fatalf("%d UpgradeJobs", len(w.starts))
	}
	w.expectCondition("Scheduled", "False TooManyJobs")
	w.endJob(w.jobs()[0], maintenancev1beta1.PhaseSkipped)
	w.RunFor(time.Second)
	if len(w.starts) != maxPending+1 {
		t.Errorf("%d UpgradeJobs after one has ended", len(w.starts))
	}
	w.RunFor(80 * time.Minute)
	if got := w.get().Status.LastSlot; got.Result != ResultTooManyJobs {
		t.Errorf("the last slot is %+v", got)
	}
}

func TestOutage(t *testing.T) {
	t.Parallel()
	t.Run("until shortly before startBefore", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.outage(tuesday.Add(time.Hour - time.Second).Sub(w.Now()))
		w.RunFor(0)
		if diff := cmp.Diff([]string{"03-02 21:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("until startBefore", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.outage(tuesday.Add(time.Hour).Sub(w.Now()))
		w.RunFor(time.Minute)
		if got := w.lastSlot(); len(w.starts) > 0 || got != "03-02 21:00 Missed" {
			t.Errorf("the last slot is %q; %s", got, w.describe())
		}
		w.expectCondition("Scheduled", "True Scheduled")
		w.RunTo(tuesday.Add(week))
		if diff := cmp.Diff([]string{"03-09 21:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("with an UpgradeJob that the cache does not hold yet", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.phase = ""
		w.Writes = func(r simulation.Request) simulation.Fault {
			switch {
			case r.Verb == "create" && r.Kind == "UpgradeJob":
				return simulation.Fault{Lag: []string{"UpgradeJob"}, LagFor: 2 * time.Hour}
			case r.Verb == "patch" && r.Kind == "UpgradeConfig" && len(w.starts) > 0 && w.Now().Before(tuesday.Add(time.Hour)):
				return simulation.Fault{Outcome: simulation.Refuse} // the slot is not recorded until it has passed
			}
			return simulation.Fault{}
		}
		w.RunTo(tuesday.Add(time.Hour + 20*time.Minute))
		if got := w.lastSlot(); got != "03-02 21:00 JobCreated" {
			t.Errorf("the last slot is %q; %s", got, w.describe())
		}
		if diff := cmp.Diff([]string{"JobCreated"}, w.events()); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
	})
	t.Run("over three slots", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.outage(3 * week)
		w.RunTo(tuesday.Add(3 * week).Add(time.Minute))
		if diff := cmp.Diff([]string{"03-23 21:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]string{"SlotsMissed", "JobCreated"}, w.events()); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
		if got := w.counted(ResultMissed); got != 3 {
			t.Errorf("%v missed slots are counted", got)
		}
	})
	t.Run("over suspended slots", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Suspend = new(true) }))
		w.outage(3 * week)
		w.RunFor(time.Minute)
		if diff := cmp.Diff([]string{"SlotSuspended"}, w.events()); diff != "" || w.lastSlot() != "03-16 21:00 Suspended" {
			t.Errorf("the last slot is %q, Events (-want +got):\n%s", w.lastSlot(), diff)
		}
	})
	t.Run("of a year with a slot a minute", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Cron = "* * * * *" }))
		w.Process.Kill()
		w.RunFor(365 * 24 * time.Hour)
		w.Begin()
		w.RunFor(time.Second)
		if !slices.Contains(w.events(), "SlotsMissed") || len(w.starts) == 0 {
			t.Error(w.describe())
		}
	})
}

func TestSlotsCountFromTheCreation(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, tuesday.Add(30*time.Minute), config())
	w.RunFor(time.Hour)
	if len(w.starts) > 0 || len(w.events()) > 0 {
		t.Errorf("a slot before the creation has led to something; %s", w.describe())
	}
}

func TestSuspendField(t *testing.T) {
	t.Parallel()
	suspend := func(value bool) func(*maintenancev1beta1.UpgradeConfig) {
		return func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Suspend = &value }
	}
	w := newWorld(t, config(pinned("4h"), suspend(true)))
	w.RunTo(tuesday.Add(-time.Minute))
	w.expectCondition("Scheduled", "False Suspended")
	if got := w.get().Status.NextPossibleSchedules; len(got) != published || got[0].SuspendedBy != "schedule.suspend" {
		t.Errorf("the next starts are %+v", got)
	}
	w.RunTo(tuesday.Add(time.Minute))
	if got := w.lastSlot(); len(w.starts) > 0 || got != "03-02 21:00 Suspended" {
		t.Errorf("the last slot is %q", got)
	}
	if diff := cmp.Diff([]string{"SlotSuspended"}, w.events()); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
	w.edit(suspend(false)) // the slot has passed
	w.RunFor(time.Hour)
	if len(w.starts) > 0 {
		t.Errorf("a suspended slot was served; %s", w.describe())
	}
	w.edit(suspend(true))
	w.RunTo(tuesday.Add(week).Add(-time.Hour))
	w.edit(suspend(false)) // between pinning and start
	w.RunFor(time.Second)
	if diff := cmp.Diff([]string{"03-09 21:00 4.20.6"}, w.starts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSuspensionWindow(t *testing.T) {
	t.Parallel()
	all := &maintenancev1beta1.LabelSelector{}
	for name, tc := range map[string]struct {
		configs, jobs *maintenancev1beta1.LabelSelector
		suspended     bool
	}{
		"all configs": {configs: all, suspended: true},
		"all jobs":    {jobs: all, suspended: true},
		"its label":   {configs: &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, suspended: true},
		"jobs' label": {jobs: &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"upgrade-config": "weekly"}}, suspended: true},
		"the slot's label": {
			jobs:      &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{maintenancev1beta1.SlotLabel: "1804021200"}},
			suspended: true,
		},
		"a label that the template cannot set": {
			jobs: &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"managedupgrade.appuio.io/x": "y"}},
		},
		"another label": {configs: &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}},
		"none":          {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, config(func(cfg *maintenancev1beta1.UpgradeConfig) {
				cfg.Spec.JobTemplate.Metadata.Labels["managedupgrade.appuio.io/x"] = "y"
			}))
			w.Create(w.window("freeze", tuesday, tuesday.Add(time.Minute), tc.configs, tc.jobs))
			w.RunTo(tuesday.Add(time.Hour))
			want, slot := []string{"03-02 21:00 4.20.6"}, "03-02 21:00 JobCreated"
			if tc.suspended {
				want, slot = nil, "03-02 21:00 Suspended"
			}
			if diff := cmp.Diff(want, w.starts); diff != "" || w.lastSlot() != slot {
				t.Errorf("the last slot is %q, starts (-want +got):\n%s", w.lastSlot(), diff)
			}
		})
	}
}

func TestSuspensionWindow_changes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config())
	freeze := w.window("freeze", tuesday.Add(-24*time.Hour), tuesday.Add(24*time.Hour), &maintenancev1beta1.LabelSelector{}, nil)
	w.Create(freeze)
	w.RunFor(time.Second)
	w.expectCondition("Scheduled", "True Scheduled")
	if got := w.gauge("schedule_suspended"); got != 1 {
		t.Errorf("the metric is %v while the next start is suspended", got)
	}
	w.Delete(freeze)
	w.RunFor(time.Second)
	w.expectCondition("Scheduled", "True Scheduled")
	if got := w.gauge("schedule_next_timestamp_seconds"); got != 1804021200 {
		t.Errorf("the metric is %v", got)
	}
}

func TestNoUpdate(t *testing.T) {
	t.Parallel()
	t.Run("skips the slot", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.offer("4.20.5", "4.19.9")
		w.RunTo(tuesday.Add(time.Hour))
		if got := w.lastSlot(); len(w.starts) > 0 || got != "03-02 21:00 NoUpdate" {
			t.Errorf("the last slot is %q; %s", got, w.describe())
		}
		if diff := cmp.Diff([]string{"SlotSkipped"}, w.events()); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
	})
	t.Run("runs the hooks", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(func(cfg *maintenancev1beta1.UpgradeConfig) {
			cfg.Spec.WhenNoUpdate = maintenancev1beta1.NoUpdateRunHooks
		}))
		w.offer()
		w.RunTo(tuesday.Add(time.Hour))
		if diff := cmp.Diff([]string{"03-02 21:00"}, w.starts); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("except for a minor version", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(func(cfg *maintenancev1beta1.UpgradeConfig) {
			cfg.Spec.UpdatePolicy = maintenancev1beta1.UpdatePolicyPatchOnly
		}))
		w.offer("4.21.0")
		w.RunTo(tuesday.Add(time.Hour))
		w.expectCondition("Scheduled", "True Scheduled")
	})
}

func TestUpdatesUnknown(t *testing.T) {
	t.Parallel()
	t.Run("until the updates are retrieved", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.losesUpdates()
		w.RunTo(tuesday.Add(30 * time.Minute))
		w.expectCondition("Scheduled", "False UpdatesUnknown")
		w.offer("4.20.7")
		w.RunFor(time.Second)
		if diff := cmp.Diff([]string{"03-02 21:00 4.20.7"}, w.starts); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("while the schedule is edited", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.losesUpdates()
		w.RunTo(tuesday.Add(10 * time.Minute))
		w.edit(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Cron = "0 22 * * 2,4" })
		w.RunTo(tuesday.Add(30 * time.Minute))
		if got := w.get().Status.NextPossibleSchedules; len(got) != published || !got[0].Time.Time.Equal(tuesday) {
			t.Errorf("the next starts are %+v", got)
		}
		w.offer("4.20.7")
		w.RunFor(time.Second)
		if diff := cmp.Diff([]string{"03-02 21:00 4.20.7"}, w.starts); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("until the risks are evaluated", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.offer()
		w.offerConditionally("4.20.7", metav1.ConditionUnknown)
		w.RunTo(tuesday.Add(30 * time.Minute))
		w.expectCondition("Scheduled", "False UpdatesUnknown")
		w.offer("4.20.7")
		w.offerConditionally("4.20.7", metav1.ConditionTrue)
		w.RunFor(time.Second)
		if diff := cmp.Diff([]string{"03-02 21:00 4.20.7"}, w.starts); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("unless another version is available", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.offer("4.20.6")
		w.offerConditionally("4.20.7", metav1.ConditionUnknown)
		w.RunTo(tuesday)
		if diff := cmp.Diff([]string{"03-02 21:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("until startBefore", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(func(cfg *maintenancev1beta1.UpgradeConfig) {
			cfg.Spec.WhenNoUpdate = maintenancev1beta1.NoUpdateRunHooks
		}))
		w.losesUpdates()
		w.RunTo(tuesday.Add(time.Hour))
		last := w.get().Status.LastSlot
		if len(w.starts) > 0 || last == nil || last.Result != ResultUpdatesUnknown || last.Message != "the available updates are unknown: RemoteFailed: unreachable" {
			t.Errorf("the last slot is %+v", last)
		}
	})
}

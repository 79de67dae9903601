// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/kstatus"
)

func forbidden(message string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "managedupgrade.appuio.io", Resource: "upgradejobs"}, "weekly", errors.New(message))
}

func runNow(token string) func(*maintenancev1beta1.UpgradeConfig) {
	return func(cfg *maintenancev1beta1.UpgradeConfig) {
		cfg.Annotations = map[string]string{maintenancev1beta1.RunNowAnnotation: token}
	}
}

func suspended(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Suspend = new(true) }

func TestRunNow(t *testing.T) {
	t.Parallel()
	t.Run("overrides schedule.suspend", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(suspended))
		w.edit(runNow("1"))
		w.RunFor(time.Minute)
		if diff := cmp.Diff([]string{"03-01 12:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
		job := w.job()
		if got := w.get().Status; got.RunNow.Token != "1" || got.RunNow.Job != job.Name || got.LastSlot != nil || got.LastScheduledVersion != "4.20.6" {
			t.Errorf("the status is %+v", got)
		}
		if job.Spec.StartAfter != "2027-03-01T12:00:00Z" || job.Spec.StartBefore != "2027-03-01T13:00:00Z" {
			t.Errorf("the window is %+v", job.Spec)
		}
		w.RunFor(24 * time.Hour)
		if len(w.starts) != 1 {
			t.Errorf("a request was answered again: %q", w.starts)
		}
	})
	t.Run("overrides no window", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.Create(w.window("freeze", monday, monday.Add(time.Hour), &maintenancev1beta1.LabelSelector{}, nil))
		w.edit(runNow("1"))
		w.RunFor(2 * time.Hour)
		if got := w.get().Status.RunNow; len(w.starts) > 0 || got == nil || got.Token != "1" || got.Job != "" {
			t.Errorf("the answer is %+v; %s", got, w.describe())
		}
		if diff := cmp.Diff([]string{"RunNowRejected"}, w.events()); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
	})
	t.Run("without an update", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.offer()
		w.edit(runNow("1"))
		w.RunFor(time.Hour)
		w.offer("4.20.7")
		w.edit(runNow("2"))
		w.RunFor(time.Minute)
		if diff := cmp.Diff([]string{"03-01 13:00 4.20.7"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
	t.Run("with an earlier token again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(func(cfg *maintenancev1beta1.UpgradeConfig) {
			cfg.Spec.WhenNoUpdate = maintenancev1beta1.NoUpdateRunHooks
		}))
		for _, token := range []string{"a", "b", "a", "b"} {
			w.edit(runNow(token))
			w.RunFor(10 * time.Minute)
		}
		if diff := cmp.Diff([]string{"03-01 12:00 4.20.6", "03-01 12:10", "03-01 12:20", "03-01 12:30"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
	t.Run("with a token longer than the status holds", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.edit(runNow(strings.Repeat("x", 1<<10)))
		w.RunFor(time.Hour)
		if got := w.get().Status.RunNow; len(w.starts) != 1 || got == nil || len(got.Token) != 64 {
			t.Errorf("the answer is %+v; %s", got, w.describe())
		}
	})
	t.Run("at the second of a slot", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.RunTo(tuesday.Add(-time.Second))
		w.After(time.Second, func() { w.edit(runNow("1")) })
		w.RunFor(time.Minute)
		if len(w.starts) != 2 || len(w.jobs()) != 2 {
			t.Errorf("starts %q; %s", w.starts, w.describe())
		}
	})
}

func onUpdate(cron string) func(*maintenancev1beta1.UpgradeConfig) {
	return func(cfg *maintenancev1beta1.UpgradeConfig) {
		cfg.Spec.Schedule.Rhythm, cfg.Spec.Schedule.Cron = maintenancev1beta1.RhythmUpdateAvailable, cron
	}
}

func TestRhythmUpdateAvailable(t *testing.T) {
	t.Parallel()
	t.Run("starts after the pin", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(onUpdate(""), pinned("4h")))
		w.RunFor(time.Second)
		job := w.job()
		if diff := cmp.Diff([]string{"03-01 16:00 4.20.6"}, w.starts); diff != "" || job.Labels[maintenancev1beta1.SlotLabel] != "version-4.20.6" {
			t.Errorf("labels %v, starts (-want +got):\n%s", job.Labels, diff)
		}
		w.expectCondition("Scheduled", "False NoUpdate")
		w.phase = history.PhaseFailed
		w.RunFor(24 * time.Hour)
		w.offer("4.20.7")
		w.RunFor(24 * time.Hour)
		w.offer("4.20.6") // the later version is withdrawn
		w.RunFor(24 * time.Hour)
		if diff := cmp.Diff([]string{"03-01 16:00 4.20.6", "03-02 16:00 4.20.7"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
	t.Run("starts at the next cron time", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(onUpdate("0 22 * * *"), pinned("1h")))
		w.RunFor(time.Minute)
		if got := w.get().Status; len(w.starts) > 0 || got.PendingUpdate == nil || got.PendingUpdate.Version != "4.20.6" || !got.NextPossibleSchedules[0].Time.Equal(new(metav1.NewTime(tuesday.Add(-24*time.Hour)))) {
			t.Errorf("the status is %+v", got)
		}
		w.RunTo(tuesday.Add(24 * time.Hour))
		w.offer("4.20.7")
		w.RunFor(48 * time.Hour)
		if diff := cmp.Diff([]string{"03-01 21:00 4.20.6", "03-04 21:00 4.20.7"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
		if got := w.get().Status.PendingUpdate; got != nil {
			t.Errorf("the pending update is %+v", got)
		}
	})
	t.Run("waits for the end of a window", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(onUpdate("")))
		w.Create(w.window("freeze", monday.Add(-time.Hour), monday.Add(48*time.Hour+time.Second), &maintenancev1beta1.LabelSelector{}, nil))
		w.offer()
		w.RunFor(time.Minute)
		w.offer("4.20.6")
		w.RunFor(week)
		if diff := cmp.Diff([]string{"03-03 12:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
	t.Run("waits for the end of schedule.suspend", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(onUpdate(""), suspended))
		w.RunFor(48 * time.Hour)
		writes := len(w.Requests)
		w.RunFor(48 * time.Hour)
		if len(w.starts) > 0 || len(w.Requests) != writes {
			t.Errorf("requests %q; %s", w.Requests[writes:], w.describe())
		}
		w.edit(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Suspend = nil })
		w.RunFor(time.Minute)
		if diff := cmp.Diff([]string{"03-05 12:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
	t.Run("after an outage", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(onUpdate(""), pinned("4h")))
		w.Writes = simulation.Fault{Outcome: simulation.Refuse}.If(func(r simulation.Request) bool {
			return r.Verb == "create" && r.Kind == "UpgradeJob"
		})
		w.RunFor(time.Second)
		w.Writes = nil
		w.outage(week)
		w.RunFor(time.Minute)
		if diff := cmp.Diff([]string{"03-08 16:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
	t.Run("while the updates are not known", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(onUpdate("0 22 * * *")))
		w.RunFor(time.Minute)
		w.losesUpdates()
		w.RunFor(time.Hour)
		if got := w.get().Status.PendingUpdate; got == nil {
			t.Error("the pending update is forgotten")
		}
		w.offer("4.20.6")
		w.RunFor(24 * time.Hour)
		if diff := cmp.Diff([]string{"03-01 21:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
}

// A version is scheduled again if its UpgradeJob was suspended or rescheduled before it started.
func TestPostponedVersion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cron, reason string
		change       func(*world) // while the UpgradeJob waits for its start
		want         []string
	}{
		"by a window": {
			reason: maintenance.ReasonSuspended,
			change: func(w *world) {
				w.Create(w.window("freeze", monday, tuesday, &maintenancev1beta1.LabelSelector{}, nil))
			},
			want: []string{"03-01 16:00 4.20.6", "03-02 21:00 4.20.6"},
		},
		"by a window that begins after it was pinned for a slot": {
			cron: "0 22 * * *", reason: maintenance.ReasonSuspended,
			change: func(w *world) {
				w.Create(w.window("freeze", monday, tuesday, &maintenancev1beta1.LabelSelector{}, nil))
			},
			want: []string{"03-01 21:00 4.20.6", "03-02 21:00 4.20.6"},
		},
		"by another schedule": {
			cron: "0 22 * * *", reason: maintenance.ReasonRescheduled,
			change: func(w *world) {
				w.edit(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Cron = "0 23 * * *" })
			},
			want: []string{"03-01 21:00 4.20.6", "03-01 22:00 4.20.6"},
		},
		"for another reason": {
			reason: "Expired", change: func(*world) {}, want: []string{"03-01 16:00 4.20.6"},
		},
	} {
		for _, limit := range []int32{0, 3} {
			t.Run(fmt.Sprintf("%s, %d kept", name, limit), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, config(onUpdate(tc.cron), pinned("10h"), func(cfg *maintenancev1beta1.UpgradeConfig) {
					cfg.Spec.SuccessfulJobsHistoryLimit = &limit
					if tc.cron == "" {
						cfg.Spec.PinVersionWindow = new(maintenancev1beta1.Duration("4h"))
					}
				}))
				w.phase, w.reason = maintenancev1beta1.PhaseSkipped, tc.reason
				w.RunFor(time.Second)
				tc.change(w)
				w.RunTo(tuesday.Add(-24*time.Hour + 2*time.Minute)) // the first start has passed
				w.phase, w.reason = history.PhaseUpgraded, ""
				w.Restart()
				w.RunFor(week)
				if diff := cmp.Diff(tc.want, w.starts); diff != "" {
					t.Errorf("starts (-want +got):\n%s", diff)
				}
				if got := w.get().Status.PendingUpdate; got != nil {
					t.Errorf("the pending update is %+v", got)
				}
			})
		}
	}
}

// The update service is unreachable when an UpgradeJob turns out to be suspended. No UpgradeJob is kept.
func TestPostponedVersion_while_the_updates_are_unknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config(onUpdate(""), pinned("4h"), func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.SuccessfulJobsHistoryLimit = new(int32(0)) }))
	w.phase, w.reason = maintenancev1beta1.PhaseSkipped, maintenance.ReasonSuspended
	w.RunFor(time.Second)
	w.losesUpdates()
	w.RunFor(5 * time.Hour)
	w.phase, w.reason = history.PhaseUpgraded, ""
	w.offer("4.20.6")
	w.RunFor(week)
	if diff := cmp.Diff([]string{"03-01 16:00 4.20.6", "03-01 21:00 4.20.6"}, w.starts); diff != "" || len(w.jobs()) > 0 {
		t.Errorf("UpgradeJobs %q, starts (-want +got):\n%s", w.jobs(), diff)
	}
}

func TestEditedSchedule(t *testing.T) {
	t.Parallel()
	cron := func(cron string) func(*maintenancev1beta1.UpgradeConfig) {
		return func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Cron = cron }
	}
	t.Run("to a time that has passed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.RunTo(tuesday.Add(-time.Hour))
		w.edit(cron("30 20 * * 2")) // 30 minutes ago
		w.RunFor(24 * time.Hour)
		if len(w.starts) > 0 || len(w.events()) > 0 {
			t.Errorf("a start before the edit has led to something; %s", w.describe())
		}
		w.RunTo(tuesday.Add(week))
		if diff := cmp.Diff([]string{"03-09 19:30 4.20.6"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
	t.Run("with an UpgradeJob pending", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(pinned("24h")))
		w.RunTo(tuesday.Add(-12 * time.Hour))
		w.edit(cron("0 20 * * 2")) // two hours earlier on the same day
		w.RunTo(tuesday.Add(-6 * time.Hour))
		if diff := cmp.Diff([]string{"03-02 21:00 4.20.6", "03-02 19:00 4.20.6"}, w.starts); diff != "" { // the first one is skipped as Rescheduled
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
	t.Run("during an outage over the start", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		w.RunTo(tuesday.Add(-time.Minute))
		w.After(10*time.Minute, func() { w.edit(cron("0 22 * * 2,4")) })
		w.outage(20 * time.Minute)
		w.RunFor(time.Minute)
		if diff := cmp.Diff([]string{"03-02 21:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
	for name, broken := range map[string]func(*maintenancev1beta1.UpgradeConfig){
		"a cron that never runs": cron("0 22 30 2 *"),
		"an invalid label": func(cfg *maintenancev1beta1.UpgradeConfig) {
			cfg.Spec.JobTemplate.Metadata.Labels = map[string]string{"not a key": "x"}
		},
	} {
		t.Run("by "+name+", while a start waits", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, config())
			w.losesUpdates()
			w.RunTo(tuesday.Add(5 * time.Minute))
			valid := w.get().Spec
			w.edit(broken)
			w.RunFor(10 * time.Minute)
			w.offer("4.20.7")
			w.edit(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec = valid })
			w.RunFor(time.Minute)
			if diff := cmp.Diff([]string{"03-02 21:00 4.20.7"}, w.starts); diff != "" {
				t.Errorf("starts (-want +got):\n%s\n%s", diff, w.describe())
			}
		})
		t.Run("by "+name+", until a start that waited is over", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, config())
			w.losesUpdates()
			w.RunTo(tuesday.Add(5 * time.Minute))
			valid := w.get().Spec
			w.edit(broken)
			w.RunFor(2 * time.Hour)
			if got := w.get().Status.NextPossibleSchedules; len(got) > 0 {
				t.Errorf("starts of an invalid schedule: %+v", got)
			}
			w.offer("4.20.7")
			w.edit(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec = valid })
			w.RunFor(time.Hour)
			if len(w.starts) > 0 {
				t.Errorf("starts %q", w.starts)
			}
		})
	}
	t.Run("after it was invalid for weeks", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(cron("0 22 30 2 *")))
		w.RunFor(3 * week)
		w.edit(cron("0 22 * * 2"))
		w.RunFor(time.Hour)
		if diff := cmp.Diff([]string{"NeverRuns"}, w.events()); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
		w.RunFor(week)
		if len(w.starts) != 1 {
			t.Errorf("starts %q", w.starts)
		}
	})
}

func TestClockThatWasAhead(t *testing.T) {
	t.Parallel()
	ahead := func(w *world, d time.Duration) {
		w.Process.Clock().Step(d)
		w.Process.Enqueue(reconcile.Request{NamespacedName: weekly})
		w.RunFor(time.Minute)
		w.Process.Clock().Step(-d)
		w.Process.Enqueue(reconcile.Request{NamespacedName: weekly})
	}
	t.Run("over a slot", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config())
		ahead(w, 2*week)
		w.RunTo(tuesday.Add(time.Minute))
		if diff := cmp.Diff([]string{"03-02 21:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
	t.Run("over the pin of a slot", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(pinned("4h")))
		ahead(w, 32*time.Hour)
		w.RunTo(tuesday.Add(time.Minute))
		if diff := cmp.Diff([]string{"03-02 21:00 4.20.6"}, w.starts); diff != "" || w.lastSlot() != "03-02 21:00 JobCreated" {
			t.Errorf("the last slot is %q, starts (-want +got):\n%s", w.lastSlot(), diff)
		}
	})
	t.Run("when a version became available", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(onUpdate("0 22 * * *")))
		ahead(w, 2*week)
		w.RunTo(tuesday.Add(time.Minute))
		if len(w.starts) != 1 || w.starts[0] > "03-02" {
			t.Errorf("starts %q", w.starts)
		}
	})
}

func TestNotAccepted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit   func(*maintenancev1beta1.UpgradeConfig)
		reason string
	}{
		"a day that no month has": {func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Cron = "0 22 30 2 *" }, reasonNeverRuns},
		"labels": {func(cfg *maintenancev1beta1.UpgradeConfig) {
			cfg.Spec.JobTemplate.Metadata.Labels = map[string]string{"no key": "a"}
		}, reasonInvalidTemplate},
		"annotations": {func(cfg *maintenancev1beta1.UpgradeConfig) {
			cfg.Spec.JobTemplate.Metadata.Annotations = map[string]string{"a": strings.Repeat("x", 300<<10)}
		}, reasonInvalidTemplate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := config()
			other.Name = "other"
			w := newWorld(t, config(tc.edit), other)
			w.edit(runNow("1"))
			w.RunTo(tuesday.Add(time.Hour))
			if got := w.condition("Accepted"); !strings.HasPrefix(got, "False "+tc.reason) {
				t.Errorf("Accepted is %s", got)
			}
			if health, err := kstatus.Of(w.get()); err != nil || health.Status != "Failed" {
				t.Errorf("%+v, %v", health, err)
			}
			if got := w.events(); !slices.Contains(got, tc.reason) || !slices.Contains(got, "RunNowRejected") {
				t.Errorf("Events %q", got)
			}
			if len(w.starts) != 1 || !strings.HasPrefix(w.jobs()[0], "other-") {
				t.Errorf("the UpgradeJobs are %q", w.jobs())
			}
			if got := w.gauge("schedule_accepted"); got != 0 {
				t.Errorf("the metric is %v", got)
			}
		})
	}
}

// Pools may change until the start, so the decision is left to the UpgradeJob.
func TestInvalidPools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config(func(cfg *maintenancev1beta1.UpgradeConfig) {
		entry := maintenancev1beta1.MachineConfigPoolConfig{DelayUpgrade: maintenancev1beta1.DelayUpgrade{DelayMin: "1h", DelayMax: "2h"}}
		entry.MatchLabels.Labels = map[string]string{"pool": "night"}
		cfg.Spec.JobTemplate.Spec.Config = maintenancev1beta1.UpgradeJobConfig{MachineConfigPools: []maintenancev1beta1.MachineConfigPoolConfig{entry}}
	}))
	w.configProblem = "spec.config.machineConfigPools selects machine config pool master"
	w.Restart()
	w.RunTo(tuesday)
	w.expectCondition("Accepted", "False InvalidPools")
	if diff := cmp.Diff([]string{"InvalidPools", "JobCreated"}, w.events()); diff != "" || len(w.starts) != 1 {
		t.Errorf("starts %q, Events (-want +got):\n%s", w.starts, diff)
	}
	w.configProblem = ""
	w.Create(&mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "night"}})
	w.RunFor(time.Second)
	if got := w.condition("Accepted"); !strings.HasPrefix(got, "True") {
		t.Errorf("after pools have changed, Accepted is %s", got)
	}
	if health, err := kstatus.Of(w.get()); err != nil || health.Ready != "True" || health.Status != "Current" {
		t.Errorf("%+v, %v", health, err)
	}
}

func TestHistoryLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config(func(cfg *maintenancev1beta1.UpgradeConfig) {
		cfg.Spec.Schedule.Cron, cfg.Spec.WhenNoUpdate = "0 * * * *", maintenancev1beta1.NoUpdateRunHooks
		cfg.Spec.SuccessfulJobsHistoryLimit, cfg.Spec.FailedJobsHistoryLimit = new(int32(2)), new(int32(1))
	}))
	byHand := &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a-by-hand", Labels: map[string]string{maintenancev1beta1.ConfigLabel: string(w.get().UID), maintenancev1beta1.SlotLabel: "1"}},
		Spec:       maintenancev1beta1.UpgradeJobSpec{StartAfter: "2026-03-02T21:00:00Z", StartBefore: "2026-03-02T22:00:00Z"},
	}
	w.Create(byHand)
	w.endJob(byHand.Name, history.PhaseUpgraded)
	w.phase = ""
	w.RunFor(6*time.Hour + time.Minute)
	names := w.jobs()[1:]
	if len(names) != 6 {
		t.Fatalf("%q", names)
	}
	for i, phase := range []history.Phase{history.PhaseUpgraded, history.PhaseFailed, maintenancev1beta1.PhaseSkipped, history.PhaseUpgraded, history.PhaseFailed} {
		w.endJob(names[i], phase)
	}
	w.RunFor(time.Second)
	if diff := cmp.Diff([]string{"a-by-hand", names[2], names[3], names[4], names[5]}, w.jobs()); diff != "" {
		t.Errorf("UpgradeJobs (-want +got):\n%s", diff)
	}
	retried := simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: names[2]}, &maintenancev1beta1.UpgradeJob{})
	retried.Annotations = map[string]string{maintenancev1beta1.RetryAnnotation: "1"}
	w.Update(retried)
	w.endJob(names[5], history.PhaseUpgraded)
	w.RunFor(time.Second)
	if diff := cmp.Diff([]string{"a-by-hand", names[2], names[3], names[4], names[5]}, w.jobs()); diff != "" {
		t.Errorf("UpgradeJobs, one with a request (-want +got):\n%s", diff)
	}
}

// A retry is requested between the read and the deletion of an UpgradeJob.
func TestHistoryLimitAndRetryAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.FailedJobsHistoryLimit = new(int32(0)) }))
	w.phase = history.PhaseFailed
	w.Writes = func(r simulation.Request) simulation.Fault {
		if r.Verb == "delete" {
			job := simulation.Get(w.Harness, r.Key, &maintenancev1beta1.UpgradeJob{})
			job.Annotations = map[string]string{maintenancev1beta1.RetryAnnotation: "1"}
			w.Update(job)
		}
		return simulation.Fault{}
	}
	w.RunTo(tuesday.Add(time.Hour))
	if got := w.jobs(); len(got) != 1 {
		t.Errorf("UpgradeJobs %q, requests %q", got, w.Requests)
	}
	w.Writes = nil
	job := w.job()
	job.Status.Retry = &maintenancev1beta1.RetryStatus{Token: "1"}
	w.UpdateStatus(job)
	w.RunFor(time.Second)
	if got := w.jobs(); len(got) != 0 {
		t.Errorf("UpgradeJobs %q after the retry has ended", got)
	}
}

func TestRecreatedConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config(pinned("48h")))
	w.RunFor(time.Minute)
	w.Delete(w.get())
	w.Create(config(pinned("48h")))
	w.RunFor(time.Minute)
	if diff := cmp.Diff([]string{"03-02 21:00 4.20.6", "03-02 21:00 4.20.6"}, w.starts); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
}

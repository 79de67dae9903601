// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// threeDays schedules three slots close together, because simulating the hours in between takes
// time.
func threeDays(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Cron = "0 22 * * 2,4,5" }

// threeSlots sets up a served slot, a requested upgrade, a suspended slot, and a slot without an
// update.
func threeSlots(w *world) {
	w.After(tuesday.Add(24*time.Hour).Sub(w.Now()), func() {
		w.offer("4.20.7")
		w.edit(func(cfg *maintenancev1beta1.UpgradeConfig) {
			cfg.Annotations = map[string]string{maintenancev1beta1.RunNowAnnotation: "wednesday"}
		})
	})
	w.Create(w.window("freeze", tuesday.Add(48*time.Hour), tuesday.Add(49*time.Hour), &maintenancev1beta1.LabelSelector{}, nil))
	w.RunTo(tuesday.Add(74 * time.Hour))
}

var (
	startsOfThreeSlots  = []string{"03-02 21:00 4.20.6", "03-03 21:00 4.20.7"}
	eventsOfThreeSlots  = []string{"JobCreated", "JobCreated", "SlotSkipped", "SlotSuspended"}
	resultOfLastOfThree = "03-05 21:00 NoUpdate"
)

// expectThreeSlots checks the results of these slots.
func (w *world) expectThreeSlots() {
	w.TB.Helper()
	starts := slices.Clone(w.starts)
	for i := range starts { // a requested upgrade starts when the request is handled
		if len(starts[i]) > 6 && starts[i][:6] == "03-03 " {
			starts[i] = "03-03 21:00" + starts[i][11:]
		}
	}
	if diff := cmp.Diff(startsOfThreeSlots, starts); diff != "" {
		w.TB.Errorf("starts (-want +got):\n%s", diff)
	}
	events := w.events()
	slices.Sort(events)
	if diff := cmp.Diff(eventsOfThreeSlots, events); diff != "" {
		w.TB.Errorf("Events (-want +got):\n%s", diff)
	}
	if got := w.lastSlot(); got != resultOfLastOfThree {
		w.TB.Errorf("the last slot is %q", got)
	}
	if got := w.get().Status.RunNow; got == nil || got.Token != "wednesday" || got.Job == "" {
		w.TB.Errorf("the request is answered by %+v", got)
	}
}

func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	simulation.EachFault(t, 12, func(t *testing.T, plan simulation.FaultPlan) {
		t.Helper()
		w := newWorld(t)
		w.Writes = plan
		w.Create(config(pinned("4h"), threeDays))
		threeSlots(w)
		w.expectThreeSlots()
	})
}

// The upgrade to each version is created exactly once, wherever the operator crashes.
func TestCrashAtEveryWrite_when_updates_are_available(t *testing.T) {
	t.Parallel()
	simulation.EachFault(t, 8, func(t *testing.T, plan simulation.FaultPlan) {
		t.Helper()
		w := newWorld(t)
		w.Writes = plan
		w.Create(config(pinned("4h"), onUpdate("")))
		w.After(24*time.Hour, func() { w.offer("4.20.7") })
		w.After(48*time.Hour, func() { w.offer("4.20.7", "4.20.8") })
		w.RunFor(72 * time.Hour)
		want := []string{"4.20.6", "4.20.7", "4.20.8"}
		if diff := cmp.Diff(want, versionsOf(w.starts)); diff != "" {
			t.Errorf("UpgradeJobs (-want +got):\n%s", diff)
		}
	})
}

// versionsOf returns the versions of starts.
func versionsOf(starts []string) []string {
	var versions []string
	for _, start := range starts {
		fields := strings.Fields(start)
		versions = append(versions, fields[len(fields)-1])
	}
	return versions
}

// Slots without an update run their hooks exactly once. The oldest UpgradeJobs are deleted, and one
// of each kind is kept.
func TestCrashAtEveryWrite_without_updates(t *testing.T) {
	t.Parallel()
	simulation.EachFault(t, 12, func(t *testing.T, plan simulation.FaultPlan) {
		t.Helper()
		w := newWorld(t)
		w.Writes = plan
		w.offer()
		w.Create(config(threeDays, func(cfg *maintenancev1beta1.UpgradeConfig) {
			cfg.Spec.WhenNoUpdate = maintenancev1beta1.NoUpdateRunHooks
			cfg.Spec.SuccessfulJobsHistoryLimit = new(int32(1))
		}))
		w.RunTo(tuesday.Add(74 * time.Hour))
		if diff := cmp.Diff([]string{"03-02 21:00", "03-04 21:00", "03-05 21:00"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
		if kept := w.jobs(); len(kept) != 1 {
			t.Errorf("%d UpgradeJobs are kept, want 1; %s", len(kept), w.describe())
		}
	})
}

func TestCacheBehindAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, write := range simulation.Sample(13) {
		t.Run(strconv.Itoa(write), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Writes = simulation.Fault{Lag: []string{"UpgradeConfig", "UpgradeJob"}, LagFor: 20 * time.Minute}.If(func(r simulation.Request) bool {
				return r.Write == write
			})
			w.Create(config(pinned("4h"), threeDays))
			threeSlots(w)
			w.expectThreeSlots()
		})
	}
}

// Another client changes the UpgradeConfig just before the operator writes.
func TestChangeBeforeEveryWrite(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"edit": func(w *world) {
			w.edit(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.MaxUpgradeStartDelay = "2h" })
		},
		"deletion":    func(w *world) { w.Delete(w.get()) },
		"re-creation": func(w *world) { w.Delete(w.get()); w.Create(config()) },
		"suspension": func(w *world) {
			w.edit(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Suspend = new(true) })
		},
		"another weekday": func(w *world) {
			w.edit(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Cron = "0 22 * * 3" })
		},
		"one weekday more": func(w *world) {
			w.edit(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Cron = "0 22 * * 2,3" })
		},
	} {
		for write := 2; write <= 5; write++ { // the first one publishes the schedule
			t.Run(fmt.Sprintf("%s before write %d", name, write), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.Writes = func(r simulation.Request) simulation.Fault {
					if r.Write == write {
						change(w)
					}
					return simulation.Fault{}
				}
				w.Create(config())
				w.RunTo(tuesday.Add(26 * time.Hour))
				counts := map[string]int{}
				for _, start := range w.starts {
					counts[start]++
				}
				// A re-created UpgradeConfig is a new object with slots of its own.
				for start, n := range counts {
					if n > 1 && name != "re-creation" {
						t.Errorf("%d UpgradeJobs start at %s; %s", n, start, w.starts)
					}
				}
				if name == "edit" || name == "one weekday more" {
					if counts["03-02 21:00 4.20.6"] != 1 {
						t.Errorf("the slot was lost: %q", w.starts)
					}
				}
			})
		}
	}
}

func TestNameOfAJobIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config())
	taken := &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: jobName("weekly", tuesday, string(w.get().UID)),
			Labels: map[string]string{maintenancev1beta1.ConfigLabel: string(w.get().UID), maintenancev1beta1.SlotLabel: slotID(tuesday)},
		},
		Spec: maintenancev1beta1.UpgradeJobSpec{StartAfter: "2028-03-02T21:00:00Z", StartBefore: "2028-03-02T22:00:00Z"},
	}
	w.Create(taken)
	w.RunTo(tuesday)
	last := w.get().Status.LastSlot
	if last == nil || last.Result != ResultJobCreated || last.Job == taken.Name {
		t.Errorf("the last slot is %+v; %s", last, w.describe())
	}
}

// If the status is lost, the operator observes everything again.
func TestStatusIsLost(t *testing.T) {
	t.Parallel()
	for _, lost := range []time.Duration{time.Minute, 24 * time.Hour} {
		w := newWorld(t, config())
		w.RunTo(tuesday.Add(lost))
		cfg := w.get()
		cfg.Status = maintenancev1beta1.UpgradeConfigStatus{}
		w.UpdateStatus(cfg)
		w.RunFor(time.Hour)
		if diff := cmp.Diff([]string{"03-02 21:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
		if got := w.lastSlot(); lost < time.Hour && got != "03-02 21:00 JobCreated" {
			t.Errorf("the last slot is %q", got)
		}
	}
}

func TestRejectedJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config())
	quota := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "quota"}}
	w.Create(quota)
	w.Writes = simulation.Fault{Outcome: simulation.Refuse, Err: forbidden("exceeded quota")}.If(func(r simulation.Request) bool {
		return r.Verb == "create" && r.Kind == "UpgradeJob" && w.exists(quota)
	})
	w.RunTo(tuesday.Add(10 * time.Minute))
	if got, want := w.condition("Scheduled"), `False JobRejected: the API server rejects the UpgradeJob: creating UpgradeJob `+jobName("weekly", tuesday, string(w.get().UID))+`: upgradejobs.managedupgrade.appuio.io "weekly" is forbidden: exceeded quota`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Delete(quota)
	w.RunFor(40 * time.Minute)
	if diff := cmp.Diff([]string{"03-02 21:00 4.20.6"}, w.starts); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
}

func (w *world) exists(object client.Object) bool {
	return w.User.Get(w.TB.Context(), client.ObjectKeyFromObject(object), &corev1.ConfigMap{}) == nil
}

// A user cancels the upgrade while the cache does not yet show that the slot was handled, and the
// process no longer waits for the cache.
func TestDeletedJobIsNotCreatedAgainByAStaleCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config())
	w.phase = "" // it has not ended at its deletion
	cancelled := false
	w.Writes = func(r simulation.Request) simulation.Fault {
		if r.Verb != "patch" || len(w.starts) != 1 || cancelled {
			return simulation.Fault{}
		}
		cancelled = true
		w.After(2*time.Minute, func() { w.Delete(w.job()) })
		return simulation.Fault{Lag: []string{"UpgradeConfig"}, LagFor: 20 * time.Minute}
	}
	w.RunTo(tuesday.Add(2 * time.Hour))
	if got := w.lastSlot(); len(w.starts) != 1 || got != "03-02 21:00 JobCreated" || !cancelled {
		t.Errorf("the last slot is %q; %s", got, w.describe())
	}
}

// Two operators run at the same time. One creates an UpgradeJob between the other's list and
// create.
func TestTwoLeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config())
	w.Writes = simulation.Fault{Outcome: simulation.Stall, For: 10 * time.Second}.If(func(r simulation.Request) bool {
		return r.Verb == "create" && r.Kind == "UpgradeJob" && r.Life == 1
	})
	w.Begin()
	w.RunTo(tuesday.Add(time.Hour))
	if got := w.lastSlot(); len(w.starts) != 1 || got != "03-02 21:00 JobCreated" {
		t.Errorf("the last slot is %q; %s", got, w.describe())
	}
	if diff := cmp.Diff([]string{"JobCreated"}, w.events()); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}

// Two operators handle a request to upgrade now, one of them two seconds later.
func TestTwoLeaders_run_now(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config())
	w.Writes = simulation.Fault{Outcome: simulation.Stall, For: 10 * time.Second}.If(func(r simulation.Request) bool {
		return r.Verb == "create" && r.Kind == "UpgradeJob" && r.Life == 1
	})
	w.edit(runNow("1"))
	w.After(2*time.Second, w.Begin)
	w.RunFor(time.Hour)
	if got := w.get().Status.RunNow; len(w.jobs()) != 1 || got == nil || got.Job != w.jobs()[0] {
		t.Errorf("the request is answered by %+v; %s", got, w.describe())
	}
}

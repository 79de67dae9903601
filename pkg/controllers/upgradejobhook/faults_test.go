// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package upgradejobhook_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// waiting returns a hook on Start whose Job takes ten minutes.
func waiting(name string) *maintenancev1beta1.UpgradeJobHook {
	return newHook(name, takes10m, maintenancev1beta1.EventStart)
}

func TestEvent_keeps_the_hooks_with_which_it_began(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*world){
		"another hook is created": func(w *world) { w.Create(newHook("b", exits0, maintenancev1beta1.EventStart)) },
		"hook is deleted":         func(w *world) { w.Must(w.User.Delete(w.TB.Context(), w.hook("a"))) },
		"hook is replaced": func(w *world) {
			w.Delete(w.hook("a"))
			w.Create(newHook("a", exits1, maintenancev1beta1.EventStart))
		},
		"hook is edited": func(w *world) {
			hook := w.hook("a")
			hook.Spec.Events, hook.Spec.Template.Spec.Raw = []maintenancev1beta1.HookEvent{maintenancev1beta1.EventSkip}, []byte(exits1)
			w.Update(hook)
		},
		"upgrade is labeled otherwise": func(w *world) {
			job := simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: "upgrade"}, &maintenancev1beta1.UpgradeJob{})
			job.Labels = map[string]string{"other": "label"}
			w.Update(job)
		},
	} {
		for restarts, restart := range map[string]bool{"": false, " and the operator restarts": true} {
			t.Run(name+restarts, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, selecting(waiting("a"), map[string]string{"x": "y"}), newUpgrade("upgrade", map[string]string{"x": "y"}))
				w.Begin()
				w.RunFor(5 * time.Minute)
				if restart {
					w.Process.Kill()
				}
				act(w)
				if restart {
					w.RunFor(time.Minute)
					w.Begin()
				}
				record := w.runUntil("upgrade", time.Hour)
				if diff := cmp.Diff(map[string]int{"upgrade: Start/a": 1}, w.created); diff != "" {
					t.Errorf("created Jobs (-want +got):\n%s", diff)
				}
				w.expect(record, map[string]string{"StartHooksDone": "Done [Start/a Succeeded]"})
			})
		}
	}
}

func TestJob_of_a_hook(t *testing.T) {
	t.Parallel()
	withTTL := func(template, seconds string) string {
		return strings.Replace(template, `"backoffLimit":0`, `"backoffLimit":0,"ttlSecondsAfterFinished":`+seconds, 1)
	}
	for name, tc := range map[string]struct {
		hooks  []*maintenancev1beta1.UpgradeJobHook
		act    func(*world) // after five minutes
		before func(*world)
		steps  map[string]string
	}{
		"deleted while it runs": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{aborting(waiting("a"))},
			act:   func(w *world) { w.Must(w.User.Delete(w.TB.Context(), w.jobOf("Start/a"))) },
			steps: map[string]string{"StartHooksDone": "HookFailed [Start/a Failed]"},
		},
		"deleted after its time to live": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{newHook("a", withTTL(exits0, "0"), maintenancev1beta1.EventStart), waiting("b")},
			steps: map[string]string{"StartHooksDone": "Done [Start/a Succeeded] [Start/b Succeeded]"},
		},
		"removed with its finalizer": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{aborting(waiting("a"))},
			act: func(w *world) {
				job := w.jobOf("Start/a")
				job.Finalizers = nil
				w.Update(job)
				w.Delete(job)
			},
			steps: map[string]string{"StartHooksDone": "HookFailed [Start/a Failed]"},
		},
		"removed with its finalizer, failure ignored": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{waiting("a")},
			act: func(w *world) {
				job := w.jobOf("Start/a")
				job.Finalizers = nil
				w.Update(job)
				w.Delete(job)
			},
			steps: map[string]string{"StartHooksDone": "Done [Start/a Failed]"},
		},
		"never ends, before the commit": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{newHook("a", neverEnds, maintenancev1beta1.EventStart)},
			steps: map[string]string{"StartHooksDone": "WindowMissed [Start/a Running]"},
		},
		"never ends, after the commit": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{newHook("a", neverEnds, maintenancev1beta1.EventUpgradeComplete)},
			steps: map[string]string{
				"UpgradeCompleteHooksDone": "Done [UpgradeComplete/a Failed: TimedOut]",
			},
		},
		"never ends, after the commit, with Abort": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{aborting(newHook("a", neverEnds, maintenancev1beta1.EventUpgradeComplete))},
			steps: map[string]string{
				"UpgradeCompleteHooksDone": "HookFailed [UpgradeComplete/a Failed: TimedOut]",
			},
		},
		"never ends, after the end": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{aborting(newHook("a", neverEnds, maintenancev1beta1.EventFinish))},
			steps: map[string]string{
				"FinishHooksDone": "Done [Finish/a Failed: TimedOut]",
			},
		},
		"image that cannot be pulled": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{newHook("a", imageFails, maintenancev1beta1.EventStart)},
			steps: map[string]string{"StartHooksDone": "WindowMissed [Start/a Running: ImagePullBackOff]"},
		},
		"suspended": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{newHook("a", strings.Replace(exits0, `"backoffLimit":0`, `"suspend":true`, 1), maintenancev1beta1.EventStart)},
			steps: map[string]string{"StartHooksDone": "WindowMissed [Start/a Running]"},
		},
		"exceeds the quota of Jobs": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{aborting(newHook("a", exits0, maintenancev1beta1.EventStart))},
			before: func(w *world) {
				w.Plan = simulation.Fault{Outcome: simulation.Refuse, Err: apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "x", fmt.Errorf("exceeded quota: small"))}.If(func(r simulation.Request) bool {
					return r.Verb == "create" && r.Kind == "Job"
				})
			},
			steps: map[string]string{"StartHooksDone": "HookFailed [Start/a Failed: Forbidden]"},
		},
		"exceeds the quota of pods": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{newHook("a", exits0, maintenancev1beta1.EventStart)},
			before: func(w *world) {
				w.jobPlan = simulation.Fault{Outcome: simulation.Refuse, Err: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", fmt.Errorf("exceeded quota: small"))}.If(func(r simulation.Request) bool {
					return r.Verb == "create" && r.Kind == "Pod"
				})
			},
			steps: map[string]string{"StartHooksDone": "WindowMissed [Start/a Running]"},
		},
		"name is taken": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{aborting(newHook("a", exits0, maintenancev1beta1.EventStart))},
			before: func(w *world) {
				w.Plan = func(r simulation.Request) simulation.Fault {
					if r.Verb == "create" && r.Kind == "Job" {
						foreign := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.Key.Namespace, Name: r.Key.Name}}
						foreign.Spec.Suspend = new(true)
						foreign.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}}}
						_ = w.User.Create(w.TB.Context(), foreign)
					}
					return simulation.Fault{}
				}
			},
			steps: map[string]string{"StartHooksDone": "HookFailed [Start/a Failed: JobExists]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newUpgrade("upgrade", nil))
			for _, hook := range tc.hooks {
				w.Create(hook)
			}
			if tc.before != nil {
				tc.before(w)
			}
			w.Begin()
			w.RunFor(5 * time.Minute)
			if tc.act != nil {
				tc.act(w)
			}
			record := w.runUntil("upgrade", 30*time.Hour)
			w.expect(record, tc.steps)
			for item, n := range w.created {
				if n != 1 {
					t.Errorf("%s was created %d times", item, n)
				}
			}
		})
	}
}

// The outcome persists even if Jobs are deleted as soon as they end, and the operator is killed
// before or after any of its writes or gets no response to it.
func TestHooks_run_once_whatever_write_fails(t *testing.T) {
	t.Parallel()
	template := strings.Replace(exits0, `"backoffLimit":0`, `"backoffLimit":0,"ttlSecondsAfterFinished":0`, 1)
	want := map[string]int{
		"upgrade: Start/a": 1, "upgrade: Start/b": 1, "upgrade: Finish/b": 1, "upgrade: MachineConfigPoolUnpause/day/a": 1,
	}
	simulation.EachFault(t, 10, func(t *testing.T, plan simulation.FaultPlan) {
		t.Helper()
		w := newWorld(t, newHook("a", template, maintenancev1beta1.EventStart, maintenancev1beta1.EventMachineConfigPoolUnpause), newUpgrade("upgrade", nil))
		w.Create(next(newHook("b", template, maintenancev1beta1.EventStart, maintenancev1beta1.EventFinish)))
		w.pools = []string{"day"}
		w.Plan = func(r simulation.Request) simulation.Fault {
			planned := plan(r)
			if planned.Outcome != simulation.Serve {
				planned.Lag, planned.LagFor = []string{"Job", "UpgradeJobHook"}, 20*time.Second
			}
			return planned
		}
		w.Program.OnCrash = func() { w.After(time.Minute, w.Begin) }
		w.Begin()
		record := w.runUntil("upgrade", 20*time.Hour)
		if diff := cmp.Diff(want, w.created); diff != "" {
			t.Errorf("created Jobs (-want +got):\n%s", diff)
		}
		for _, c := range record.Conditions {
			if c.Reason != "Done" && c.Reason != "NoHooks" || strings.Contains(c.Message, "failed") {
				t.Errorf("step %s: %s: %s", c.Type, c.Reason, c.Message)
			}
		}
		w.RunFor(10 * time.Minute)
		if jobs := w.jobs(); len(jobs) > 0 {
			t.Errorf("%d Jobs are left although their time to live has passed: %s", len(jobs), jobs[0].Annotations)
		}
	})
}

func TestClaim_of_two_upgrades_at_once(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]bool{"": false, "with a crash at the claim": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, next(newHook("once", exits0, maintenancev1beta1.EventStart, maintenancev1beta1.EventFinish)))
			crashed := !crash
			w.Program.OnCrash = func() { w.After(time.Minute, w.Begin) }
			// Another running process claims the hook at the same time.
			other := w.Program
			other.Name, other.Plan = "other operator", nil
			_, err := w.Start(&other)
			w.Must(err)
			w.Begin()
			w.RunFor(time.Minute) // the hook is accepted, and its next patch claims it
			w.Plan = func(r simulation.Request) simulation.Fault {
				if r.Kind != "UpgradeJobHook" || r.Verb != "patch" || crashed {
					return simulation.Fault{}
				}
				crashed = true
				return simulation.Fault{Outcome: simulation.CrashAfter}
			}
			w.Create(newUpgrade("first", nil), newUpgrade("second", nil))
			w.runUntil("first", time.Hour)
			w.runUntil("second", time.Hour)
			by := w.hook("once").Status.ClaimedBy.Name
			items := 0
			for _, upgrade := range []string{"first", "second"} {
				for _, event := range []string{"Start", "Finish"} {
					ran := item(w.record(upgrade), event+"/once") != ""
					if ran != (upgrade == by) {
						t.Errorf("the hook, claimed by %s, ran on %s of %s: %t", by, event, upgrade, ran)
					}
					if ran {
						items++
					}
				}
			}
			if !crashed {
				t.Error("no crash")
			}
			if items != 2 {
				t.Errorf("%d runs, want 2", items)
			}
		})
	}
}

func TestClaim_of_another_client_between_read_and_write_counts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, next(newHook("once", exits0, maintenancev1beta1.EventStart)))
	w.Begin()
	w.RunFor(time.Minute) // the hook is accepted, and its next patch claims it
	w.Plan = func(r simulation.Request) simulation.Fault {
		if r.Kind == "UpgradeJobHook" && r.Verb == "patch" && w.hook("once").Status.ClaimedBy == nil {
			hook := w.hook("once")
			hook.Status.ClaimedBy = &maintenancev1beta1.HookClaim{Name: "other", UID: "other"}
			w.UpdateStatus(hook)
		}
		return simulation.Fault{}
	}
	w.Create(newUpgrade("upgrade", nil))
	record := w.runUntil("upgrade", time.Hour)
	if got := w.hook("once").Status.ClaimedBy.Name; got != "other" || len(w.created) != 0 {
		t.Errorf("claimed by %s, created %v", got, w.created)
	}
	w.expect(record, map[string]string{"StartHooksDone": "NoHooks"})
}

func TestUpgradeJob_that_is_deleted_releases_its_Jobs(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"with the operator": true, "while the operator is down": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newHook("a", neverEnds, maintenancev1beta1.EventStart), newUpgrade("upgrade", nil))
			w.Begin()
			w.RunFor(5 * time.Minute)
			if jobs := w.jobs(); len(jobs) != 1 || !slices.Contains(jobs[0].Finalizers, hooks.Finalizer) {
				t.Fatalf("no Job with the finalizer: %v", jobs)
			}
			if !running {
				w.Process.Kill()
			}
			w.Delete(newUpgrade("upgrade", nil))
			w.RunFor(5 * time.Minute)
			if !running {
				w.Begin()
				w.RunFor(5 * time.Minute)
			}
			if jobs := w.jobs(); len(jobs) != 0 {
				t.Errorf("%d Jobs are left, with finalizers %s", len(jobs), jobs[0].Finalizers)
			}
		})
	}
}

func TestWaitingHook_makes_no_request(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newHook("a", neverEnds, maintenancev1beta1.EventStart), newHook("idle", exits0, maintenancev1beta1.EventSkip), newUpgrade("upgrade", nil))
	w.Begin()
	w.RunFor(10 * time.Minute)
	before := len(w.Requests)
	w.RunFor(4 * time.Minute)
	if n := len(w.Requests) - before; n > 1 { // the heartbeat of the record
		t.Errorf("%d requests in four minutes", n)
	}
	w.runUntil("upgrade", 30*time.Hour)
}

// An event without a limit of its own ends after hooks.timeout, whatever the API server rejects.
func TestHook_that_cannot_be_started_fails_after_its_timeout(t *testing.T) {
	t.Parallel()
	const failed = "could not be started within hooks.timeout (1h): "
	down := apierrors.NewInternalError(errors.New("the webhook is down"))
	for name, tc := range map[string]struct {
		refused func(simulation.Request) bool
		event   maintenancev1beta1.HookEvent
		policy  func(*maintenancev1beta1.UpgradeJobHook) *maintenancev1beta1.UpgradeJobHook
		want    string // prefix of the step
	}{
		"Job is not created": {
			refused: func(r simulation.Request) bool { return r.Verb == "create" && r.Kind == "Job" },
			event:   maintenancev1beta1.EventFinish, want: "Done: 0 hooks completed, 2 failed and ignored: a (" + failed + "creating the Job of hook a: ",
		},
		"Job is not created, with Abort": {
			refused: func(r simulation.Request) bool { return r.Verb == "create" && r.Kind == "Job" },
			event:   maintenancev1beta1.EventUpgradeComplete, policy: aborting,
			want: "HookFailed: hook UpgradeComplete/a failed: " + failed + "creating the Job of hook a: ",
		},
		"Job of one hook is not created": {
			refused: func(r simulation.Request) bool {
				return r.Verb == "create" && r.Kind == "Job" && strings.HasPrefix(r.Key.Name, "b-")
			},
			event: maintenancev1beta1.EventSuccess, want: "Done: 1 hook completed, 1 failed and ignored: b (" + failed + "creating the Job of hook b: ",
		},
		"hook is not read": {
			refused: func(r simulation.Request) bool { return r.Verb == "get" && r.Kind == "UpgradeJobHook" && !r.Cached },
			event:   maintenancev1beta1.EventFinish, want: "Done: 0 hooks completed, 2 failed and ignored: a (" + failed + "getting UpgradeJobHook a: ",
		},
		"hook is not claimed": {
			refused: func(r simulation.Request) bool { return r.Verb == "patch" && r.Kind == "UpgradeJobHook" },
			event:   maintenancev1beta1.EventFinish, policy: next, want: "Done: 0 hooks completed, 2 failed and ignored: a (" + failed + "claiming UpgradeJobHook a: ",
		},
		"hooks are not listed": {
			refused: func(r simulation.Request) bool { return r.Verb == "list" && r.Kind == "UpgradeJobHookList" },
			event:   maintenancev1beta1.EventUpgradeComplete, want: "HookFailed: hook UpgradeComplete failed: its hooks " + failed + "listing UpgradeJobHooks: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newUpgrade("upgrade", nil))
			w.hold = time.Minute
			for _, hook := range []*maintenancev1beta1.UpgradeJobHook{newHook("a", exits0, tc.event), newHook("b", exits0, tc.event)} {
				if tc.policy != nil {
					hook = tc.policy(hook)
				}
				w.Create(hook)
			}
			w.Plan = func(r simulation.Request) simulation.Fault {
				if !tc.refused(r) || r.Time.Before(simulation.Start.Add(30*time.Second)) { // within the minute before it commences
					return simulation.Fault{}
				}
				return simulation.Fault{Outcome: simulation.Refuse, Err: down}
			}
			w.Begin()
			record := w.runUntil("upgrade", 5*time.Hour)
			c := record.Step(string(tc.event) + "HooksDone")
			if got := c.Reason + ": " + c.Message; !strings.HasPrefix(got, tc.want) {
				t.Errorf("got  %s\nwant %s…", got, tc.want)
			}
		})
	}
}

func TestHook_that_is_deleted_while_its_Job_runs_has_no_series(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waiting("a"), newUpgrade("upgrade", nil))
	w.Begin()
	w.RunFor(5 * time.Minute)
	if !w.hasSeries("a") {
		t.Fatal("the hook has no series while it exists")
	}
	w.Delete(w.hook("a"))
	record := w.runUntil("upgrade", time.Hour)
	w.expect(record, map[string]string{"StartHooksDone": "Done [Start/a Succeeded]"})
	if w.hasSeries("a") {
		t.Error("the series of the hook exist again")
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// requested returns a script whose committing step makes a request that can be withdrawn: Observe
// waits while the request exists, and Undo withdraws it.
func requested(t *testing.T) (w *world, s *script, isRequested *bool) {
	t.Helper()
	w, s = newScript(t, "First", "Commit", "Last")
	isRequested = new(bool)
	var calls []string
	commit := s.at("Commit")
	commit.Milestone = engine.MilestoneCommenced
	s.observed = func(_ ctx, run engine.Run) (engine.Result, error) {
		if *isRequested {
			return engine.Wait("Requested", "requested"), nil
		}
		return engine.Result{}, nil
	}
	commit.Commit.Withdraw = recordCall(&calls, "undo", engine.Done("withdrawn"), nil)
	s.setDo("Commit", func(engine.Run) (engine.Result, error) {
		if w.store.load().RequestTime == nil {
			t.Error("requested, and the record does not hold it")
		}
		*isRequested = true
		return engine.Wait("Requested", "requested"), nil
	})
	return w, s, isRequested
}

func (w *world) mustPass() {
	w.t.Helper()
	if _, err := w.pass(); err != nil {
		w.t.Fatal(err)
	}
}

func TestHold_withdraws_the_request_and_makes_it_again(t *testing.T) {
	t.Parallel()
	w, s, isRequested := requested(t)
	undone := 0
	s.at("Commit").Commit.Withdraw = func(_ ctx, run engine.Run) (engine.Result, error) {
		undone++
		*isRequested = false
		return engine.Done("withdrawn"), nil
	}
	w.mustPass()
	if !*isRequested || w.store.load().RequestTime == nil {
		t.Fatalf("not requested: %q", lines(w.store.load()))
	}

	s.Hold = "paused by an administrator"
	for range 3 {
		w.mustPass()
	}
	c := condition(w.store.load(), "Commit")
	if *isRequested || undone != 1 || w.store.load().RequestTime != nil {
		t.Errorf("held: requested %t, withdrawn %d times, the record holds a request at %v", *isRequested, undone, w.store.load().RequestTime)
	}
	if c.Reason != "Paused" || c.Message != "paused by an administrator; withdrawn" && c.Message != "paused by an administrator" {
		t.Errorf("held: %+v", c)
	}

	s.Hold = ""
	w.advance(w.clock.Now().Add(time.Second))
	w.mustPass()
	if !*isRequested || w.store.load().RequestTime == nil || condition(w.store.load(), "Commit").Reason != "Requested" {
		t.Errorf("the hold is lifted: requested %t, %q", *isRequested, lines(w.store.load()))
	}
}

func TestHold_withdraws(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		results []engine.Result // of Withdraw, in order
		err     error           // of the first
		reasons []string        // of the step after each pass
		calls   int
	}{
		"at once":                               {results: []engine.Result{engine.Done("withdrawn")}, reasons: []string{"Paused", "Paused"}, calls: 1},
		"nothing, it is too late":               {results: []engine.Result{engine.Skip("Commenced", "too late")}, reasons: []string{"Paused", "Paused"}, calls: 1},
		"after a conflict":                      {results: []engine.Result{engine.WaitFor(time.Second, "Retrying", "conflict"), engine.Done("withdrawn")}, reasons: []string{"Retrying", "Paused"}, calls: 2},
		"after an error":                        {results: []engine.Result{{}, engine.Done("withdrawn")}, err: errNoAnswer, reasons: []string{"CannotObserve", "Paused"}, calls: 2},
		"in a second attempt without a message": {results: []engine.Result{{}, engine.Done("withdrawn")}, reasons: []string{"Paused", "Paused"}, calls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, _ := requested(t)
			calls := 0
			s.at("Commit").Commit.Withdraw = func(ctx, engine.Run) (engine.Result, error) {
				calls++
				if calls == 1 {
					return tc.results[0], tc.err
				}
				return tc.results[min(calls, len(tc.results))-1], nil
			}
			w.mustPass()
			s.Hold = "paused"
			var reasons []string
			for range 2 {
				w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
				w.mustPass()
				reasons = append(reasons, condition(w.store.load(), "Commit").Reason)
			}
			if diff := cmp.Diff(tc.reasons, reasons); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			if calls != tc.calls || w.store.load().RequestTime != nil {
				t.Errorf("%d withdrawals, want %d; the record holds a request at %v", calls, tc.calls, w.store.load().RequestTime)
			}
		})
	}
}

// A request of another client is not withdrawn.
func TestHold_leaves_alone_what_was_never_requested(t *testing.T) {
	t.Parallel()
	w, s, isRequested := requested(t)
	*isRequested = true
	s.at("Commit").Commit.Withdraw = func(ctx, engine.Run) (engine.Result, error) {
		t.Error("withdrawn, and this upgrade has requested nothing")
		return engine.Done(""), nil
	}
	w.mustPass()
	s.Hold = "paused"
	w.mustPass()
	if got := lines(w.store.load())[1]; got != "Commit False Paused …" {
		t.Errorf("held: %q", got)
	}
}

func TestCleanup_knows_whether_the_upgrade_was_requested(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before func(w *world, s *script)
		want   bool
	}{
		"it was": {func(*world, *script) {}, true},
		"it was, and the process crashed while it requested": {func(w *world, s *script) {
			w.atCall = func(call int) moment {
				if call == 2 {
					return beforeActing
				}
				return never
			}
		}, true},
		"a gate was closed": {func(w *world, s *script) {
			s.at("Commit").Gates = []engine.Gate{{Name: "Gate", Check: recordCall(new([]string), "gate", engine.Wait("Shut", "shut"), nil)}}
		}, false},
		"the step before waits": {func(w *world, s *script) { s.setResult("First", engine.Wait("NotYet", "a while")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, _ := requested(t)
			tc.before(w, s)
			s.CommitBy = noon.Add(10 * time.Minute)
			var got []bool
			s.setDo("FirstCleaned", func(run engine.Run) (engine.Result, error) {
				got = append(got, run.Requested)
				return engine.Done("clean"), nil
			})
			w.run()
			if diff := cmp.Diff([]bool{tc.want}, got); diff != "" {
				t.Errorf("requested (-want +got):\n%s\n%q", diff, lines(w.store.load()))
			}
		})
	}
}

func TestCleanup_knows_whether_the_upgrade_has_committed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"First": false, "Commit": false, "Last": true} {
		t.Run(name+" fails", func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit", "Last")
			s.setResult(name, engine.Fail("Never", "never"))
			var got []bool
			s.setDo("FirstCleaned", func(run engine.Run) (engine.Result, error) {
				got = append(got, run.Committed)
				return engine.Done("clean"), nil
			})
			w.run()
			if diff := cmp.Diff([]bool{want}, got); diff != "" {
				t.Errorf("committed (-want +got):\n%s\n%q", diff, lines(w.store.load()))
			}
		})
	}
}

// Another client starts the same update: the upgrade is adopted in every waiting step, also if its
// window closes, it is held, or it is cancelled.
func TestCommit_by_another_client(t *testing.T) {
	t.Parallel()
	want := []string{"First True AlreadyReached", "Second True AlreadyReached", "Commit True AlreadyReached", "ControlPlane True AlreadyReached", "Last True Done"}
	for name, tc := range map[string]struct {
		constraints func(s *script)
		observe     bool
	}{
		"at once":                {func(*script) {}, true},
		"when the window closes": {func(s *script) { s.CommitBy = noon.Add(time.Minute) }, false},
		"when it is held":        {func(s *script) { s.Hold = "paused" }, false},
		"when it is cancelled":   {func(s *script) { s.Cancel = "deleted" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Second", "Commit", "ControlPlane", "Last")
			s.setResult("First", engine.Wait("Unhealthy", "etcd is degraded"))
			s.at("ControlPlane").Milestone = engine.MilestoneControlPlaneUpgraded
			commenced := false
			if tc.observe {
				s.observed = func(ctx, engine.Run) (engine.Result, error) {
					if commenced {
						return engine.Done("accepted"), nil
					}
					return engine.Result{}, nil
				}
			}
			s.reached["Commit"] = func() (bool, error) { return commenced, t.Context().Err() }
			s.setReached("ControlPlane", true, nil)
			w.mustPass()
			if got := lines(w.store.load()); !cmp.Equal(got, []string{"First False Unhealthy …"}) {
				t.Fatalf("before: %q", got)
			}
			if phase, err := engine.CurrentPhase(t.Context(), clock.RealClock{}, s.book(), w.store.load()); phase != engine.PhaseOpen || err != nil {
				t.Fatalf("phase %d, %v", phase, err)
			}
			commenced = true
			if phase, err := engine.CurrentPhase(t.Context(), clock.RealClock{}, s.book(), w.store.load()); phase != engine.PhaseCommitted || err != nil {
				t.Errorf("the cluster is past it: phase %d, %v", phase, err)
			}
			tc.constraints(s)
			w.clock.SetTime(noon.Add(time.Minute))
			w.mustPass()
			if diff := cmp.Diff(want, lines(w.store.load())); diff != "" {
				t.Errorf("the record (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"First", "Last"}, w.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// An upgrade is not ended while its state cannot be determined.
func TestCommit_by_another_client_cannot_be_determined(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit", "Last")
	s.setResult("First", engine.Wait("Unhealthy", "etcd is degraded"))
	w.mustPass()
	s.CommitBy = noon.Add(time.Minute)
	s.setReached("Commit", false, errStore)
	w.clock.SetTime(noon.Add(time.Minute))
	w.mustPass()
	if got := lines(w.store.load()); !cmp.Equal(got, []string{"First Unknown CannotObserve …"}) {
		t.Errorf("the record: %q", got)
	}
}

// A record of an earlier release does not show whether the upgrade was requested: it may have been.
func TestCleanup_of_an_earlier_release(t *testing.T) {
	t.Parallel()
	w, s, _ := requested(t)
	s.CommitBy = noon.Add(-time.Minute)
	at := func(name string, done bool) history.StepCondition {
		c := history.StepCondition{Type: name, Status: "False", Reason: "Requested", StartTime: ago(time.Hour), LastProbeTime: ago(time.Minute), LastTransitionTime: ago(time.Hour)}
		if done {
			c.Status, c.Reason, c.CompleteTime = metav1.ConditionTrue, "Done", ago(time.Hour)
		}
		return c
	}
	w.store.put(history.Record{Version: target, StartTime: ago(time.Hour), Conditions: []history.StepCondition{at("First", true), at("Commit", false)}})
	var got []bool
	s.setDo("FirstCleaned", func(run engine.Run) (engine.Result, error) {
		got = append(got, run.Requested)
		return engine.Done("clean"), nil
	})
	w.run()
	if diff := cmp.Diff([]bool{true}, got); diff != "" {
		t.Errorf("requested (-want +got):\n%s\n%q", diff, lines(w.store.load()))
	}
}

// An upgrade that fails takes back first, confirms, and only then records that it failed.
func TestFailure_takes_back_first(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(w *world, s *script){
		"the window closes": func(_ *world, s *script) { s.CommitBy = noon.Add(10 * time.Minute) },
		"it is cancelled":   func(_ *world, s *script) { s.Cancel = "deleted" },
		"it is held":        func(_ *world, s *script) { s.Hold = "paused" },
		"it takes too long": func(_ *world, s *script) { s.at("Commit").FailAfter = 10 * time.Minute },
		"the step itself fails": func(_ *world, s *script) {
			s.observed = recordCall(new([]string), "observe", engine.Fail("Suspended", "not now"), nil)
		},
		"an earlier step runs, by a record that was recovered": func(w *world, s *script) {
			record := w.store.load()
			record.Conditions = nil
			w.store.put(record)
			s.observed = nil
			s.Cancel = "the record was lost"
		},
	} {
		for _, begins := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, begun meanwhile: %t", name, begins), func(t *testing.T) {
				t.Parallel()
				w, s, isRequested := requested(t)
				commenced, tries := false, 0
				s.at("Commit").Commit.Withdraw = func(ctx, engine.Run) (engine.Result, error) {
					for _, c := range w.store.load().Conditions {
						if c.CompleteTime != nil && c.Status == metav1.ConditionFalse {
							t.Errorf("recorded before the withdrawal: %+v", c)
						}
					}
					switch tries++; tries {
					case 1:
						return engine.WaitFor(time.Second, "Retrying", "conflict"), nil
					case 2:
						return engine.Result{}, errNoAnswer
					}
					*isRequested, commenced = false, begins
					return engine.Done("withdrawn"), nil
				}
				s.reached["Commit"] = func() (bool, error) { return commenced, t.Context().Err() }
				w.mustPass()
				w.clock.SetTime(noon.Add(10 * time.Minute))
				fail(w, s)
				for range 3 {
					w.mustPass()
					w.advance(w.clock.Now().Add(time.Second))
				}
				if tries != 3 || *isRequested {
					t.Fatalf("%d tries, still requested: %t", tries, *isRequested)
				}
				w.mustPass()
				summary := engine.Summarize(s.book(), w.store.load(), w.clock.Now(), s.Constraints)
				if summary.Committed != begins || (summary.Failure != nil) != (!begins && s.Hold == "") {
					t.Errorf("committed: %t, failure %+v", summary.Committed, summary.Failure)
				}
			})
		}
	}
}

func TestKeepAlive_that_withdraws_the_request(t *testing.T) {
	t.Parallel()
	w, s, isRequested := requested(t)
	outdated := false
	s.at("Commit").KeepAlive = []engine.KeepAlive{{Name: "Request", Renew: func(_ ctx, run engine.Run) (engine.Result, error) {
		if run.Requested && outdated {
			*isRequested = false
			return engine.Undone("withdrawn"), nil
		}
		return engine.Done("it is as requested"), nil
	}}}
	w.mustPass()
	if w.store.load().RequestTime == nil {
		t.Fatal("not requested")
	}
	outdated = true
	w.mustPass()
	if got := w.store.load().RequestTime; got != nil {
		t.Errorf("withdrawn, and the record holds a request at %s", got)
	}
	outdated = false
	w.advance(w.clock.Now().Add(time.Second))
	w.mustPass()
	if w.store.load().RequestTime == nil || !*isRequested {
		t.Error("it is not requested again")
	}
}

// Each save triggers the next pass, long before the second that the step waits for.
func TestRequest_without_effect_is_repeated_once_a_second(t *testing.T) {
	t.Parallel()
	w, s, isRequested := requested(t)
	calls, conflict := 0, true
	var requestedAt time.Time
	s.setDo("Commit", func(engine.Run) (engine.Result, error) {
		calls++
		if conflict {
			return engine.WaitFor(time.Second, "Retrying", "conflict").WithoutEffect(), nil
		}
		*isRequested, requestedAt = true, w.clock.Now()
		return engine.Wait("Requested", "requested"), nil
	})
	w.mustPass()
	saves := w.store.saves
	for range 600 { // in three seconds
		w.advance(w.clock.Now().Add(5 * time.Millisecond))
		w.mustPass()
		if c := condition(w.store.load(), "Commit"); c.Reason != "Retrying" || c.Message != "conflict" || w.store.load().RequestTime != nil {
			t.Fatalf("at %s: %+v", w.clock.Now(), c)
		}
	}
	if calls != 4 || w.store.saves-saves != 6 {
		t.Errorf("%d calls and %d saves in three seconds of conflicts, want 4 and 6", calls, w.store.saves-saves)
	}

	conflict = false
	w.runUntil(func() bool { return *isRequested })
	if got, want := requestedAt.Sub(noon), 4*time.Second; got != want {
		t.Errorf("requested after %s, want %s", got, want)
	}
}

// A keep-alive that writes must not do what a hold or a deadline forbids the step.
func TestKeepAlive_learns_whether_the_step_may_act(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		block func(*world, *script)
		want  bool
	}{
		"it may": {block: func(*world, *script) {}},
		"held":   {block: func(_ *world, s *script) { s.Hold = "paused" }, want: true},
		"past the window, and whether the upgrade has commenced is unknown": {
			block: func(w *world, s *script) {
				s.CommitBy = noon.Add(time.Minute)
				s.setReached("Commit", false, errNoAnswer)
				w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
			},
			want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit")
			s.setResult("First", engine.Wait("Busy", "not yet"))
			var blocked []bool
			s.at("First").KeepAlive = []engine.KeepAlive{{Name: "Channel", Renew: func(_ ctx, run engine.Run) (engine.Result, error) {
				blocked = append(blocked, run.Blocked)
				return engine.Done("renewed"), nil
			}}}
			w.mustPass()
			tc.block(w, s)
			w.mustPass()
			if diff := cmp.Diff([]bool{false, tc.want}, blocked); diff != "" {
				t.Errorf("blocked (-want +got):\n%s", diff)
			}
		})
	}
}

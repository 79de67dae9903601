// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

func TestAbort_before_the_commit_undoes_everything(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.after(5*time.Minute, func() { c.Unhealthy = "etcd is degraded" }) // while the extra node comes
	c.run()
	want := []string{
		"StartedNotificationSent True Done",
		"VersionPinned True Done",
		"PreHealthCheck True Done",
		"ExtraNodeReady True Done",
		"CommenceUpgrade False WindowMissed",
		"TargetWithdrawn True Done",
		"ExtraNodeGone True Done",
		"FailureNotificationSent True Done",
	}
	if diff := cmp.Diff(want, lines(c.store.load())); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	c.assertAborted("WindowMissed")
	if c.DesiredSet > 0 {
		t.Error("commenced although the gate was closed")
	}
}

func TestAbort_after_the_commit_keeps_the_target(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.after(time.Hour, func() { c.Unhealthy = "etcd is degraded" })
	c.run()
	want := []string{
		"WorkersUpgraded True Done",
		"PostHealthCheck False Unhealthy",
		"TargetWithdrawn True Accepted",
		"ExtraNodeGone True Done",
		"FailureNotificationSent True Done",
	}
	if diff := cmp.Diff(want, lines(c.store.load())[6:]); diff != "" {
		t.Errorf("the end of the record (-want +got):\n%s", diff)
	}
	summary := engine.Summarize(c.book(), c.store.load(), c.clock.Now(), c.constraints())
	if summary.State != engine.Failed || !summary.Committed || summary.Failure.Type != "PostHealthCheck" {
		t.Errorf("the verdict is %+v", summary)
	}
	if !strings.Contains(summary.Failure.Message, "not completed within 2h0m0s; last seen at 2026-03-01T15:41:00Z: etcd is degraded") {
		t.Errorf("the failure has the message %q", summary.Failure.Message)
	}
}

// The same, with each save failing and a crash in each call.
func TestAbort_survives_every_fault(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]time.Duration{"before the commit": 5 * time.Minute, "after the commit": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(disturb func(*cluster)) *cluster {
				c := newCluster(t)
				c.after(when, func() { c.Unhealthy = "etcd is degraded" })
				disturb(c)
				c.run()
				return c
			}
			smooth := run(func(*cluster) {})
			want := smooth.end()
			every := 1
			if testing.Short() {
				every = 10
			}
			for n := 1; n <= smooth.store.saves; n += every {
				for _, fails := range []saveFault{refuseSave, refuseAllSaves, loseAnswer, crashAfter, crashBefore} {
					if diff := cmp.Diff(want, run(func(c *cluster) { c.store.plan = only(n, fails) }).end()); diff != "" {
						t.Errorf("save %d has fault %d (-undisturbed +disturbed):\n%s", n, fails, diff)
					}
				}
			}
			for n := 0; n < len(smooth.calls); n += every {
				disturb := func(c *cluster) {
					c.atCall = func(call int) moment {
						if call == n+1 {
							return afterActing
						}
						return never
					}
				}
				if diff := cmp.Diff(want, run(disturb).end()); diff != "" {
					t.Errorf("a crash in call %d (-undisturbed +disturbed):\n%s", n+1, diff)
				}
			}
		})
	}
}

func TestCleanup_continues_after_a_failed_step(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit", "Last")
	s.setResult("First", engine.Fail("Broken", "it is broken"))
	s.setResult("FirstCleaned", engine.Fail("Stuck", "it is stuck"))
	w.run()
	want := []string{"First False Broken", "FirstCleaned False Stuck", "LastCleaned True Done"}
	if diff := cmp.Diff(want, lines(w.store.load())); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"First", "FirstCleaned", "LastCleaned"}, w.calls); diff != "" || w.passes != 1 {
		t.Errorf("calls, in %d passes (-want +got):\n%s", w.passes, diff)
	}
	if summary := engine.Summarize(s.book(), w.store.load(), w.clock.Now(), s.Constraints); summary.State != engine.Failed || summary.Failure.Type != "First" {
		t.Errorf("the verdict is %+v", summary)
	}
}

func TestDeadline_fails_with_the_reason_of_the_wait(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		last engine.Result
		want string
	}{
		"specific reason":   {engine.Wait("TargetRefused", "no such release"), "Commit False TargetRefused"},
		"unspecific reason": {engine.Wait("Requested", "requested it"), "Commit False WindowMissed"},
		"no reason":         {engine.Result{}, "Commit False WindowMissed"},
		"another reason":    {engine.Wait("Unhealthy", "etcd is degraded"), "Commit False WindowMissed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "Commit")
			s.CommitBy = noon.Add(10 * time.Minute)
			s.at("Commit").FailReason = "TargetRefused"
			s.setResult("Commit", tc.last)
			w.run()
			record := w.store.load()
			if got := lines(record)[0]; got != tc.want {
				t.Errorf("%q in the end, want %q", got, tc.want)
			}
			ends := 0
			for _, transition := range w.transitions {
				if transition.To.Type == "Commit" && transition.To.CompleteTime != nil {
					ends++
				}
			}
			if ends != 1 {
				t.Errorf("OnTransition was called %d times for the end of the step", ends)
			}
			message := "not commenced by 2026-03-01T12:10:00Z, when the window closed"
			if tc.last.Message() != "" {
				message += "; last seen at 2026-03-01T12:10:00Z: " + tc.last.Message()
			}
			if got := record.Conditions[0].Message; got != message {
				t.Errorf("message %q, want %q", got, message)
			}
		})
	}
}

func TestDeadline_of_a_step_that_was_never_called(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.CommitBy = noon.Add(-time.Minute)
	w.run()
	if got, want := w.store.load().Conditions[0].Message, "not commenced by 2026-03-01T11:59:00Z, when the window closed"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestHold_affects_steps_before_the_commit_only(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.after(4*time.Minute, func() { c.pauseReason = "paused by an administrator" })
	c.runUntil(func() bool { return c.clock.Now().After(noon.Add(25 * time.Minute)) })
	summary := engine.Summarize(c.book(), c.store.load(), c.clock.Now(), c.constraints())
	if summary.Committed || summary.Current.Reason != "Paused" || summary.Current.Message != c.pauseReason {
		t.Fatalf("held, and the current step is %+v", summary.Current)
	}
	c.pauseReason = ""
	c.runUntil(func() bool { return c.Accepted })
	c.pauseReason = "paused by an administrator"
	c.run()
	want, _, _ := runUndisturbed(t)
	if diff := cmp.Diff(want, c.end()); diff != "" {
		t.Errorf("held before the commit and again after it (-undisturbed +disturbed):\n%s", diff)
	}

	missed := newCluster(t)
	missed.pauseReason = "paused by an administrator"
	missed.run()
	missed.assertAborted("WindowMissed")
	if slices.Contains(missed.Notified, "started") || !strings.HasSuffix(missed.store.load().Conditions[0].Message, missed.pauseReason) {
		t.Errorf("held throughout the window: notified %v, recorded %+v", missed.Notified, missed.store.load().Conditions[0])
	}
}

func TestHold_does_not_affect_what_is_reached(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit", "Last")
	s.setResult("Commit", engine.Wait("Requested", "requested it"))
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	s.Hold = "paused by an administrator"
	s.setReached("Commit", true, nil)
	w.run()
	if diff := cmp.Diff([]string{"First True Done", "Commit True Done", "Last True Done"}, lines(w.store.load())); diff != "" {
		t.Errorf("held after the target was accepted (-want +got):\n%s", diff)
	}
}

func TestCancel_aborts_before_the_commit_only(t *testing.T) {
	t.Parallel()
	want, saves, _ := runUndisturbed(t)
	for n := 1; n <= saves; n++ {
		c := newCluster(t)
		c.runUntil(func() bool { return c.store.saves >= n })
		c.cancelReason = "the object was deleted"
		accepted := c.Accepted
		c.run()
		if accepted {
			if diff := cmp.Diff(want, c.end()); diff != "" {
				t.Errorf("cancelled after save %d, after the commit (-undisturbed +disturbed):\n%s", n, diff)
			}
			continue
		}
		c.assertAborted("Cancelled")
	}
}

func TestCancel_checks_first_whether_it_is_too_late(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit", "Last")
	s.setResult("Commit", engine.Wait("Requested", "requested it"))
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	s.Cancel = "the object was deleted"
	s.setReached("Commit", false, errStore)
	w.clock.SetTime(noon.Add(time.Minute))
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if got := lines(w.store.load())[1]; got != "Commit Unknown CannotObserve …" {
		t.Errorf("commit unknown: %q", got)
	}
	s.setReached("Commit", true, nil)
	w.run()
	if diff := cmp.Diff([]string{"First True Done", "Commit True Done", "Last True Done"}, lines(w.store.load())); diff != "" {
		t.Errorf("cancelled when it was too late (-want +got):\n%s", diff)
	}
}

func TestCancel_takes_precedence_over_hold_and_window(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.Cancel, s.Hold, s.CommitBy = "the object was deleted", "paused", noon.Add(-time.Hour)
	w.run()
	want := []string{"First False Cancelled", "FirstCleaned True Done", "LastCleaned True Done"}
	if diff := cmp.Diff(want, lines(w.store.load())); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
}

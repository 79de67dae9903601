// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

var errNoAnswer = errors.New("no answer")

// recordCall returns a step that records its call and returns the result.
func recordCall(calls *[]string, name string, result engine.Result, err error) engine.UpgradeStep {
	return func(context.Context, engine.Run) (engine.Result, error) {
		*calls = append(*calls, name)
		return result, err
	}
}

func TestGates(t *testing.T) {
	t.Parallel()
	open, skips := engine.Done("open"), engine.Skip("Ignored", "left out")
	shut, fails := engine.WaitFor(time.Second, "Shut", "shut"), engine.Fail("Never", "never")
	for name, tc := range map[string]struct {
		gates [2]engine.Result
		err   error // of the second gate
		want  string
		calls []string
	}{
		"all gates pass":                     {gates: [2]engine.Result{open, open}, want: "First True Done acted", calls: []string{"first", "second", "do"}},
		"a skipped gate passes":              {gates: [2]engine.Result{skips, open}, want: "First True Done acted", calls: []string{"first", "second", "do"}},
		"the first gate does not pass":       {gates: [2]engine.Result{shut, open}, want: "First False Shut shut", calls: []string{"first"}},
		"the second gate does not pass":      {gates: [2]engine.Result{open, shut}, want: "First False Shut shut", calls: []string{"first", "second"}},
		"a gate returns the zero Result":     {gates: [2]engine.Result{open, {}}, want: "First False Waiting gate Second does not pass", calls: []string{"first", "second"}},
		"a gate fails":                       {gates: [2]engine.Result{fails, open}, want: "First False Never never", calls: []string{"first"}},
		"a gate cannot determine the state":  {gates: [2]engine.Result{open, open}, err: errNoAnswer, want: "First Unknown CannotObserve no answer", calls: []string{"first", "second"}},
		"a closed gate before a failing one": {gates: [2]engine.Result{shut, open}, err: errNoAnswer, want: "First False Shut shut", calls: []string{"first"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			w, s := newScript(t, "First", "Commit")
			first := s.at("First")
			first.Do = recordCall(&calls, "do", engine.Done("acted"), nil)
			first.Gates = []engine.Gate{
				{Name: "First", Check: recordCall(&calls, "first", tc.gates[0], nil)},
				{Name: "Second", Check: recordCall(&calls, "second", tc.gates[1], tc.err)},
			}
			for range 2 { // nothing is kept between passes
				calls = nil
				w.store.lose()
				if _, err := w.pass(); err != nil {
					t.Fatal(err)
				}
				c := condition(w.store.load(), "First")
				if got := fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.Message); got != tc.want {
					t.Errorf("the condition is %q, want %q", got, tc.want)
				}
				if diff := cmp.Diff(tc.calls, calls); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Observe returns what became of the request: gates and Do are not called again.
func TestObserve(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		observed engine.Result
		err      error
		want     string
		calls    []string
	}{
		"the step has not acted":      {want: "Commit False Requested …", calls: []string{"observe", "gate", "do"}},
		"what it did holds":           {observed: engine.Done("so it is"), want: "Commit True Done", calls: []string{"observe"}},
		"waits to observe the effect": {observed: engine.Wait("NotYet", "a while"), want: "Commit False NotYet …", calls: []string{"observe"}},
		"it is skipped":               {observed: engine.Skip("Ignored", "left out"), want: "Commit True Ignored", calls: []string{"observe"}},
		"it failed":                   {observed: engine.Fail("Broken", "broken"), want: "Commit False Broken", calls: []string{"observe"}},
		"it cannot be determined":     {err: errNoAnswer, want: "Commit Unknown CannotObserve …", calls: []string{"observe"}},
		"an error, and an answer":     {observed: engine.Done("so it is"), err: errNoAnswer, want: "Commit Unknown CannotObserve …", calls: []string{"observe"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			w, s := newScript(t, "Commit", "Last")
			w.store.put(history.Record{Version: target, StartTime: ago(time.Minute), Conditions: []history.StepCondition{
				{Type: "Commit", Status: "False", Reason: engine.ReasonStarted, StartTime: ago(time.Minute), LastProbeTime: ago(time.Minute), LastTransitionTime: ago(time.Minute)},
			}})
			commit := s.at("Commit")
			s.observed = recordCall(&calls, "observe", tc.observed, tc.err)
			commit.Gates = []engine.Gate{{Name: "Gate", Check: recordCall(&calls, "gate", engine.Done("open"), nil)}}
			commit.Do = recordCall(&calls, "do", engine.Wait("Requested", "requested"), nil)
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if got := lines(w.store.load())[0]; got != tc.want {
				t.Errorf("the condition is %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(tc.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// The gate closes between the health check and the commit.
func TestGates_close_at_the_moment_of_commencing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.after(3*time.Minute, func() { c.Unhealthy = "etcd is degraded" })
	c.after(20*time.Minute, func() {
		if c.DesiredSet > 0 {
			t.Error("commenced while etcd was degraded")
		}
		c.Unhealthy = ""
	})
	c.run()
	want, _, _ := runUndisturbed(t)
	if diff := cmp.Diff(want, c.end()); diff != "" {
		t.Errorf("the gate was shut for a while (-undisturbed +disturbed):\n%s", diff)
	}
}

func TestKeepAlive_runs_while_the_step_waits_and_never_blocks_it(t *testing.T) {
	t.Parallel()
	waits := engine.Wait("NotYet", "a while")
	renewed := engine.WaitFor(2*time.Minute, "Renewed", "renewed")
	allCalls := []string{"do", "first", "second"}
	for name, tc := range map[string]struct {
		do        engine.Result
		doErr     error
		keeper    engine.Result // the second of two
		keeperErr error
		reason    string
		message   string
		err       string
		calls     []string
		passed    bool
		failed    bool
	}{
		"waiting step runs keep-alives":                {do: waits, keeper: renewed, reason: "NotYet", message: "a while", calls: allCalls},
		"waiting keep-alive is in the message":         {do: waits, keeperErr: errNoAnswer, reason: "NotYet", message: "a while; also: no answer", calls: allCalls},
		"failing keep-alive is in the message":         {do: waits, keeper: engine.Fail("Lost", "the lease is lost"), reason: "NotYet", message: "a while; also: the lease is lost", calls: allCalls},
		"keep-alive waits and the step has no message": {keeperErr: errNoAnswer, reason: "Waiting", message: "also: no answer", calls: allCalls},
		"finished keep-alive changes nothing":          {do: waits, keeper: engine.Done("kept"), reason: "NotYet", message: "a while", calls: allCalls},
		"keep-alive without a message changes nothing": {do: waits, keeper: engine.Wait("Other", "for others"), reason: "NotYet", message: "a while", calls: allCalls},
		"an error of the step does not stop it":        {doErr: errStore, keeper: renewed, err: "the store does not answer", calls: allCalls},
		"step and keep-alive fail":                     {doErr: errStore, keeperErr: errNoAnswer, err: "the store does not answer; also: no answer", calls: allCalls},
		"finished step runs no keep-alive":             {do: engine.Done("so it is"), keeperErr: errNoAnswer, reason: "Done", message: "so it is", calls: allCalls[:1], passed: true},
		"failed step runs no keep-alive":               {do: engine.Fail("Broken", "it is broken"), keeperErr: errNoAnswer, reason: "Broken", message: "it is broken", calls: allCalls[:1], failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			w, s := newScript(t, "First", "Commit")
			first := s.at("First")
			first.Do = recordCall(&calls, "do", tc.do, tc.doErr)
			first.KeepAlive = []engine.KeepAlive{
				{Name: "First", Renew: recordCall(&calls, "first", renewed, nil)},
				{Name: "Second", Renew: recordCall(&calls, "second", tc.keeper, tc.keeperErr)},
			}
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			c := condition(w.store.load(), "First")
			if tc.err != "" {
				tc.reason, tc.message = "CannotObserve", tc.err
			}
			if c.Reason != tc.reason || c.Message != tc.message {
				t.Errorf("the condition is %+v", c)
			}
			if class := engine.Classify(*c); (class == engine.ClassDone) != tc.passed || (class == engine.ClassFailed) != tc.failed {
				t.Errorf("the condition is %s", class)
			}
			if diff := cmp.Diff(tc.calls, calls[:len(tc.calls)]); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKeepAlive_requeues_at_the_earliest_request(t *testing.T) {
	t.Parallel()
	waitFor := func(d time.Duration) engine.Result { return engine.WaitFor(d, "NotYet", "a while") }
	for name, tc := range map[string]struct {
		do, keeper engine.Result
		keeperErr  error
		want       time.Duration
	}{
		"step first":                         {do: waitFor(time.Minute), keeper: waitFor(2 * time.Minute), want: time.Minute},
		"keep-alive first":                   {do: waitFor(2 * time.Minute), keeper: waitFor(time.Minute), want: time.Minute},
		"keep-alive only":                    {do: engine.Wait("NotYet", "a while"), keeper: waitFor(3 * time.Minute), want: 3 * time.Minute},
		"step only":                          {do: waitFor(3 * time.Minute), keeper: engine.Done("kept"), want: 3 * time.Minute},
		"keep-alive in the past":             {do: waitFor(3 * time.Minute), keeper: waitFor(-time.Minute), want: time.Second},
		"failing keep-alive is retried soon": {do: engine.Wait("NotYet", "a while"), keeperErr: errNoAnswer, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit")
			w.clock.SetTime(noon.Truncate(time.Second))
			var calls []string
			s.at("First").Do = recordCall(&calls, "do", tc.do, nil)
			s.at("First").KeepAlive = []engine.KeepAlive{{Name: "Lease", Renew: recordCall(&calls, "keep", tc.keeper, tc.keeperErr)}}
			next, err := w.pass()
			if got := next.Sub(w.clock.Now()); got != tc.want || err != nil {
				t.Errorf("the next pass is in %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

func TestKeepAlive_renews_while_workers_are_updated(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.run()
	record := c.store.load()
	workers := condition(record, "WorkersUpgraded")
	took := workers.CompleteTime.Sub(workers.StartTime.Time)
	if least := int(took / (4 * time.Minute)); c.renewals < least {
		t.Errorf("renewed %d times in %s, want every four minutes", c.renewals, took)
	}
}

func TestFromBool_adapts_the_plain_form(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		so     bool
		err    error
		passed bool
	}{
		"true is done":         {so: true, passed: true},
		"false is not yet":     {},
		"an error is an error": {err: errNoAnswer},
		"error and true":       {so: true, err: errNoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := engine.FromBool(func(context.Context) (bool, error) { return tc.so, tc.err })(t.Context(), engine.Run{})
			if got.Passed() != tc.passed || got.Failed() || !errors.Is(err, tc.err) {
				t.Errorf("answers %+v, %v", got, err)
			}
			if !tc.passed && got != (engine.Result{}) {
				t.Errorf("%+v is more than \"not yet\"", got)
			}
		})
	}
}

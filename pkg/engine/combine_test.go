// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

var errNoAnswer = errors.New("no answer")

// recordCall is a step that answers so, and writes down that it was called.
func recordCall(calls *[]string, name string, result engine.Result, err error) engine.UpgradeStep {
	return func(context.Context, engine.Run) (engine.Result, error) {
		*calls = append(*calls, name)
		return result, err
	}
}

func TestGuardedActsOnlyIfEveryGateIsPassedInThatVeryPass(t *testing.T) {
	t.Parallel()
	open, skips := engine.Done("open"), engine.Skip("Ignored", "left out")
	shut, fails := engine.WaitFor(time.Second, "Shut", "shut"), engine.Fail("Never", "never")
	for name, tc := range map[string]struct {
		gates [2]engine.Result
		err   error // of the second gate
		want  engine.Result
		calls []string
	}{
		"all gates are open":               {gates: [2]engine.Result{open, open}, want: engine.Done("acted"), calls: []string{"first", "second", "do"}},
		"a skipped gate is not in the way": {gates: [2]engine.Result{skips, open}, want: engine.Done("acted"), calls: []string{"first", "second", "do"}},
		"the first gate is shut":           {gates: [2]engine.Result{shut, open}, want: shut, calls: []string{"first"}},
		"the second gate is shut":          {gates: [2]engine.Result{open, shut}, want: shut, calls: []string{"first", "second"}},
		"a gate says nothing":              {gates: [2]engine.Result{open, {}}, want: engine.Result{}, calls: []string{"first", "second"}},
		"a gate fails":                     {gates: [2]engine.Result{fails, open}, want: fails, calls: []string{"first"}},
		"a gate cannot find out":           {gates: [2]engine.Result{open, open}, err: errNoAnswer, want: open, calls: []string{"first", "second"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			step := engine.WithGates(recordCall(&calls, "do", engine.Done("acted"), nil),
				recordCall(&calls, "first", tc.gates[0], nil), recordCall(&calls, "second", tc.gates[1], tc.err))
			for range 2 { // nothing is remembered
				calls = nil
				got, err := step(t.Context(), engine.Run{})
				if got != tc.want || !errors.Is(err, tc.err) {
					t.Errorf("answers %+v, %v; want %+v, %v", got, err, tc.want, tc.err)
				}
				if diff := cmp.Diff(tc.calls, calls); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// In the world: the gate shuts between the check before and the moment of commencing.
func TestGuardedClosesTheGateAtTheMomentOfCommencing(t *testing.T) {
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

func TestKeepingRenewsWhileTheStepWaitsAndNeverStandsInItsWay(t *testing.T) {
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
		"while it waits, keepers are asked":     {do: waits, keeper: renewed, reason: "NotYet", message: "a while", calls: allCalls},
		"a keeper in trouble is told of":        {do: waits, keeperErr: errNoAnswer, reason: "NotYet", message: "a while; also: no answer", calls: allCalls},
		"a keeper that fails is told of":        {do: waits, keeper: engine.Fail("Lost", "the lease is lost"), reason: "NotYet", message: "a while; also: the lease is lost", calls: allCalls},
		"trouble while the step says nothing":   {keeperErr: errNoAnswer, reason: "Waiting", message: "also: no answer", calls: allCalls},
		"a keeper that is done changes nothing": {do: waits, keeper: engine.Done("kept"), reason: "NotYet", message: "a while", calls: allCalls},
		"a keeper that waits changes nothing":   {do: waits, keeper: engine.Wait("Other", "for others"), reason: "NotYet", message: "a while", calls: allCalls},
		"an error of the step does not stop it": {doErr: errStore, keeper: renewed, err: "the store does not answer", calls: allCalls},
		"both are in trouble":                   {doErr: errStore, keeperErr: errNoAnswer, err: "the store does not answer; also: no answer", calls: allCalls},
		"a step that is done needs no keeper":   {do: engine.Done("so it is"), keeperErr: errNoAnswer, reason: "Done", message: "so it is", calls: allCalls[:1], passed: true},
		"a step that failed needs no keeper":    {do: engine.Fail("Broken", "it is broken"), keeperErr: errNoAnswer, reason: "Broken", message: "it is broken", calls: allCalls[:1], failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			step := engine.WithKeepAlive(recordCall(&calls, "do", tc.do, tc.doErr),
				recordCall(&calls, "first", renewed, nil), recordCall(&calls, "second", tc.keeper, tc.keeperErr))
			got, err := step(t.Context(), engine.Run{})
			if got.Reason() != tc.reason || got.Message() != tc.message || got.Passed() != tc.passed || got.Failed() != tc.failed {
				t.Errorf("answers %+v", got)
			}
			if message := errorText(err); message != tc.err {
				t.Errorf("error %q, want %q", message, tc.err)
			}
			if tc.doErr != nil && !errors.Is(err, tc.doErr) || tc.doErr != nil && tc.keeperErr != nil && !errors.Is(err, tc.keeperErr) {
				t.Errorf("%v hides what it is made of", err)
			}
			if diff := cmp.Diff(tc.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestKeepingLooksAgainWhenTheFirstOfAllWantsTo(t *testing.T) {
	t.Parallel()
	waitFor := func(d time.Duration) engine.Result { return engine.WaitFor(d, "NotYet", "a while") }
	for name, tc := range map[string]struct {
		do, keeper engine.Result
		keeperErr  error
		want       time.Duration
	}{
		"the step does":                     {do: waitFor(time.Minute), keeper: waitFor(2 * time.Minute), want: time.Minute},
		"the keeper does":                   {do: waitFor(2 * time.Minute), keeper: waitFor(time.Minute), want: time.Minute},
		"only the keeper does":              {do: engine.Wait("NotYet", "a while"), keeper: waitFor(3 * time.Minute), want: 3 * time.Minute},
		"only the step does":                {do: waitFor(3 * time.Minute), keeper: engine.Done("kept"), want: 3 * time.Minute},
		"the keeper's time is past":         {do: waitFor(3 * time.Minute), keeper: waitFor(-time.Minute), want: time.Second},
		"a keeper in trouble is asked soon": {do: engine.Wait("NotYet", "a while"), keeperErr: errNoAnswer, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit")
			w.clock.SetTime(noon.Truncate(time.Second))
			var calls []string
			s.at("First").Do = engine.WithKeepAlive(recordCall(&calls, "do", tc.do, nil), recordCall(&calls, "keep", tc.keeper, tc.keeperErr))
			next, err := w.pass()
			if got := next.Sub(w.clock.Now()); got != tc.want || err != nil {
				t.Errorf("the next look is in %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

func TestKeepingRenewsTheLeaseForAsLongAsTheWorkersTake(t *testing.T) {
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

func TestFirstActsOnlyIfThereIsNothingToSay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		look  engine.Result
		err   error
		calls []string
	}{
		"it has nothing to say": {calls: []string{"look", "act"}},
		"it is done":            {look: engine.Done("so it is"), calls: []string{"look"}},
		"it waits":              {look: engine.Wait("NotYet", "a while"), calls: []string{"look"}},
		"it is left out":        {look: engine.Skip("Ignored", "left out"), calls: []string{"look"}},
		"it failed":             {look: engine.Fail("Broken", "broken"), calls: []string{"look"}},
		"it cannot find out":    {err: errNoAnswer, calls: []string{"look"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			acted := engine.Wait("Requested", "asked for it")
			got, err := engine.First(recordCall(&calls, "look", tc.look, tc.err), recordCall(&calls, "act", acted, nil))(t.Context(), engine.Run{})
			want := tc.look
			if slices.Contains(tc.calls, "act") {
				want = acted
			}
			if got != want || !errors.Is(err, tc.err) {
				t.Errorf("answers %+v, %v; want %+v, %v", got, err, want, tc.err)
			}
			if diff := cmp.Diff(tc.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFuncAdaptsThePlainForm(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		so     bool
		err    error
		passed bool
	}{
		"true is done":                        {so: true, passed: true},
		"false is not yet":                    {},
		"an error is an error":                {err: errNoAnswer},
		"an error counts more than true does": {so: true, err: errNoAnswer},
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

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// answers returns a gate with this answer.
func answers(name string, result engine.Result, err error) engine.Gate {
	return engine.Gate{Name: name, Check: func(context.Context, engine.Run) (engine.Result, error) { return result, err }}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	start := simulation.Start
	at := func(d time.Duration) engine.Constraints {
		return engine.Constraints{NotBefore: start.Add(d), CommitBy: start.Add(d + time.Hour)}
	}
	open := answers("Open", engine.Done("open"), nil)
	invalid := answers("SpecValid", engine.Fail("Downgrade", "why"), nil)
	frozen := answers("NoFreeze", engine.Wait("Frozen", "until tomorrow"), nil)
	for name, tc := range map[string]struct {
		gates       []engine.Gate
		constraints engine.Constraints
		observed    engine.Observed
		closed      string // reason
		begun       bool
		early       bool
		expired     bool
	}{
		"all pass":                         {gates: []engine.Gate{open}, constraints: at(0)},
		"the first closed gate answers":    {gates: []engine.Gate{open, frozen, invalid}, constraints: at(0), closed: "Frozen"},
		"a gate answers ahead of time":     {gates: []engine.Gate{invalid}, constraints: at(time.Minute), closed: "Downgrade", early: true},
		"the window is over":               {gates: []engine.Gate{open}, constraints: at(-time.Hour), expired: true},
		"an update that has begun":         {gates: []engine.Gate{open}, constraints: at(0), observed: engine.ObservedBegun, begun: true},
		"begun, and the window is over":    {gates: []engine.Gate{open}, constraints: at(-time.Hour), observed: engine.ObservedBegun, begun: true, expired: true},
		"begun while a gate waits":         {gates: []engine.Gate{frozen}, constraints: at(0), observed: engine.ObservedBegun, closed: "Frozen", begun: true},
		"begun before the time":            {gates: []engine.Gate{open}, constraints: at(time.Minute), observed: engine.ObservedBegun, early: true},
		"begun, and the spec is invalid":   {gates: []engine.Gate{invalid}, constraints: at(0), observed: engine.ObservedBegun, closed: "Downgrade"},
		"installed, but not on every pool": {gates: []engine.Gate{open}, constraints: at(0), observed: engine.ObservedDone, begun: true},
		"no valid time":                    {gates: []engine.Gate{open}, observed: engine.ObservedBegun, early: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			observe := func(context.Context, engine.Run) (engine.Observed, engine.Result, error) {
				return tc.observed, engine.Result{}, nil
			}
			book := engine.Runbook{Admission: tc.gates, Steps: []engine.Step{{Name: "Commence", Commit: &engine.Commit{Observe: observe}}}}
			got, err := engine.Admit(t.Context(), testingclock.NewFakePassiveClock(start), book, history.Record{}, tc.constraints)
			if err != nil {
				t.Fatal(err)
			}
			if got.Closed.Reason() != tc.closed || got.Begun != tc.begun || got.Early != tc.early || got.Expired != tc.expired {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAdmit_unknown(t *testing.T) {
	t.Parallel()
	unreadable := errors.New("unreadable")
	book := engine.Runbook{Admission: []engine.Gate{answers("SpecValid", engine.Result{}, unreadable)}, Steps: []engine.Step{{Name: "Wait"}}}
	if _, err := engine.Admit(t.Context(), testingclock.NewFakePassiveClock(simulation.Start), book, history.Record{}, engine.Constraints{}); !errors.Is(err, unreadable) {
		t.Errorf("got %v", err)
	}
	found := engine.RunPreChecks(t.Context(), testingclock.NewFakePassiveClock(simulation.Start), book, engine.Run{})
	if len(found) != 1 || found[0].Step != "SpecValid" || !found[0].Blocking {
		t.Errorf("the pre-checks found %+v, want the gate of the admission", found)
	}
}

func TestValidate_admission(t *testing.T) {
	t.Parallel()
	open := answers("Open", engine.Done("open"), nil)
	book := engine.Runbook{
		Admission: []engine.Gate{open, open, {Name: "Empty"}},
		Steps:     []engine.Step{{Name: "Wait", Doc: "Waits.", Do: open.Check}},
	}
	err := book.Validate()
	want := "the admission: gate name Open is used twice\nthe admission: gate Empty does nothing"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

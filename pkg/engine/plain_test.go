// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// plainWorld returns a world whose runbook is three functions, and the answers that they give.
func plainWorld(t *testing.T, constraints *engine.Constraints) (w *world, done []bool) {
	t.Helper()
	w, done = newWorld(t), make([]bool, 3)
	function := func(i int) func(context.Context) (bool, error) {
		return func(context.Context) (bool, error) { return done[i], nil }
	}
	book := engine.Plain("Shop", function(0), function(1), function(2))
	book.Cleanup = []engine.Step{{Name: "Cleaned", Doc: "Cleans up.", Do: engine.FromBool(always(true))}}
	if err := book.Validate(); err != nil {
		t.Fatal(err)
	}
	w.book, w.constraints = func() engine.Runbook { return book }, func() engine.Constraints { return *constraints }
	return w, done
}

// A runbook of three plain functions runs them in order, each until it is done.
func TestPlain(t *testing.T) {
	t.Parallel()
	w, done := plainWorld(t, &engine.Constraints{CommitBy: noon.Add(10 * time.Minute)})
	for i, want := range [][]string{
		{"Shop1 False Waiting …"},
		{"Shop1 True Done", "Shop2 False Waiting …"},
		{"Shop1 True Done", "Shop2 True Done", "Shop3 False Waiting …"},
		{"Shop1 True Done", "Shop2 True Done", "Shop3 True Done"},
	} {
		if i > 0 {
			done[i-1] = true
		}
		w.mustPass()
		if diff := cmp.Diff(want, lines(w.store.load())); diff != "" {
			t.Errorf("the record after pass %d (-want +got):\n%s", i+1, diff)
		}
		w.clock.SetTime(w.clock.Now().Add(9 * time.Minute)) // the window counts for the first function only
	}
	if summary := engine.Summarize(w.book(), w.store.load(), w.clock.Now(), w.constraints()); summary.Outcome != engine.OutcomeUpgraded || summary.Committed {
		t.Errorf("the summary: %+v", summary)
	}
}

// The window ends a runbook without a commit before its first step is done; a pause and a cancellation count
// between any two.
func TestPlain_before_between_and_after(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		finished    int
		constraints engine.Constraints
		want        string // of the last step
	}{
		"the window, before the first":    {0, engine.Constraints{CommitBy: noon}, "Cleaned True Done"},
		"the window, after the first":     {1, engine.Constraints{CommitBy: noon}, "Shop2 False Waiting …"},
		"a pause, before the first":       {0, engine.Constraints{Hold: "paused"}, "Shop1 False Paused …"},
		"a pause, before the last":        {2, engine.Constraints{Hold: "paused"}, "Shop3 False Paused …"},
		"a cancellation, before the last": {2, engine.Constraints{Cancel: "deleted"}, "Cleaned True Done"},
		"a cancellation, after the last":  {3, engine.Constraints{Cancel: "deleted"}, "Shop3 True Done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var constraints engine.Constraints
			w, done := plainWorld(t, &constraints)
			for i := range tc.finished {
				done[i] = true
			}
			if tc.finished > 0 {
				w.mustPass()
			}
			constraints = tc.constraints
			w.clock.SetTime(noon.Add(time.Minute))
			w.mustPass()
			all := lines(w.store.load())
			if got := all[len(all)-1]; got != tc.want {
				t.Errorf("%q, want %q at the end", all, tc.want)
			}
		})
	}
}

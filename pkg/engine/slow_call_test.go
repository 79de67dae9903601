// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// bubble is the clock of synctest bubbles: sleeping takes no time.
var bubble = clock.RealClock{}

// A slow step must not act after its deadline, must not block the pass, and anything that fell due in that time is due
// at once.
func TestCall_ends_at_its_deadline(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, tc := range map[string]struct {
		set  func(b *engine.Runbook, c *engine.Constraints)
		want time.Duration // how long the first call lasts
		then string
	}{
		"the window closes during the call": {func(_ *engine.Runbook, c *engine.Constraints) { c.CommitBy = bubble.Now().Add(10 * time.Second) }, 10 * time.Second, "Commit False WindowMissed"},
		"deadline during the call":          {func(b *engine.Runbook, _ *engine.Constraints) { b.Steps[0].FailAfter = 20 * time.Second }, 20 * time.Second, "Commit False TimedOut"},
		"call bounded by a minute":          {func(b *engine.Runbook, _ *engine.Constraints) { b.Steps[0].FailAfter = 90 * time.Second }, time.Minute, "Commit False TimedOut"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var record history.Record
				e := &engine.Engine{Clock: bubble, Save: func(_ context.Context, r history.Record) error { record = r; return nil }}
				var lasted []time.Duration
				book := engine.Runbook{Steps: []engine.Step{{
					Name: "Commit", Commit: committing(always(false)), Doc: "It hangs.",
					Do: func(ctx context.Context, run engine.Run) (engine.Result, error) {
						defer func() { lasted = append(lasted, bubble.Since(run.Now)) }()
						return engine.Result{}, hang(ctx)
					},
				}}}
				var constraints engine.Constraints
				tc.set(&book, &constraints)
				for {
					_, next, err := e.Pass(t.Context(), book, record, constraints)
					if err != nil {
						t.Fatal(err)
					}
					if next.IsZero() {
						break
					}
					if next.Before(bubble.Now()) {
						t.Errorf("the next pass is %s ago", bubble.Since(next))
					}
					bubble.Sleep(next.Sub(bubble.Now()))
				}
				if lasted[0] != tc.want {
					t.Errorf("the first call lasted %s, want %s", lasted[0], tc.want)
				}
				if got := lines(record)[0]; got != tc.then {
					t.Errorf("%q in the end, want %q", got, tc.then)
				}
			})
		})
	}
}

// The call takes half a minute and ignores its context; in that time the window closes.
func TestCall_during_which_something_fell_due(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &engine.Engine{Clock: bubble, Save: func(context.Context, history.Record) error { return nil }}
		constraints := engine.Constraints{CommitBy: bubble.Now().Add(10 * time.Second)}
		book := engine.Runbook{Steps: []engine.Step{{
			Name: "Commit", Commit: committing(always(false)), Doc: "It is slow.",
			Do: func(context.Context, engine.Run) (engine.Result, error) {
				bubble.Sleep(30 * time.Second)
				return engine.Wait("NotYet", "a while"), nil
			},
		}}}
		if _, next, err := e.Pass(t.Context(), book, history.Record{}, constraints); err != nil || !next.Equal(bubble.Now()) {
			t.Errorf("the next pass is in %s, %v", next.Sub(bubble.Now()), err)
		}
	})
}

func TestReached_that_hangs_ends_after_a_minute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := bubble.Now()
		e := &engine.Engine{Clock: bubble, Save: func(context.Context, history.Record) error { return nil }}
		book := engine.Runbook{Steps: []engine.Step{{
			Name: "Commit", Doc: "It hangs.",
			Commit: committing(func(ctx context.Context) (bool, error) { <-ctx.Done(); return false, ctx.Err() }),
		}}}
		if _, _, err := e.Pass(t.Context(), book, history.Record{}, engine.Constraints{}); err == nil || bubble.Since(began) != time.Minute {
			t.Errorf("after %s: %v", bubble.Since(began), err)
		}
	})
}

func TestPreCheck_that_hangs_ends_after_a_minute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := bubble.Now()
		book := engine.Runbook{Steps: []engine.Step{{
			Name: "Commit", Commit: committing(always(false)), Doc: "It hangs.",
			PreCheck: func(ctx context.Context, _ engine.Run) (engine.Result, error) {
				<-ctx.Done()
				return engine.Result{}, ctx.Err()
			},
		}}}
		found := engine.RunPreChecks(t.Context(), clock.RealClock{}, book, engine.Run{Now: began})
		if len(found) != 1 || !found[0].Blocking || bubble.Since(began) != time.Minute {
			t.Errorf("after %s: %+v", bubble.Since(began), found)
		}
	})
}

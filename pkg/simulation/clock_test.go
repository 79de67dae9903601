// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// All timeouts of the engine are in virtual time, no matter how fast the machine is.
func TestTimeoutsOfTheEngineAreVirtual(t *testing.T) {
	t.Parallel()
	w := New(WorldOptions{})
	ended := map[string]error{}
	observe := func(name string) func(context.Context) {
		return func(ctx context.Context) {
			w.Advance(2 * time.Minute)
			ended[name] = ctx.Err()
		}
	}
	step := func(name string) engine.UpgradeStep {
		return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
			observe(name)(ctx)
			return engine.Wait("Waiting", "waiting"), nil
		}
	}
	reached := func(ctx context.Context, _ engine.Run) (engine.Observed, engine.Result, error) {
		observe("reached")(ctx)
		return engine.ObservedNone, engine.Result{}, nil
	}
	book := engine.Runbook{Steps: []engine.Step{{
		Name: "Commit", Doc: "Commits.", Do: step("step"), PreCheck: step("pre-check"), Commit: &engine.Commit{Observe: reached},
		KeepAlive: []engine.KeepAlive{{Name: "Lease", Renew: step("keep-alive")}},
	}}}
	engine.RunPreChecks(t.Context(), w.Clock(), book, engine.Run{Now: w.Now()})
	if _, err := engine.CurrentPhase(t.Context(), w.Clock(), book, history.Record{}); err != nil {
		t.Error(err)
	}
	e := engine.Engine{Clock: w.Clock(), Save: func(context.Context, history.Record) error { return nil }}
	if _, _, err := e.Pass(t.Context(), book, history.Record{}, engine.Constraints{}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"pre-check", "reached", "step", "keep-alive"} {
		if err := ended[name]; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: after two minutes, its context has ended with %v", name, err)
		}
	}
}

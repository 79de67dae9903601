// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

type ctx = context.Context

// script is a table whose steps return what the test sets, and Done by default. The step named
// Commit commits.
type script struct {
	engine.Runbook
	engine.Constraints
	handlers     map[string]func(engine.Run) (engine.Result, error)
	reached      map[string]func() (bool, error)
	observed     engine.UpgradeStep // what Observe of the committing step answers from the cache
	reachedCalls []string           // steps whose Reached was called, in order
}

// newScript returns a world with that table, and with the cleanup steps FirstCleaned and
// LastCleaned.
func newScript(t tester, steps ...string) (*world, *script) {
	s := &script{handlers: map[string]func(engine.Run) (engine.Result, error){}, reached: map[string]func() (bool, error){}}
	for _, name := range steps {
		s.Steps = append(s.Steps, s.step(name))
	}
	for _, name := range []string{"FirstCleaned", "LastCleaned"} {
		s.Cleanup = append(s.Cleanup, s.step(name))
	}
	w := newWorld(t)
	w.book, w.constraints = s.book, func() engine.Constraints { return s.Constraints }
	return w, s
}

func (s *script) book() engine.Runbook { return s.Runbook }

func (s *script) step(name string) engine.Step {
	step := engine.Step{
		Name: name, Doc: "It is a step.",
		Do: func(_ context.Context, run engine.Run) (engine.Result, error) {
			if do := s.handlers[name]; do != nil {
				return do(run)
			}
			return engine.Done("so it is"), nil
		},
		Reached: func(context.Context) (bool, error) {
			s.reachedCalls = append(s.reachedCalls, name)
			if reached := s.reached[name]; reached != nil {
				return reached()
			}
			return false, nil
		},
	}
	if name == "Commit" {
		step.Commit = s.commit(step.Reached)
	}
	return step
}

// commit returns the commit of a step whose update has begun if it is reached.
func (s *script) commit(reached func(context.Context) (bool, error)) *engine.Commit {
	return &engine.Commit{Observe: func(ctx context.Context, run engine.Run) (engine.Observed, engine.Result, error) {
		if !run.Confirm && s.observed != nil {
			result, err := s.observed(ctx, run)
			return observedAs(result), result, err
		}
		begun, err := reached(ctx)
		return begunIf(begun), engine.Result{}, err
	}}
}

// observedAs returns what a committing step with that answer has observed.
func observedAs(answer engine.Result) engine.Observed {
	switch {
	case answer.Passed():
		return engine.ObservedBegun
	case answer.IsZero():
		return engine.ObservedNone
	}
	return engine.ObservedPending
}

func begunIf(begun bool) engine.Observed {
	if begun {
		return engine.ObservedBegun
	}
	return engine.ObservedNone
}

// committing returns the commit of an update that has begun if reached says so.
func committing(reached func(context.Context) (bool, error)) *engine.Commit {
	return &engine.Commit{Observe: func(ctx context.Context, _ engine.Run) (engine.Observed, engine.Result, error) {
		begun, err := reached(ctx)
		return begunIf(begun), engine.Result{}, err
	}}
}

// at returns the step of that name, to be changed.
func (s *script) at(name string) *engine.Step {
	for _, steps := range [][]engine.Step{s.Steps, s.Cleanup, s.Finally} {
		for i := range steps {
			if steps[i].Name == name {
				return &steps[i]
			}
		}
	}
	panic("no step " + name)
}

func (s *script) setDo(name string, do func(engine.Run) (engine.Result, error)) {
	s.handlers[name] = do
}

func (s *script) setResult(name string, result engine.Result) {
	s.setDo(name, func(engine.Run) (engine.Result, error) { return result, nil })
}

func (s *script) setError(name string, err error) {
	s.setDo(name, func(engine.Run) (engine.Result, error) { return engine.Result{}, err })
}

func (s *script) setReached(name string, so bool, err error) {
	s.reached[name] = func() (bool, error) { return so, err }
}

// always returns the same result for every call.
func always(so bool) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) { return so, nil }
}

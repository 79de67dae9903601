// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// The pace of looks: each after a quarter of the time for which a step has been
// looking, within these bounds.
const (
	minPollInterval = time.Second
	maxPollInterval = 15 * time.Second
)

// cachedResult is what came of the last look of a step that waits. One is enough: one
// upgrade runs at a time.
type cachedResult struct {
	step    string
	at, due time.Time // when that was, and when to look again
	result  engine.Result
	err     error
}

// rateLimited looks no more often than the pace allows. In between, what came of the
// last look is said again.
func (e *ExtraNodes) rateLimited(step string, poll engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		e.mutex.Lock()
		defer e.mutex.Unlock()
		now := run.Now
		if m := e.cache; m.step == step && now.Before(m.due) && !now.Before(m.at) { // a clock may jump back
			return m.resultAt(now)
		}
		e.cache = cachedResult{}
		result, err := poll(ctx, run)
		if ctx.Err() != nil || result.Passed() || result.Failed() {
			return result, err
		}
		interval := min(max(now.Sub(run.Since)/4, minPollInterval), maxPollInterval)
		e.cache = cachedResult{step: step, at: now, due: now.Add(interval), result: result, err: err}
		return e.cache.resultAt(now)
	}
}

// resultAt says what was said, and asks for the next look when it is due.
func (m cachedResult) resultAt(now time.Time) (engine.Result, error) {
	if m.err != nil {
		return engine.Result{}, m.err
	}
	return engine.WaitFor(m.due.Sub(now), m.result.Reason(), "%s", m.result.Message()), nil
}

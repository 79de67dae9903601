// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"
)

const (
	throttleInterval = time.Minute
	throttleKeep     = time.Hour // how long an answer is kept after it was due
)

// Throttle limits how often a function is called, however often its step is. In between, its last answer
// counts. Finished answers are not kept. The zero Throttle is ready for use. It is safe for concurrent use and
// must not be copied.
type Throttle struct {
	mutex   sync.Mutex
	answers map[string]throttled
}

// throttled is the last answer of a function.
type throttled struct {
	at, due time.Time
	result  Result
	err     error
}

// Step returns a step that calls do at most once per interval, or at the time that the last answer requests.
// The interval may depend on how long the step has been running; if nil, it is a minute. Answers are kept by
// key. Calls do not overlap.
func (t *Throttle) Step(key string, interval func(elapsed time.Duration) time.Duration, do UpgradeStep) UpgradeStep {
	return func(ctx context.Context, run Run) (Result, error) {
		t.mutex.Lock()
		defer t.mutex.Unlock()
		if last, ok := t.answers[key]; ok && run.Now.Before(last.due) && !run.Now.Before(last.at) { // a clock may jump back
			return last.answerAt(run.Now)
		}
		delete(t.answers, key)
		result, err := do(ctx, run)
		if ctx.Err() != nil || err == nil && result.outcome != notYet {
			return result, err
		}
		counts := throttleInterval
		switch {
		case err == nil && result.after > 0:
			counts = result.after
		case interval != nil:
			counts = interval(run.Now.Sub(run.Since))
		}
		return t.keep(key, run.Now, throttled{due: run.Now.Add(counts), result: result, err: err}).answerAt(run.Now)
	}
}

// Keep stores an answer from elsewhere as the last one of that key, for as long as it requests.
func (t *Throttle) Keep(key string, now time.Time, result Result) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.keep(key, now, throttled{due: now.Add(result.after), result: result})
}

func (t *Throttle) keep(key string, now time.Time, last throttled) throttled {
	if t.answers == nil {
		t.answers = map[string]throttled{}
	}
	maps.DeleteFunc(t.answers, func(_ string, old throttled) bool { return now.Sub(old.due) > throttleKeep })
	last.at = now
	t.answers[key] = last
	return last
}

// Drop drops the answers whose key has that prefix.
func (t *Throttle) Drop(prefix string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	maps.DeleteFunc(t.answers, func(key string, _ throttled) bool { return strings.HasPrefix(key, prefix) })
}

// answerAt returns the answer, and requests the next call when it is due.
func (t throttled) answerAt(now time.Time) (Result, error) {
	result := t.result
	result.after = max(t.due.Sub(now), minRetry)
	return result, t.err
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

func TestStep_with_a_zero_result_waits(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.setResult("First", engine.Result{})
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"First False Waiting …"}, lines(w.store.load())); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	retry := engine.Retry{Timeout: 2 * time.Minute, Reason: "NotSent", Failing: "not sent"}
	wait := func(after time.Duration) engine.Result {
		return engine.WaitFor(after, "NotSent", "not sent yet: no answer")
	}
	skip := engine.Skip("NotSent", "not sent within 2m0s: no answer")
	yielded := engine.Skip("NotSent", "not sent by 2026-03-01T12:01:30Z, shortly before the window closes: no answer")
	late := engine.Skip("NotSent", "not sent by 2026-03-01T11:59:00Z, shortly before the window closes: no answer")
	for name, tc := range map[string]struct {
		tried  time.Duration
		result engine.Result
		err    error
		want   engine.Result
		window time.Duration // from the first call to the end; 0 if there is no end
	}{
		"at once":                                 {0, engine.Result{}, errNoAnswer, wait(time.Second), 0},
		"after a moment":                          {time.Second, engine.Result{}, errNoAnswer, wait(time.Second), 0},
		"after a while":                           {40 * time.Second, engine.Result{}, errNoAnswer, wait(20 * time.Second), 0},
		"not later than the timeout":              {100 * time.Second, engine.Result{}, errNoAnswer, wait(20 * time.Second), 0},
		"a moment before the timeout":             {2*time.Minute - time.Millisecond, engine.Result{}, errNoAnswer, wait(time.Second), 0},
		"at the timeout":                          {2 * time.Minute, engine.Result{}, errNoAnswer, skip, 0},
		"long after it":                           {time.Hour, engine.Result{}, errNoAnswer, skip, 0},
		"success":                                 {time.Hour, engine.Done("sent"), nil, engine.Done("sent"), 0},
		"waiting":                                 {time.Hour, engine.Wait("NotYet", "a while"), nil, engine.Wait("NotYet", "a while"), 0},
		"several errors":                          {time.Hour, engine.Result{}, errors.Join(errNoAnswer, errStore), engine.Skip("NotSent", "not sent within 2m0s: no answer; the store does not answer"), 0},
		"it yields to the window":                 {90 * time.Second, engine.Result{}, errNoAnswer, yielded, 11*time.Minute + 30*time.Second},
		"it is called when it yields":             {80 * time.Second, engine.Result{}, errNoAnswer, wait(10 * time.Second), 11*time.Minute + 30*time.Second},
		"less than ten minutes are left, one try": {0, engine.Result{}, errNoAnswer, late, 9 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			step := retry.Step(func(ctx, engine.Run) (engine.Result, error) {
				calls++
				return tc.result, tc.err
			})
			run := engine.Run{Since: noon, Now: noon.Add(tc.tried)}
			if tc.window > 0 {
				run.CommitBy = noon.Add(tc.window)
			}
			got, err := step(t.Context(), run)
			if err != nil || got != tc.want || calls != 1 {
				t.Errorf("got %+v, %v in %d calls, want %+v", got, err, calls, tc.want)
			}
		})
	}
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		result   engine.Result
		err      error
		interval func(time.Duration) time.Duration
		at       []time.Duration // when the step is called
		want     []int           // calls until then
	}{
		"a waiting answer counts for the interval": {engine.Wait("NotYet", "a while"), nil, nil, []time.Duration{0, 59 * time.Second, time.Minute, 90 * time.Second}, []int{1, 1, 2, 2}},
		"an error does, too":                       {engine.Result{}, errNoAnswer, nil, []time.Duration{0, 59 * time.Second, time.Minute}, []int{1, 1, 2}},
		"the answer requests a time":               {engine.WaitFor(5*time.Second, "NotYet", "a while"), nil, nil, []time.Duration{0, 4 * time.Second, 5 * time.Second}, []int{1, 1, 2}},
		"the interval grows":                       {engine.Wait("NotYet", "a while"), nil, func(elapsed time.Duration) time.Duration { return max(time.Second, elapsed/2) }, []time.Duration{0, time.Second, time.Minute, 89 * time.Second, 90 * time.Second}, []int{1, 2, 3, 3, 4}},
		"a finished answer is not kept":            {engine.Done("so it is"), nil, nil, []time.Duration{0, time.Second}, []int{1, 2}},
		"the clock jumps back":                     {engine.Wait("NotYet", "a while"), nil, nil, []time.Duration{0, -time.Second}, []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			throttle, calls := &engine.Throttle{}, 0
			step := throttle.Step("key", tc.interval, func(ctx, engine.Run) (engine.Result, error) {
				calls++
				return tc.result, tc.err
			})
			for i, at := range tc.at {
				got, err := step(t.Context(), engine.Run{Since: noon, Now: noon.Add(at)})
				if calls != tc.want[i] || got.Reason() != tc.result.Reason() || got.Message() != tc.result.Message() || !errors.Is(err, tc.err) {
					t.Errorf("after %s: %+v, %v in %d calls, want %d", at, got, err, calls, tc.want[i])
				}
			}
		})
	}
}

func TestThrottle_keeps_answers_by_key(t *testing.T) {
	t.Parallel()
	throttle, calls := &engine.Throttle{}, 0
	call := func(key string, at time.Duration) {
		t.Helper()
		step := throttle.Step(key, nil, func(ctx, engine.Run) (engine.Result, error) {
			calls++
			return engine.Wait("NotYet", "a while"), nil
		})
		if _, err := step(t.Context(), engine.Run{Since: noon, Now: noon.Add(at)}); err != nil {
			t.Fatal(err)
		}
	}
	call("a/1", 0)
	call("b/1", 0)
	call("a/1", time.Second)
	if calls != 2 {
		t.Errorf("%d calls for two keys", calls)
	}
	throttle.Drop("a/")
	call("a/1", 2*time.Second)
	call("b/1", 2*time.Second)
	if calls != 3 {
		t.Errorf("%d calls after one key was dropped, want 3", calls)
	}
	throttle.Keep("c/1", noon, engine.WaitFor(10*time.Minute, "Silenced", "silenced"))
	call("c/1", 9*time.Minute)
	if calls != 3 {
		t.Errorf("%d calls, and the answer was known", calls)
	}
	call("c/1", 10*time.Minute)
	if calls != 4 {
		t.Errorf("%d calls after the known answer was due", calls)
	}
}

func TestThrottle_does_not_keep_an_answer_that_was_not_waited_for(t *testing.T) {
	t.Parallel()
	throttle, calls := &engine.Throttle{}, 0
	step := throttle.Step("key", nil, func(ctx, engine.Run) (engine.Result, error) {
		calls++
		return engine.Result{}, errNoAnswer
	})
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []ctx{ended, t.Context()} {
		_, _ = step(c, engine.Run{Since: noon, Now: noon})
	}
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

func TestNoLaterThan(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		result engine.Result
		after  time.Duration
		want   time.Duration
	}{
		"no time before":      {engine.Wait("A", ""), time.Minute, time.Minute},
		"later time before":   {engine.WaitFor(time.Hour, "A", ""), time.Minute, time.Minute},
		"earlier time before": {engine.WaitFor(time.Minute, "A", ""), time.Hour, time.Minute},
		"no time":             {engine.WaitFor(time.Minute, "A", ""), 0, time.Minute},
		"less than a second":  {engine.Wait("A", ""), time.Millisecond, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.result.NoLaterThan(tc.after); got.After() != tc.want || got.Reason() != "A" {
				t.Errorf("got %s, reason %s", got.After(), got.Reason())
			}
		})
	}
}

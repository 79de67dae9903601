// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// First asks look, and calls act only if look has nothing to say, that is,
// answers the zero Result.
func First(check, act UpgradeStep) UpgradeStep {
	return func(ctx context.Context, run Run) (Result, error) {
		result, err := check(ctx, run)
		if err != nil || result != (Result{}) {
			return result, err
		}
		return act(ctx, run)
	}
}

// WithGates asks the gates in the very pass in which do acts: do is called only
// if every gate passes. The answer of the first gate that does not pass, or
// its error, is the answer.
func WithGates(do UpgradeStep, gates ...UpgradeStep) UpgradeStep {
	return func(ctx context.Context, run Run) (Result, error) {
		for _, gate := range gates {
			result, err := gate(ctx, run)
			if err != nil || !result.Passed() {
				return result, err
			}
		}
		return do(ctx, run)
	}
}

// WithKeepAlive renews what must stay alive while do waits, such as a lease. A
// keeper never blocks do and never ends it: its troubles are appended to what
// do says, and it is asked again in a minute. The earliest time that one of
// them asks for counts.
func WithKeepAlive(do UpgradeStep, keepAlives ...UpgradeStep) UpgradeStep {
	return func(ctx context.Context, run Run) (Result, error) {
		result, err := do(ctx, run)
		if err == nil && result.outcome != notYet {
			return result, nil
		}
		for _, keepAlive := range keepAlives {
			renewed, keepAliveErr := keepAlive(ctx, run)
			result.after = minNonZero(result.after, renewed.after)
			switch {
			case keepAliveErr != nil:
				err = appendError(err, keepAliveErr, &result)
			case renewed.Failed():
				err = appendError(err, errors.New(renewed.message), &result)
			}
		}
		return result, err
	}
}

// keepAliveRetry is when a keeper in trouble is asked again: sooner than what it
// keeps alive is likely to lapse.
const keepAliveRetry = time.Minute

// appendError adds a keeper's trouble to the step's own error, or else to its message.
func appendError(err, keepAliveErr error, result *Result) error {
	if err != nil {
		return fmt.Errorf("%w; also: %w", err, keepAliveErr)
	}
	result.after = minNonZero(result.after, keepAliveRetry)
	result.reason = cmp.Or(result.reason, reasonWaiting)
	result.message = joinMessage(result.message, "also: "+keepAliveErr.Error())
	return nil
}

func joinMessage(message, more string) string {
	if message == "" {
		return more
	}
	return message + "; " + more
}

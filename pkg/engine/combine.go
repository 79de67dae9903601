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
func First(look, act UpgradeStep) UpgradeStep {
	return func(ctx context.Context, run Run) (Result, error) {
		result, err := look(ctx, run)
		if err != nil || result != (Result{}) {
			return result, err
		}
		return act(ctx, run)
	}
}

// Guarded asks the gates in the very pass in which do acts: do is called only
// if every gate passes. The answer of the first gate that does not pass, or
// its error, is the answer.
func Guarded(do UpgradeStep, gates ...UpgradeStep) UpgradeStep {
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

// Keeping renews what must stay alive while do waits, such as a lease. A
// keeper never blocks do and never ends it: its troubles are appended to what
// do says, and it is asked again in a minute. The earliest time that one of
// them asks for counts.
func Keeping(do UpgradeStep, keepers ...UpgradeStep) UpgradeStep {
	return func(ctx context.Context, run Run) (Result, error) {
		result, err := do(ctx, run)
		if err == nil && result.outcome != notYet {
			return result, nil
		}
		for _, keep := range keepers {
			kept, keepErr := keep(ctx, run)
			result.after = earlier(result.after, kept.after)
			switch {
			case keepErr != nil:
				err = alongside(err, keepErr, &result)
			case kept.Failed():
				err = alongside(err, errors.New(kept.message), &result)
			}
		}
		return result, err
	}
}

// keeperRetry is when a keeper in trouble is asked again: sooner than what it
// keeps alive is likely to lapse.
const keeperRetry = time.Minute

// alongside adds a keeper's trouble to the step's own error, or else to its message.
func alongside(err, trouble error, result *Result) error {
	if err != nil {
		return fmt.Errorf("%w; also: %w", err, trouble)
	}
	result.after = earlier(result.after, keeperRetry)
	result.reason = cmp.Or(result.reason, reasonWaiting)
	result.message = join(result.message, "also: "+trouble.Error())
	return nil
}

func join(message, more string) string {
	if message == "" {
		return more
	}
	return message + "; " + more
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Retry repeats an action whose failure must not stop an upgrade.
type Retry struct {
	// Timeout is how long the step tries before it is skipped.
	Timeout time.Duration
	// Reason is the reason of the step while it fails, and of the skip.
	Reason string
	// Failing describes the failure for the message, for example "the alerts are not silenced".
	Failing string
}

// Step returns a step that calls do until it succeeds. After an error, it waits for half as long as the step
// has been running. It makes the last try at the timeout, or when the step yields to the window (see
// Run.YieldAt), and is then skipped. Even a step that starts later makes one try.
func (r Retry) Step(do UpgradeStep) UpgradeStep {
	return func(ctx context.Context, run Run) (Result, error) {
		result, err := do(ctx, run)
		if err == nil {
			return result, nil
		}
		message := strings.ReplaceAll(err.Error(), "\n", "; ")
		end, within := run.Since.Add(r.Timeout), "within "+r.Timeout.String()
		if yield := run.YieldAt(); !yield.IsZero() && yield.Before(end) {
			end, within = yield, "by "+text.FormatTime(yield)+", shortly before the window closes"
		}
		if !run.Now.Before(end) {
			return Skip(r.Reason, "%s %s: %s", r.Failing, within, message), nil
		}
		after := min(max(run.Now.Sub(run.Since)/2, minRetry), end.Sub(run.Now))
		return WaitFor(after, r.Reason, "%s yet: %s", r.Failing, message), nil
	}
}

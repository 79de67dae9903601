// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Retry is how a step tries something whose failure is no reason to stop an upgrade.
type Retry struct {
	// Timeout is how long the step tries before it is skipped.
	Timeout time.Duration
	// Reason is the reason of the step while it fails, and of the skip.
	Reason string
	// Failing says what does not work, for the message, e.g. "the alerts are not silenced".
	Failing string
}

// Step returns a step that calls do until it returns no error. After an error, do is called again
// after half as long as the step has been running, and a last time when the timeout is over or when the
// step yields to the window (see Run.YieldAt); then the step is skipped. A step whose first call is later
// than that calls do once.
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

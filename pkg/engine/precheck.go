// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
)

// PreCheckResult is what a step says ahead of time.
type PreCheckResult struct {
	Step, Reason, Message string
	// Blocking says that the upgrade would wait for it. If not, it is left out
	// for now, and the message says why.
	Blocking bool
}

// RunPreChecks asks each step up to the committing one that can be asked ahead of
// time what it would wait for, and returns what those say that are not well, in
// the order of the runbook. Nothing is changed. What could not be found out is in
// the way too.
func RunPreChecks(ctx context.Context, book Runbook, run Run) []PreCheckResult {
	var found []PreCheckResult
	for i := range book.Steps[:min(book.commitIndex()+1, len(book.Steps))] {
		step := &book.Steps[i]
		if step.PreCheck == nil {
			continue
		}
		result, err := runPreCheck(ctx, step.PreCheck, run)
		switch {
		case err != nil:
			found = append(found, PreCheckResult{step.Name, reasonCannotObserve, err.Error(), true})
		case result.outcome != done:
			found = append(found, PreCheckResult{step.Name, cmp.Or(result.reason, reasonWaiting), result.message, !result.Passed()})
		}
	}
	return found
}

func runPreCheck(ctx context.Context, check UpgradeStep, run Run) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return check(ctx, run)
}

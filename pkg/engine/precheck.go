// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/utils/clock"
)

// PreCheckResult is the result of a pre-check of a step, or of a gate of the admission.
type PreCheckResult struct {
	Step, Reason, Message string
	// Blocking reports whether the upgrade would wait. Otherwise, the step would be skipped, and the message
	// says why.
	Blocking bool
}

// RunPreChecks evaluates the admission and the pre-checks of the steps up to the committing one ahead of time.
// It returns what they would wait for, in the order of the runbook; an error is also blocking. It changes
// neither the cluster nor the upgrade, but a pre-check may create an object for administrators, such as the
// UpdatePlan of the version. The clock measures the timeout of each pre-check.
func RunPreChecks(ctx context.Context, by clock.PassiveClock, book Runbook, run Run) []PreCheckResult {
	rows := slices.Clone(book.Admission)
	for i := range book.Steps[:min(book.commitIndex()+1, len(book.Steps))] {
		if step := &book.Steps[i]; step.PreCheck != nil {
			rows = append(rows, Gate{step.Name, step.PreCheck})
		}
	}
	var found []PreCheckResult
	for _, row := range rows {
		switch result, err := runPreCheck(ctx, by, row.Check, run); {
		case err != nil:
			found = append(found, PreCheckResult{row.Name, reasonCannotObserve, err.Error(), true})
		case result.outcome != done:
			found = append(found, PreCheckResult{row.Name, cmp.Or(result.reason, reasonWaiting), result.message, !result.Passed()})
		}
	}
	return found
}

func runPreCheck(ctx context.Context, by clock.PassiveClock, check UpgradeStep, run Run) (Result, error) {
	ctx, cancel := WithTimeout(ctx, by, stepTimeout)
	defer cancel()
	return check(ctx, run)
}

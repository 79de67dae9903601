// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
)

// Obstacle is something that an upgrade would wait for.
type Obstacle struct {
	Step, Reason, Message string
}

// Foresee asks each step up to the committing one that can be asked ahead of
// time what it would wait for, and returns what they say, in the order of the
// runbook. Nothing is changed. What could not be found out is an obstacle too.
func Foresee(ctx context.Context, book Runbook, run Run) []Obstacle {
	var found []Obstacle
	for i := range book.Steps[:min(book.commit()+1, len(book.Steps))] {
		step := &book.Steps[i]
		if step.Early == nil {
			continue
		}
		result, err := early(ctx, step.Early, run)
		switch {
		case err != nil:
			found = append(found, Obstacle{step.Name, reasonUnobservable, err.Error()})
		case !result.Passed():
			found = append(found, Obstacle{step.Name, cmp.Or(result.reason, reasonWaiting), result.message})
		}
	}
	return found
}

func early(ctx context.Context, ask UpgradeStep, run Run) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return ask(ctx, run)
}

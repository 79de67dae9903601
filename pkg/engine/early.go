// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
)

// Prospect is what a step says ahead of time.
type Prospect struct {
	Step, Reason, Message string
	// InTheWay says that the upgrade would wait for it. If not, it is left out
	// for now, and the message says why.
	InTheWay bool
}

// Foresee asks each step up to the committing one that can be asked ahead of
// time what it would wait for, and returns what those say that are not well, in
// the order of the runbook. Nothing is changed. What could not be found out is in
// the way too.
func Foresee(ctx context.Context, book Runbook, run Run) []Prospect {
	var found []Prospect
	for i := range book.Steps[:min(book.commit()+1, len(book.Steps))] {
		step := &book.Steps[i]
		if step.Early == nil {
			continue
		}
		result, err := early(ctx, step.Early, run)
		switch {
		case err != nil:
			found = append(found, Prospect{step.Name, reasonUnobservable, err.Error(), true})
		case result.outcome != done:
			found = append(found, Prospect{step.Name, cmp.Or(result.reason, reasonWaiting), result.message, !result.Passed()})
		}
	}
	return found
}

func early(ctx context.Context, ask UpgradeStep, run Run) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return ask(ctx, run)
}

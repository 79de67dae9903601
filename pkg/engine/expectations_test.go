// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// instrument checks each call of each step, and crashes the process in it as planned.
func (w *world) instrument(book engine.Runbook) engine.Runbook {
	wrap := func(steps []engine.Step, part part) []engine.Step {
		wrapped := make([]engine.Step, len(steps))
		for i, step := range steps {
			wrapped[i] = step
			wrapped[i].Do = func(ctx context.Context, run engine.Run) (engine.Result, error) {
				w.check(book, i, part, run)
				w.calls = append(w.calls, step.Name)
				crashes := w.atCall(len(w.calls))
				if crashes == beforeActing {
					panic(crash{})
				}
				result, err := step.Do(ctx, run)
				if crashes == afterActing {
					panic(crash{})
				}
				return result, err
			}
		}
		return wrapped
	}
	all := book
	all.Steps, all.Cleanup, all.Finally = wrap(book.Steps, theSteps), wrap(book.Cleanup, theCleanup), wrap(book.Finally, theEnd)
	return all
}

// lines returns the record in a readable form: step, status, reason, and "…" for an unfinished
// step.
func lines(record history.Record) []string {
	var all []string
	for _, c := range record.Conditions {
		line := fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason)
		if c.CompleteTime == nil {
			line += " …"
		}
		all = append(all, line)
	}
	return all
}

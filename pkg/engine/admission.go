// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Admission describes an attempt whose steps have not begun. The attempt may begin if it is zero.
type Admission struct {
	// Closed is the answer of the first gate that does not pass, or zero if all gates pass.
	Closed Result
	// Begun reports that the cluster is past the commit. Such an attempt begins in any case: Pass adopts the
	// update.
	Begun bool
	// Early reports that the time of the attempt has not come, and Expired that its window is over.
	Early, Expired bool
}

// Admit evaluates the gates of a runbook and the window. It changes nothing. An early attempt, or one with an
// invalid spec, adopts no update. Admit returns an error if it cannot determine the answer.
func Admit(ctx context.Context, by clock.PassiveClock, book Runbook, record history.Record, c Constraints) (Admission, error) {
	now := by.Now()
	a := Admission{Early: c.isEarly(now), Expired: c.IsExpired(now)}
	var err error
	if a.Closed, err = book.Admitted(ctx, by, Run{Started: now, Since: now, Now: now}); err != nil || a.Early || a.Closed.Failed() {
		return a, err
	}
	phase, err := CurrentPhase(ctx, by, book, record)
	a.Begun = phase == PhaseCommitted || phase == PhaseThere
	return a, err
}

// Admitted returns the answer of the first gate of Admission that does not pass, or zero if all gates pass.
func (b Runbook) Admitted(ctx context.Context, by clock.PassiveClock, run Run) (Result, error) {
	ctx, cancel := WithTimeout(ctx, by, stepTimeout)
	defer cancel()
	return firstClosed(ctx, b.Admission, run)
}

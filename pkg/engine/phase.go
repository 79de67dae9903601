// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Observed is the state of the request for the target, as the cluster shows it.
type Observed int

// The states of a request, in the order of clusterstate.Observed.
const (
	ObservedNone    Observed = iota // the target is not requested
	ObservedIgnored                 // it is requested, and the cluster does nothing about it
	ObservedPending                 // it is requested, and has neither begun nor been refused
	ObservedRefused                 // the cluster refuses it, and tries again
	ObservedOther                   // another release is being installed or requested
	ObservedBegun                   // the target is being installed
	ObservedDone                    // the target is installed
)

// Recorded is the state of the commit in the record of an attempt, or in the Lease if the record was lost.
type Recorded int

// The recorded states.
const (
	// RecordedEarly is an attempt that may not request the target yet. An update of the cluster does not belong
	// to it.
	RecordedEarly Recorded = iota
	// RecordedNotRequested is an attempt that has requested nothing.
	RecordedNotRequested
	// RecordedRequested is an attempt that may have requested the target.
	RecordedRequested
	// RecordedCommitted is an attempt past the point of no return.
	RecordedCommitted
)

// CommitPhase is the state of an attempt before and after its commit, including who requested the target.
type CommitPhase int

// The phases of a commit.
const (
	PhaseUnknown    CommitPhase = iota // nothing is declared, and nothing is written
	PhaseOpen                          // nothing is requested
	PhaseUnsent                        // the request is noted, and the cluster does not show it
	PhaseOurs                          // the request of this attempt waits
	PhaseForeign                       // the request or the update is another client's
	PhaseLost                          // another client has replaced the request of this attempt
	PhaseCommitted                     // the update of this attempt has begun
	PhaseSuperseded                    // another update has replaced the one of this attempt
	PhaseThere                         // the target is installed, and this attempt has not requested it
)

// phases is the table of PhaseOf, by recorded and observed state.
var phases = [...][7]CommitPhase{
	//                    None            Ignored          Pending          Refused          Other            Begun           Done
	RecordedEarly:        {PhaseOpen, PhaseOpen, PhaseForeign, PhaseForeign, PhaseForeign, PhaseForeign, PhaseThere},
	RecordedNotRequested: {PhaseOpen, PhaseOpen, PhaseForeign, PhaseForeign, PhaseForeign, PhaseCommitted, PhaseThere},
	RecordedRequested:    {PhaseUnsent, PhaseUnsent, PhaseOurs, PhaseOurs, PhaseLost, PhaseCommitted, PhaseCommitted},
	RecordedCommitted:    {PhaseSuperseded, PhaseSuperseded, PhaseSuperseded, PhaseSuperseded, PhaseSuperseded, PhaseCommitted, PhaseCommitted},
}

// PhaseOf is the only place that decides whether an attempt is committed, and who made the request. An answer
// that would end an attempt or drop its request counts only if the API server has confirmed it.
func PhaseOf(r Recorded, o Observed, confirmed bool, err error) CommitPhase {
	switch {
	case r == RecordedCommitted && (err != nil || !confirmed):
		return PhaseCommitted
	case err != nil:
		return PhaseUnknown
	}
	switch phase := phases[r][o]; phase {
	case PhaseThere, PhaseSuperseded, PhaseLost:
		if !confirmed {
			return PhaseUnknown
		}
		return phase
	default:
		return phase
	}
}

// situation tells what prevents a step before the commit from acting.
type situation int

const (
	unhindered situation = iota
	held                 // by a hold or a pause
	expired              // the window or the time of the step is over
	cancelled            // by a user, or because the object is deleted
)

// reaction is the consequence of a phase in a situation.
type reaction int

const (
	ask      reaction = iota // nothing is written or declared: the question is asked again
	act                      // the gates, and then the request
	wait                     // the gates, and then for the cluster or for another client
	stop                     // a held step waits, and any other fails; what the cluster shows is left alone
	takeBack                 // the request is withdrawn, unless the update begins before: then it is adopted
	adopt                    // the update is the update of this attempt
)

// reactions is the table of reactions by phase and situation. The API server confirms a phase that ends an
// attempt or withdraws its request. After the commit, no situation matters.
var reactions = [...][4]reaction{
	//               unhindered, held, expired, cancelled
	PhaseUnknown:    {ask, ask, ask, ask},
	PhaseOpen:       {act, stop, stop, stop},
	PhaseUnsent:     {act, takeBack, takeBack, takeBack},
	PhaseOurs:       {act, takeBack, takeBack, takeBack}, // a request that stands is not made again
	PhaseForeign:    {wait, stop, stop, stop},
	PhaseLost:       {takeBack, takeBack, takeBack, takeBack},
	PhaseCommitted:  {adopt, adopt, adopt, adopt},
	PhaseSuperseded: {stop, stop, stop, stop},
	PhaseThere:      {adopt, stop, adopt, stop},
}

// recorded returns the state of the commit in a record.
func (b Runbook) recorded(record history.Record) Recorded {
	commit := b.CommitStep()
	switch {
	case committed(b, record.Conditions), commit != nil && record.CommenceTime != nil: // the Lease may hold the time alone
		return RecordedCommitted
	case commit == nil, commit.Commit.After != "" && !b.isPast(record.Conditions, commit.Commit.After):
		return RecordedEarly
	case record.RequestTime != nil:
		return RecordedRequested
	}
	return RecordedNotRequested
}

// phase returns the phase of an attempt, and the present answer of its committing step. It asks the API server
// if Run.Confirm is set or the cache does not suffice. After an error, the phase is PhaseUnknown.
func (b Runbook) phase(ctx context.Context, by clock.PassiveClock, record history.Record, run Run) (CommitPhase, Result, error) {
	recorded, commit := b.recorded(record), b.CommitStep()
	if recorded == RecordedEarly || recorded == RecordedCommitted || commit.Commit.Observe == nil {
		return PhaseOf(recorded, ObservedNone, false, nil), Result{}, nil // what the cluster shows decides nothing
	}
	ctx, cancel := WithTimeout(ctx, by, stepTimeout)
	defer cancel()
	run.Requested, run.RequestTime, run.RequestedImage = recorded == RecordedRequested, text.TimeOf(record.RequestTime), record.RequestedImage
	run.Started = Earliest(text.TimeOf(record.StartTime), text.TimeOf(record.RequestTime)) // a recovered record starts anew
	observed, answer, err := commit.Commit.Observe(ctx, run)
	phase := PhaseOf(recorded, observed, run.Confirm, err)
	if phase == PhaseUnknown && err == nil {
		run.Confirm = true
		observed, answer, err = commit.Commit.Observe(ctx, run)
		phase = PhaseOf(recorded, observed, true, err)
	}
	return phase, answer, err
}

// CurrentPhase returns the phase of an attempt by its record and the cluster. The cluster counts although there
// is a record, because another client may have started the same update. The clock measures the timeout.
func CurrentPhase(ctx context.Context, by clock.PassiveClock, book Runbook, record history.Record) (CommitPhase, error) {
	record.Conditions = renameSteps(book, record.Conditions)
	return book.ask(ctx, by, record, len(record.Conditions) > 0) // if no step has begun, a no ends nothing
}

// ask is phase without the answer of the step.
func (b Runbook) ask(ctx context.Context, by clock.PassiveClock, record history.Record, confirm bool) (CommitPhase, error) {
	phase, _, err := b.phase(ctx, by, record, Run{Confirm: confirm, Now: by.Now()})
	if err != nil {
		err = fmt.Errorf("determining whether the upgrade has commenced: %w", err)
	}
	return phase, err
}

// FailedAfterCommit returns the failure that a gate after the commit reports, for example because another
// update has replaced this one, or zero if no gate fails.
func (b Runbook) FailedAfterCommit(ctx context.Context, by clock.PassiveClock) (Result, error) {
	ctx, cancel := WithTimeout(ctx, by, stepTimeout)
	defer cancel()
	for _, step := range b.Steps[min(b.commitIndex()+1, len(b.Steps)):] {
		if closed, err := firstClosed(ctx, step.Gates, Run{Now: by.Now()}); err != nil || closed.Failed() {
			return closed, err
		}
	}
	return Result{}, nil
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// committed reports whether the record is past the point of no return.
func committed(book Runbook, conditions []history.StepCondition) bool {
	commit := book.CommitStep()
	if commit == nil {
		return false
	}
	at := indexOfCondition(conditions, commit.Name)
	return at >= 0 && conditions[at].Status == metav1.ConditionTrue && isFinished(conditions[at]) && conditions[at].Reason != ReasonNoUpdate
}

// isCancellable reports whether a cancellation affects the step. It affects all of Steps until the record is
// past the point of no return.
func isCancellable(book Runbook, conditions []history.StepCondition, step Step) bool {
	return book.indexOf(step.Name) < len(book.Steps) && !committed(book, conditions)
}

// IsPast reports whether a step is done or skipped by the record, or a later one of Steps has begun.
func (b Runbook) IsPast(record history.Record, name string) bool {
	return b.isPast(renameSteps(b, record.Conditions), name)
}

func (b Runbook) isPast(conditions []history.StepCondition, name string) bool {
	later := false
	for i := range b.Steps {
		at := indexOfCondition(conditions, b.Steps[i].Name)
		switch {
		case b.Steps[i].Name == name:
			later = true
			if at >= 0 && isFinished(conditions[at]) && !hasFailed(conditions[at]) {
				return true
			}
		case later && at >= 0:
			return true
		}
	}
	return false
}

// ResumeAfter restores the lost record of an upgrade that was past the named step: it finishes the steps up to
// that one. It returns the record unchanged if the name is empty.
func ResumeAfter(book Runbook, record history.Record, name string, now time.Time) history.Record {
	if name == "" {
		return record
	}
	record.Conditions = slices.Clone(record.Conditions)
	at := toMetaTime(now)
	for i := range book.Steps {
		step := book.Steps[i]
		if indexOfCondition(record.Conditions, step.Name) < 0 {
			record.Conditions = insert(book, record.Conditions, finishedCondition(step, Skip(reasonAlreadyReached, "the record was lost, and the upgrade is past this step"), at))
		}
		if step.Name == name {
			break
		}
	}
	return record
}

// WithdrawalOf returns the run by which the request that a record shows is withdrawn.
func WithdrawalOf(record history.Record, now time.Time) Run {
	return Run{Now: now, Requested: record.RequestTime != nil && record.CommenceTime == nil, RequestedImage: record.RequestedImage}
}

// Withdraw withdraws the request of an attempt that has made one. It returns an error if the request may still
// stand.
func (b Runbook) Withdraw(ctx context.Context, run Run) error {
	commit := b.CommitStep()
	if !run.Requested || commit == nil || commit.Commit.Withdraw == nil {
		return nil
	}
	result, err := commit.Commit.Withdraw(ctx, run)
	if err == nil && !result.Passed() {
		err = errors.New(result.message)
	}
	return err
}

// isCleanup reports whether a step runs after another one has failed.
func (b Runbook) isCleanup(name string) bool {
	return slices.ContainsFunc(b.Cleanup, func(step Step) bool { return step.Name == name })
}

// beforeCommit reports whether the step leads up to a commit that has not happened. The constraints affect only
// such steps.
func beforeCommit(book Runbook, conditions []history.StepCondition, step Step) bool {
	index := book.indexOf(step.Name)
	return index < len(book.Steps) && index <= book.commitIndex() && !committed(book, conditions)
}

// isInWindow reports whether the window affects the step. It ends with the commit, or, if the runbook has none,
// with the first step.
func isInWindow(book Runbook, conditions []history.StepCondition, step Step) bool {
	return beforeCommit(book, conditions, step) && (book.CommitStep() != nil || book.indexOf(step.Name) == 0)
}

// adoptCommitted adopts an update that has begun although the record does not show it: the record was lost, or
// another client started the update. With a record, the cache suffices, because each pass asks it.
func (p *pass) adoptCommitted(ctx context.Context) error {
	conditions, commit := p.record.Conditions, p.book.CommitStep()
	if commit == nil || committed(p.book, conditions) || failure(p.book, conditions) != nil {
		return nil
	}
	begun := len(conditions) > 0 && p.record.StartTime != nil // ResumeAfter may have added conditions
	if begun && indexOfCondition(conditions, commit.Name) >= 0 {
		return nil
	}
	phase, err := p.book.ask(ctx, p.engine.Clock, p.record, len(conditions) > 0 && !begun)
	switch {
	case reactions[phase][p.constraints.situation(p.engine.Clock.Now())] == adopt:
		_, err = p.adopt(ctx, Step{})
		return err
	case begun:
		return nil // an error is reported by the step itself in its turn
	}
	return err
}

// adopt finishes all steps up to the committing one, and those up to the milestone ControlPlaneUpgraded if the
// cluster has reached it. It returns the answer of the current step.
func (p *pass) adopt(ctx context.Context, current Step) (Result, error) {
	last := p.book.commitIndex()
	for i := last + 1; i < len(p.book.Steps); i++ {
		step := p.book.Steps[i]
		if step.Milestone != MilestoneControlPlaneUpgraded {
			continue
		}
		reached, err := step.reached(ctx, p.engine.Clock)
		if err != nil {
			return Result{}, fmt.Errorf("determining whether the control plane is upgraded: %w", err)
		}
		if reached {
			last = i
		}
	}
	now := p.now()
	result := Skip(reasonAlreadyReached, "the cluster is past this step already")
	for i := range last + 1 {
		step := p.book.Steps[i]
		switch at := indexOfCondition(p.record.Conditions, step.Name); {
		case step.Name == current.Name:
		case at < 0:
			p.record.Conditions = insert(p.book, p.record.Conditions, finishedCondition(step, result, now))
		case !isFinished(p.record.Conditions[at]):
			applyResult(&p.record.Conditions[at], result, nil, now)
		}
	}
	return result, nil
}

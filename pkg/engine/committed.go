// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Committed reports whether the point of no return is passed: by the record, or else by the
// cluster, through the Reached of the committing step. The cluster counts although there is a
// record: another client may have started the very update. This is the only answer to that
// question; the window, a hold, a cancellation, a deletion, and an adoption all use it. The cluster
// does not count until the step of Runbook.AdoptAfter is done. The clock measures the timeout.
func Committed(ctx context.Context, by clock.PassiveClock, book Runbook, record history.Record) (bool, error) {
	commit := book.commitIndex()
	if commit == len(book.Steps) {
		return false, nil
	}
	switch conditions := renameSteps(book, record.Conditions); {
	case committed(book, conditions):
		return true, nil
	case !book.adopts(conditions):
		return false, nil
	}
	step := book.Steps[commit]
	determine := step.reached
	if len(record.Conditions) == 0 { // no step has begun, so that a no ends nothing
		determine = step.observed
	}
	reached, err := determine(ctx, by)
	if err != nil {
		return false, fmt.Errorf("determining whether the upgrade has commenced: %w", err)
	}
	return reached, nil
}

// observed is reached for an answer that ends nothing and is needed in each pass: Observe reads no
// more than the cache, whereas Reached confirms a no.
func (s Step) observed(ctx context.Context, by clock.PassiveClock) (bool, error) {
	if s.Observe == nil {
		return s.reached(ctx, by)
	}
	ctx, cancel := WithTimeout(ctx, by, stepTimeout)
	defer cancel()
	result, err := s.Observe(ctx, Run{})
	return err == nil && result.outcome == done, err
}

// committed reports whether the record holds that the point of no return is passed.
func committed(book Runbook, conditions []history.StepCondition) bool {
	commit := book.commitIndex()
	if commit == len(book.Steps) {
		return false
	}
	at := indexOfCondition(conditions, book.Steps[commit].Name)
	return at >= 0 && conditions[at].Status == metav1.ConditionTrue && isFinished(conditions[at]) &&
		!slices.Contains(book.UncommittedReasons, conditions[at].Reason)
}

// isCancellable reports whether a cancellation affects the step: one of Steps, as long as the record
// does not hold that the point of no return is passed.
func isCancellable(book Runbook, conditions []history.StepCondition, step Step) bool {
	return book.indexOf(step.Name) < len(book.Steps) && !committed(book, conditions)
}

// IsPast reports whether the record holds that a step is done or skipped, or that a later one of
// Steps has begun.
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

// adopts reports whether an upgrade that the cluster has begun counts as that of the record.
func (b Runbook) adopts(conditions []history.StepCondition) bool {
	return b.AdoptAfter == "" || b.isPast(conditions, b.AdoptAfter)
}

// ResumeAfter returns a record in which all steps up to the one of that name are finished: the record
// of an upgrade was lost, and it is known otherwise that the upgrade was past that step.
func ResumeAfter(book Runbook, record history.Record, name string, now time.Time) history.Record {
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

// beforeCommit reports whether the step leads up to a commit that has not happened: then the
// constraints affect it.
func beforeCommit(book Runbook, conditions []history.StepCondition, step Step) bool {
	index := book.indexOf(step.Name)
	return index < len(book.Steps) && index <= book.commitIndex() && !committed(book, conditions)
}

// adoptCommitted continues with the rest of an upgrade that is committed although its record does
// not hold it: the record was lost, or another client has started the update. With a record, only
// Observe of the committing step is called: it is called in each pass, and Committed may read more
// than the cache.
func (p *pass) adoptCommitted(ctx context.Context) error {
	conditions := p.record.Conditions
	commit := p.book.commitIndex()
	if commit == len(p.book.Steps) || committed(p.book, conditions) || failure(p.book, conditions) != nil || !p.book.adopts(conditions) {
		return nil
	}
	if len(conditions) == 0 || p.record.StartTime == nil { // ResumeAfter may have added conditions
		isCommitted, err := Committed(ctx, p.engine.Clock, p.book, p.record)
		if err != nil || !isCommitted {
			return err
		}
		_, err = p.adopt(ctx, Step{})
		return err
	}
	step := p.book.Steps[commit]
	if step.Observe == nil || indexOfCondition(conditions, step.Name) >= 0 {
		return nil
	}
	ctx, cancel := WithTimeout(ctx, p.engine.Clock, stepTimeout)
	defer cancel()
	now := p.engine.Clock.Now()
	result, err := step.Observe(ctx, Run{Started: timeOf(p.record.StartTime), Since: now, Now: now})
	if err == nil && result.outcome == done {
		_, err = p.adopt(ctx, Step{})
		return err
	}
	return nil // an error is reported by the step itself in its turn
}

// adopt finishes all steps up to the committing one, and up to the milestone ControlPlaneUpgraded
// if that is reached, too. It returns the answer for the current step.
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

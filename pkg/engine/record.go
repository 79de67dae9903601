// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// The reasons that the engine itself records.
const (
	reasonWaiting            = "Waiting"
	reasonPaused             = "Paused"
	reasonCannotObserve      = "CannotObserve"
	reasonWindowMissed       = "WindowMissed"
	reasonTimedOut           = "TimedOut"
	reasonAlreadyReached     = "AlreadyReached"
	reasonAddedLater         = "AddedLater"
	reasonRemovedFromRunbook = "RemovedFromRunbook"
)

// isFinished says whether a step has ended, well or not.
func isFinished(c history.StepCondition) bool { return c.CompleteTime != nil }

// hasFailed says whether a step has ended, and not well.
func hasFailed(c history.StepCondition) bool {
	return isFinished(c) && c.Status == metav1.ConditionFalse
}

// indexOfCondition returns the index of the condition of that type, or -1. If a damaged
// record has several, one that is over wins: a finished step stays finished.
func indexOfCondition(conditions []history.StepCondition, name string) int {
	at := -1
	for i := range conditions {
		if conditions[i].Type == name && (at < 0 || isFinished(conditions[i]) && !isFinished(conditions[at])) {
			at = i
		}
	}
	return at
}

// migrate makes the renamed record speak of the table as it is now: it closes what
// stands before the furthest finished step but was added later, and what is
// waited for but was removed. Nothing is dropped. It changes the slice in place.
func migrate(book Runbook, conditions []history.StepCondition, now metav1.Time) []history.StepCondition {
	repair(book, conditions, now)

	furthest := -1
	for i := range book.Steps {
		if at := indexOfCondition(conditions, book.Steps[i].Name); at >= 0 && isFinished(conditions[at]) {
			furthest = i
		}
	}
	for i := range max(furthest, 0) {
		if indexOfCondition(conditions, book.Steps[i].Name) < 0 {
			conditions = insert(book, conditions, finishedCondition(book.Steps[i].Name,
				Skip(reasonAddedLater, "this step was added to the runbook after the upgrade had passed it"), now))
		}
	}
	return conditions
}

// renameSteps gives each condition the name that its step has now, in a new slice.
func renameSteps(book Runbook, conditions []history.StepCondition) []history.StepCondition {
	conditions = slices.Clone(conditions)
	for _, step := range book.allSteps() {
		for _, formerName := range step.FormerNames {
			at := indexOfCondition(conditions, formerName)
			if at >= 0 && indexOfCondition(conditions, step.Name) < 0 {
				conditions[at].Type = step.Name
			}
		}
	}
	return conditions
}

// repair closes what was removed from the table while it was being tried, and lets
// a step whose beginning is not recorded have begun now.
func repair(book Runbook, conditions []history.StepCondition, now metav1.Time) {
	for i := range conditions {
		c := &conditions[i]
		if isFinished(*c) {
			continue
		}
		if c.StartTime == nil {
			c.StartTime = &now
		}
		if book.indexOf(c.Type) < 0 {
			applyResult(c, Skip(reasonRemovedFromRunbook, "this step is no longer part of the runbook"), nil, now)
		}
	}
}

// insert adds a condition where the table has its step.
func insert(book Runbook, conditions []history.StepCondition, c history.StepCondition) []history.StepCondition {
	index := book.indexOf(c.Type)
	at := slices.IndexFunc(conditions, func(other history.StepCondition) bool { return book.indexOf(other.Type) > index })
	if at < 0 {
		at = len(conditions)
	}
	return slices.Insert(conditions, at, c)
}

// startedCondition is the condition of a step that is about to be tried for the first time.
func startedCondition(step Step, now metav1.Time) history.StepCondition {
	return history.StepCondition{
		Type: step.Name, Status: metav1.ConditionFalse, Reason: ReasonStarted, Message: step.Doc,
		StartTime: &now, LastProbeTime: &now, LastTransitionTime: &now,
	}
}

// finishedCondition is the condition of a step that is over without having been tried.
func finishedCondition(name string, result Result, now metav1.Time) history.StepCondition {
	c := history.StepCondition{Type: name, StartTime: &now}
	applyResult(&c, result, nil, now)
	return c
}

// applyResult writes into the condition what the step answered. When a step that
// waits was last looked at is known once that is saved.
func applyResult(c *history.StepCondition, result Result, err error, now metav1.Time) {
	status := metav1.ConditionFalse
	c.Reason, c.Message = result.reason, result.message
	switch {
	case err != nil:
		status = metav1.ConditionUnknown
		c.Reason, c.Message = reasonCannotObserve, err.Error()
	case result.Passed():
		status = metav1.ConditionTrue
		c.CompleteTime, c.LastProbeTime = &now, &now
	case result.Failed():
		c.CompleteTime, c.LastProbeTime = &now, &now
	case c.Reason == "":
		c.Reason = reasonWaiting
	}
	c.Message = text.Truncate(strings.ToValidUTF8(c.Message, "\uFFFD"), maxMessage) // JSON could not hold it otherwise
	if c.Status != status || c.LastTransitionTime == nil || c.LastTransitionTime.After(now.Time) {
		c.Status, c.LastTransitionTime = status, &now
	}
}

// maxMessage bounds a message, in bytes: people read it, and the record is kept in one object.
const maxMessage = 2048

// toMetaTime is a time as the record can hold it: whole seconds.
func toMetaTime(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// copyRecord is a copy whose conditions can be changed. The times stay shared: they
// are replaced, never written into.
func copyRecord(record history.Record) history.Record {
	record.Conditions = slices.Clone(record.Conditions)
	return record
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// minNonZero is the smaller of two durations of which 0 means none.
func minNonZero(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

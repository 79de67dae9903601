// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// The reasons that the engine itself records.
const (
	reasonWaiting       = "Waiting"
	reasonHeld          = "Paused"
	reasonUnobservable  = "CannotObserve"
	reasonWindowMissed  = "WindowMissed"
	reasonTimedOut      = "TimedOut"
	reasonAlreadySo     = "AlreadyReached"
	reasonAddedLater    = "AddedLater"
	reasonNoLongerTaken = "RemovedFromRunbook"
)

// over says whether a step has ended, well or not.
func over(c history.StepCondition) bool { return c.CompleteTime != nil }

// hasFailed says whether a step has ended, and not well.
func hasFailed(c history.StepCondition) bool {
	return over(c) && c.Status == metav1.ConditionFalse
}

// find returns the index of the condition of that type, or -1. If a damaged
// record has several, one that is over wins: a finished step stays finished.
func find(conditions []history.StepCondition, name string) int {
	at := -1
	for i := range conditions {
		if conditions[i].Type == name && (at < 0 || over(conditions[i]) && !over(conditions[at])) {
			at = i
		}
	}
	return at
}

// align makes the renamed record speak of the table as it is now: it closes what
// stands before the furthest finished step but was added later, and what is
// waited for but was removed. Nothing is dropped. It changes the slice in place.
func align(book Runbook, conditions []history.StepCondition, now metav1.Time) []history.StepCondition {
	mend(book, conditions, now)

	furthest := -1
	for i := range book.Steps {
		if at := find(conditions, book.Steps[i].Name); at >= 0 && over(conditions[at]) {
			furthest = i
		}
	}
	for i := range max(furthest, 0) {
		if find(conditions, book.Steps[i].Name) < 0 {
			conditions = insert(book, conditions, closed(book.Steps[i].Name,
				Skip(reasonAddedLater, "this step was added to the runbook after the upgrade had passed it"), now))
		}
	}
	return conditions
}

// rename gives each condition the name that its step has now, in a new slice.
func rename(book Runbook, conditions []history.StepCondition) []history.StepCondition {
	conditions = slices.Clone(conditions)
	for _, step := range book.all() {
		for _, was := range step.Was {
			at := find(conditions, was)
			if at >= 0 && find(conditions, step.Name) < 0 {
				conditions[at].Type = step.Name
			}
		}
	}
	return conditions
}

// mend closes what was removed from the table while it was being tried, and lets
// a step whose beginning is not recorded have begun now.
func mend(book Runbook, conditions []history.StepCondition, now metav1.Time) {
	for i := range conditions {
		c := &conditions[i]
		if over(*c) {
			continue
		}
		if c.StartTime == nil {
			c.StartTime = &now
		}
		if book.place(c.Type) < 0 {
			conclude(c, Skip(reasonNoLongerTaken, "this step is no longer part of the runbook"), nil, now)
		}
	}
}

// insert adds a condition where the table has its step.
func insert(book Runbook, conditions []history.StepCondition, c history.StepCondition) []history.StepCondition {
	mine := book.place(c.Type)
	at := slices.IndexFunc(conditions, func(other history.StepCondition) bool { return book.place(other.Type) > mine })
	if at < 0 {
		at = len(conditions)
	}
	return slices.Insert(conditions, at, c)
}

// begun is the condition of a step that is about to be tried for the first time.
func begun(step Step, now metav1.Time) history.StepCondition {
	return history.StepCondition{
		Type: step.Name, Status: metav1.ConditionFalse, Reason: ReasonStarted, Message: step.Doc,
		StartTime: &now, LastProbeTime: &now, LastTransitionTime: &now,
	}
}

// closed is the condition of a step that is over without having been tried.
func closed(name string, result Result, now metav1.Time) history.StepCondition {
	c := history.StepCondition{Type: name, StartTime: &now}
	conclude(&c, result, nil, now)
	return c
}

// conclude writes into the condition what the step answered. When a step that
// waits was last looked at is known once that is saved.
func conclude(c *history.StepCondition, result Result, err error, now metav1.Time) {
	status := metav1.ConditionFalse
	c.Reason, c.Message = result.reason, result.message
	switch {
	case err != nil:
		status = metav1.ConditionUnknown
		c.Reason, c.Message = reasonUnobservable, err.Error()
	case result.Passed():
		status = metav1.ConditionTrue
		c.CompleteTime, c.LastProbeTime = &now, &now
	case result.Failed():
		c.CompleteTime, c.LastProbeTime = &now, &now
	case c.Reason == "":
		c.Reason = reasonWaiting
	}
	c.Message = Clip(strings.ToValidUTF8(c.Message, "\uFFFD"), maxMessage) // JSON could not hold it otherwise
	if c.Status != status || c.LastTransitionTime == nil || c.LastTransitionTime.After(now.Time) {
		c.Status, c.LastTransitionTime = status, &now
	}
}

// maxMessage bounds a message, in bytes: people read it, and the record is kept in one object.
const maxMessage = 2048

// Clip shortens a text to at most that many bytes and an ellipsis, never within a character.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// stamp is a time as the record can hold it: whole seconds.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// shallow is a copy whose conditions can be changed. The times stay shared: they
// are replaced, never written into.
func shallow(record history.History) history.History {
	record.Conditions = slices.Clone(record.Conditions)
	return record
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// earlier is the smaller of two durations of which 0 means none.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

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

// ReasonPaused is the reason of a step that may not act because the upgrade is held.
const ReasonPaused = "Paused"

// The reasons that the engine itself records.
const (
	reasonWaiting            = "Waiting"
	reasonCannotObserve      = "CannotObserve"
	reasonWindowMissed       = "WindowMissed"
	reasonTimedOut           = "TimedOut"
	reasonAlreadyReached     = "AlreadyReached"
	reasonAddedLater         = "AddedLater"
	reasonRemovedFromRunbook = "RemovedFromRunbook"
)

// isFinished reports whether a step has ended, successfully or not.
func isFinished(c history.StepCondition) bool { return c.CompleteTime != nil }

// hasFailed reports whether a step has failed.
func hasFailed(c history.StepCondition) bool { return Classify(c) == ClassFailed }

// LastAnswer returns the last reason and message of a step, apart from errors.
func LastAnswer(c history.StepCondition) history.StepAnswer {
	if c.LastAnswer != nil {
		return *c.LastAnswer
	}
	return history.StepAnswer{Reason: c.Reason, Message: c.Message}
}

// indexOfCondition returns the index of the condition of that type, or -1. If a damaged record has several, it
// prefers a finished one, because a finished step stays finished.
func indexOfCondition(conditions []history.StepCondition, name string) int {
	at := -1
	for i := range conditions {
		if conditions[i].Type == name && (at < 0 || isFinished(conditions[i]) && !isFinished(conditions[at])) {
			at = i
		}
	}
	return at
}

// migrate adapts a record to the current table. It finishes steps that were added before the furthest finished
// step, and running steps that were removed. It drops nothing. If nothing changes, it returns the same slice,
// otherwise a new one.
func migrate(book Runbook, conditions []history.StepCondition, now metav1.Time) []history.StepCondition {
	conditions = slices.Clip(repair(book, conditions, now))

	furthest := -1
	for i := range book.Steps {
		if at := indexOfCondition(conditions, book.Steps[i].Name); at >= 0 && isFinished(conditions[at]) {
			furthest = i
		}
	}
	for i := range max(furthest, 0) {
		if indexOfCondition(conditions, book.Steps[i].Name) < 0 {
			conditions = insert(book, conditions, finishedCondition(book.Steps[i],
				Skip(reasonAddedLater, "this step was added to the runbook after the upgrade had passed it"), now))
		}
	}
	return conditions
}

// renameSteps gives each condition the current name of its step. If nothing changes, it returns the same slice,
// otherwise a new one.
func renameSteps(book Runbook, conditions []history.StepCondition) []history.StepCondition {
	copied := false
	for _, step := range book.allSteps() {
		for _, formerName := range step.FormerNames {
			at := indexOfCondition(conditions, formerName)
			if at < 0 || indexOfCondition(conditions, step.Name) >= 0 {
				continue
			}
			if !copied {
				conditions, copied = slices.Clone(conditions), true
			}
			conditions[at].Type = step.Name
		}
	}
	return conditions
}

// repair finishes running steps that were removed from the table, and replaces missing start times and times in
// the future with now. If nothing changes, it returns the same slice, otherwise a new one.
func repair(book Runbook, conditions []history.StepCondition, now metav1.Time) []history.StepCondition {
	damaged := func(c history.StepCondition) bool {
		return !isFinished(c) && (c.StartTime == nil || hasFutureTime(&c, now) || book.indexOf(c.Type) < 0)
	}
	if !slices.ContainsFunc(conditions, damaged) {
		return conditions
	}
	conditions = slices.Clone(conditions)
	for i := range conditions {
		c := &conditions[i]
		if isFinished(*c) {
			continue
		}
		if c.StartTime == nil {
			c.StartTime = &now
		}
		for _, at := range recordedTimes(c) {
			if isFuture(*at, now) {
				*at = &now
			}
		}
		if book.indexOf(c.Type) < 0 {
			applyResult(c, Skip(reasonRemovedFromRunbook, "this step is no longer part of the runbook"), nil, now)
		}
	}
	return conditions
}

// recordedTimes returns the recorded times of a running step that start a duration.
func recordedTimes(c *history.StepCondition) []**metav1.Time {
	return []**metav1.Time{&c.StartTime, &c.ReasonTime, &c.ProgressTime, &c.LastTransitionTime}
}

// hasFutureTime reports whether a time of a running step is in the future. A clock that was a day ahead must
// not move a deadline by a day.
func hasFutureTime(c *history.StepCondition, now metav1.Time) bool {
	return slices.ContainsFunc(recordedTimes(c), func(at **metav1.Time) bool { return isFuture(*at, now) })
}

func isFuture(at *metav1.Time, now metav1.Time) bool {
	return at != nil && at.After(now.Add(text.MaxClockSkew))
}

// insert adds a condition in the order of the table.
func insert(book Runbook, conditions []history.StepCondition, c history.StepCondition) []history.StepCondition {
	index := book.indexOf(c.Type)
	at := slices.IndexFunc(conditions, func(other history.StepCondition) bool { return book.indexOf(other.Type) > index })
	if at < 0 {
		at = len(conditions)
	}
	return slices.Insert(conditions, at, c)
}

// startedCondition returns the condition of a step before its first call.
func startedCondition(step Step, milestone Milestone, now metav1.Time) history.StepCondition {
	return history.StepCondition{
		Type: step.Name, Status: metav1.ConditionFalse, Reason: ReasonStarted, Message: step.Doc, Milestone: milestone,
		StartTime: &now, LastProbeTime: &now, LastTransitionTime: &now,
	}
}

// finishedCondition returns the condition of a step that finishes without a call.
func finishedCondition(step Step, result Result, now metav1.Time) history.StepCondition {
	c := history.StepCondition{Type: step.Name, Milestone: step.Milestone, StartTime: &now}
	applyResult(&c, result, nil, now)
	return c
}

// complete adds what records of earlier releases lack: the milestones, and that the committing step may have
// acted.
func (p *pass) complete() {
	for _, step := range p.book.allSteps() {
		at := indexOfCondition(p.record.Conditions, step.Name)
		if step.Milestone == "" || at < 0 || p.record.Conditions[at].Milestone != "" {
			continue
		}
		c := &p.record.Conditions[at]
		c.Milestone = p.milestone(*step)
		if step.Commit != nil && step.Commit.Withdraw != nil && p.record.RequestTime == nil && c.Status != metav1.ConditionTrue {
			p.record.RequestTime = c.StartTime
		}
	}
}

// applyResult writes the answer of the step into the condition. It leaves the probe time of a waiting step to
// the save, and keeps the last answer if there is an error.
func applyResult(c *history.StepCondition, result Result, err error, now metav1.Time) {
	status := metav1.ConditionFalse
	if err != nil {
		status = metav1.ConditionUnknown
		keepLastAnswer(c)
		c.Reason, c.Message = reasonCannotObserve, err.Error()
		if c.LastAnswer != nil && c.LastAnswer.Message != "" {
			since := &now
			if c.Status == status {
				since = c.LastTransitionTime
			}
			c.Message = limit(validUTF8(c.Message), maxMessage/2) + lastSeen("before", since) + c.LastAnswer.Message
		}
	} else {
		c.Reason, c.Message, c.LastAnswer = result.reason, result.message, nil
		c.Fingerprint = limit(result.progress.Fingerprint, maxFingerprint)
		if changed := toMetaTime(result.progress.Changed); changed.After(later(text.TimeOf(c.StartTime), text.TimeOf(c.ProgressTime))) {
			c.ProgressTime = &changed
		}
		if result.items != nil { // a hold or a deadline answers without the step
			c.Items = result.Items()
		}
	}
	switch {
	case err != nil:
	case result.Passed():
		status = metav1.ConditionTrue
		c.CompleteTime, c.LastProbeTime = &now, &now
	case result.Failed():
		c.CompleteTime, c.LastProbeTime = &now, &now
	case c.Reason == "":
		c.Reason = reasonWaiting
	}
	c.Message = text.Truncate(validUTF8(c.Message), maxMessage)
	if c.Status != status || c.LastTransitionTime == nil || c.LastTransitionTime.After(now.Time) {
		c.Status, c.LastTransitionTime = status, &now
	}
}

// lastSeen introduces an earlier answer of a step, with its time unless it is nil.
func lastSeen(preposition string, t *metav1.Time) string {
	if t == nil {
		return "; last seen: "
	}
	return "; last seen " + preposition + " " + text.FormatTime(t.Time) + ": "
}

// keepLastAnswer keeps the last answer of a step before a series of errors.
func keepLastAnswer(c *history.StepCondition) {
	if c.LastAnswer == nil && c.Status == metav1.ConditionFalse && c.Reason != ReasonStarted && c.Reason != "" {
		c.LastAnswer = &history.StepAnswer{Reason: c.Reason, Message: limit(c.Message, maxMessage)}
	}
}

// maxFingerprint bounds a fingerprint, in bytes.
const maxFingerprint = 64

// maxMessage bounds a message, in bytes, because all messages are part of one object.
const maxMessage = 2048

// validUTF8 returns the message as valid UTF-8, as JSON requires.
func validUTF8(message string) string { return strings.ToValidUTF8(message, "\uFFFD") }

// limit shortens a text to a number of bytes, as valid UTF-8.
func limit(message string, maxBytes int) string {
	if len(message) <= maxBytes {
		return message
	}
	return text.Fit(validUTF8(message), maxBytes)
}

// toMetaTime returns a time in whole seconds, as the record stores it.
func toMetaTime(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// copyRecord returns a copy whose conditions can be changed. It shares the times: they are replaced, never
// written into.
func copyRecord(record history.Record) history.Record {
	record.Conditions = slices.Clone(record.Conditions)
	return record
}

// minNonZero returns the smaller of two durations, ignoring zero.
func minNonZero(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readiness makes the conditions Ready, Reconciling, and Stalled, by which tools that know nothing
// about a kind see how an object is: kubectl wait, Flux, Argo CD, and everything else that uses kstatus.
package readiness

import (
	"regexp"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxMessage bounds the message of a condition, in bytes.
const maxMessage = 1024

// unspecified is the reason of a condition whose verdict has none, because the record of the object is damaged.
const unspecified = "Unspecified"

// reasonPattern and maxReason match the reasons that the API server accepts in a condition, but for colons and commas. A pattern
// with the limit would take 200 KiB of memory.
var reasonPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

const maxReason = 256

// Reason returns the reason if a condition may have it, and otherwise the other one: the API server rejects the whole
// status. A stranger may have written the object that it comes from.
func Reason(reason, otherwise string) string {
	if len(reason) <= maxReason && reasonPattern.MatchString(reason) {
		return reason
	}
	return otherwise
}

// Level is how an object is.
type Level int

const (
	// NotDue is an object whose time has not come. It has none of the conditions.
	NotDue Level = iota
	// Ready is an object that is as its spec requests.
	Ready
	// Reconciling is an object that becomes ready without a person.
	Reconciling
	// Waiting is an object that is paused or held: nothing happens to it, and nothing is wrong.
	Waiting
	// Unknown is an object whose state cannot be read now.
	Unknown
	// Stalled is an object that does not continue without a person.
	Stalled
)

// Verdict is a level, and the reason and the message that the conditions have.
type Verdict struct {
	Level           Level
	Reason, Message string
}

// Of returns the verdict of an object whose condition tells everything: it is ready if the condition is
// true, and otherwise what the level says.
func Of(c metav1.Condition, otherwise Level) Verdict {
	if c.Status == metav1.ConditionTrue {
		otherwise = Ready
	}
	return Verdict{otherwise, c.Reason, c.Message}
}

// Conditions returns the conditions Ready, Reconciling, and Stalled. One without a status is absent:
// Reconciling and Stalled are true or absent.
func (v Verdict) Conditions() [3]metav1.Condition {
	var ready, reconciling, stalled metav1.ConditionStatus
	switch v.Level {
	case NotDue:
	case Ready:
		ready = metav1.ConditionTrue
	case Reconciling:
		ready, reconciling = metav1.ConditionFalse, metav1.ConditionTrue
	case Waiting:
		ready = metav1.ConditionFalse
	case Unknown:
		ready, reconciling = metav1.ConditionUnknown, metav1.ConditionTrue
	case Stalled:
		ready, stalled = metav1.ConditionFalse, metav1.ConditionTrue
	}
	reason, message := Reason(v.Reason, unspecified), text.Truncate(v.Message, maxMessage)
	return [...]metav1.Condition{
		{Type: history.ConditionReady, Status: ready, Reason: reason, Message: message},
		{Type: history.ConditionReconciling, Status: reconciling, Reason: reason, Message: message},
		{Type: history.ConditionStalled, Status: stalled, Reason: reason, Message: message},
	}
}

// Set sets and removes the conditions. The time of a condition whose status stays is kept.
func (v Verdict) Set(conditions *[]metav1.Condition, generation int64, now time.Time) {
	for _, c := range v.Conditions() {
		SetCondition(conditions, c, generation, now)
	}
}

// SetAccepted sets a condition that tells everything about an object, and with it the conditions that follow: the object is
// ready, or stalled until it is corrected.
func SetAccepted(conditions *[]metav1.Condition, c metav1.Condition, generation int64, now time.Time) {
	SetCondition(conditions, c, generation, now)
	Of(c, Stalled).Set(conditions, generation, now)
}

// maxConditionMessage bounds the message of every condition, in bytes.
const maxConditionMessage = 4096

// SetCondition sets a condition as it holds now, for the given generation of the object, or removes it if it has no
// status. The time of a condition whose status stays is kept, unless the clock that set it was ahead, or the API server
// rejects it. Now is cut to seconds, as the API server stores it.
func SetCondition(conditions *[]metav1.Condition, c metav1.Condition, generation int64, now time.Time) {
	if c.Status == "" {
		apimeta.RemoveStatusCondition(conditions, c.Type)
		return
	}
	c.Reason, c.Message = Reason(c.Reason, unspecified), text.Truncate(strings.ToValidUTF8(c.Message, "\uFFFD"), maxConditionMessage)
	c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now.Truncate(time.Second))
	old := apimeta.FindStatusCondition(*conditions, c.Type)
	if old != nil && (old.LastTransitionTime.IsZero() || old.LastTransitionTime.After(now.Add(text.MaxClockSkew)) || old.LastTransitionTime.UTC().Year() < 0) {
		old.Status = "" // so that the time is replaced
	}
	apimeta.SetStatusCondition(conditions, c)
}

// IsOwn reports whether a condition is one of those that Set maintains.
func IsOwn(name string) bool {
	return name == history.ConditionReady || name == history.ConditionReconciling || name == history.ConditionStalled
}

// WithSlow returns the conditions with the condition Slow of a status that the previous release wrote, in
// which it was named Stalled: it is the same condition, so it is not published again.
func WithSlow(conditions []metav1.Condition) []metav1.Condition {
	former := slices.IndexFunc(conditions, func(c metav1.Condition) bool {
		return c.Type == history.ConditionStalled && c.Status == metav1.ConditionTrue
	})
	isNew := slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
		return c.Type == history.ConditionReady || c.Type == history.ConditionSlow
	})
	if former < 0 || isNew {
		return conditions
	}
	conditions = slices.Clone(conditions)
	conditions[former].Type = history.ConditionSlow
	return conditions
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readiness computes the conditions Ready, Reconciling, and Stalled. Tools that do not know
// a kind use them to determine the health of an object: kubectl wait, Flux, Argo CD, and everything
// else based on kstatus.
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

// maxMessage is the maximum size of a condition's message, in bytes.
const maxMessage = 1024

// unspecified is the reason of a condition whose verdict has no reason because the object's record
// is damaged.
const unspecified = "Unspecified"

// reasonPattern and maxReason match the reasons that the API server accepts in a condition, except
// those with colons and commas. A pattern that includes the length would take 200 KiB of memory.
var reasonPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

const maxReason = 256

// Reason returns reason if it is valid in a condition, and otherwise the alternative. An invalid
// reason would make the API server reject the whole status, and the reason may come from an object
// written by another client.
func Reason(reason, otherwise string) string {
	if len(reason) <= maxReason && reasonPattern.MatchString(reason) {
		return reason
	}
	return otherwise
}

// Level is the health of an object.
type Level int

const (
	// NotDue objects are not due yet and have none of the conditions.
	NotDue Level = iota
	// Ready objects are in the state that their spec requests.
	Ready
	// Reconciling objects become ready without user action.
	Reconciling
	// Waiting objects are paused or on hold. Nothing happens to them, and nothing is wrong.
	Waiting
	// Unknown is the level of objects whose state currently cannot be read.
	Unknown
	// Stalled objects need user action to continue.
	Stalled
)

// Verdict is a level with the reason and message for the conditions.
type Verdict struct {
	Level           Level
	Reason, Message string
}

// Of returns the verdict for an object that is described completely by one condition: Ready if the
// condition is true, and otherwise the given level.
func Of(c metav1.Condition, otherwise Level) Verdict {
	if c.Status == metav1.ConditionTrue {
		otherwise = Ready
	}
	return Verdict{otherwise, c.Reason, c.Message}
}

// Conditions returns the conditions Ready, Reconciling, and Stalled. A condition with an empty
// status must be absent: Reconciling and Stalled are either true or absent.
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

// Set sets or removes the conditions. A condition keeps its transition time if its status does not
// change.
func (v Verdict) Set(conditions *[]metav1.Condition, generation int64, now time.Time) {
	for _, c := range v.Conditions() {
		SetCondition(conditions, c, generation, now)
	}
}

// SetAccepted sets a condition that describes an object completely, and derives the other
// conditions from it: the object is ready, or stalled until it is corrected.
func SetAccepted(conditions *[]metav1.Condition, c metav1.Condition, generation int64, now time.Time) {
	SetCondition(conditions, c, generation, now)
	Of(c, Stalled).Set(conditions, generation, now)
}

// maxConditionMessage is the maximum size, in bytes, of the message of any condition.
const maxConditionMessage = 4096

// SetCondition sets a condition for a generation of the object, or removes it if its status is
// empty. If the status does not change, the transition time is kept, unless the clock that set it
// was ahead or the API server would reject it. now is truncated to seconds, the resolution of the
// API server.
func SetCondition(conditions *[]metav1.Condition, c metav1.Condition, generation int64, now time.Time) {
	if c.Status == "" {
		apimeta.RemoveStatusCondition(conditions, c.Type)
		return
	}
	c.Reason, c.Message = Reason(c.Reason, unspecified), text.Truncate(strings.ToValidUTF8(c.Message, "\uFFFD"), maxConditionMessage)
	c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now.Truncate(time.Second))
	old := apimeta.FindStatusCondition(*conditions, c.Type)
	if old != nil && (old.LastTransitionTime.IsZero() || old.LastTransitionTime.After(now.Add(text.MaxClockSkew)) || old.LastTransitionTime.UTC().Year() < 0) {
		old.Status = "" // makes SetStatusCondition replace the time
	}
	apimeta.SetStatusCondition(conditions, c)
}

// IsOwn reports whether a condition is maintained by Set.
func IsOwn(name string) bool {
	return name == history.ConditionReady || name == history.ConditionReconciling || name == history.ConditionStalled
}

// WithSlow renames the condition Stalled in a status written by the previous release to Slow. It is
// the same condition, so it must not be published again.
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

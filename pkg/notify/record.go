// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// StepNotification is a notification about one step of a record.
type StepNotification struct {
	engine.Notification
	// Step is the name of the step, and Class the class of its condition.
	Step  string
	Class engine.Class
	// Time is when the step reached that state.
	Time time.Time
	// Announces reports that the step itself publishes the milestone, or failed to, so the
	// notification is about the upgrade as a whole.
	Announces bool

	started time.Time // of the step
	order   int       // the place of this step among the steps that started in the same second
}

// announced maps the milestones that steps publish about the upgrade as a whole to the type of
// their Event. Steps with other milestones are published as steps.
var announced = map[engine.Milestone]string{
	engine.MilestoneStarted:   corev1.EventTypeNormal,
	engine.MilestoneDelayed:   corev1.EventTypeWarning,
	engine.MilestoneCompleted: corev1.EventTypeNormal,
	engine.MilestoneFailed:    corev1.EventTypeWarning,
	engine.MilestoneCancelled: corev1.EventTypeNormal,
	engine.MilestoneSkipped:   corev1.EventTypeWarning,
}

// unpublished lists reasons of skipped steps that are recorded but not published, because the event
// has no hooks or no machine config pool is affected.
var unpublished = []string{maintenance.ReasonNoHooks, maintenance.ReasonNoDelayedPools}

// stepClasses maps the published classes to the type of their Event.
var stepClasses = map[engine.Class]string{
	engine.ClassWaiting: corev1.EventTypeNormal,
	engine.ClassUnknown: corev1.EventTypeWarning,
	engine.ClassDone:    corev1.EventTypeNormal,
	engine.ClassSkipped: corev1.EventTypeNormal,
	engine.ClassFailed:  corev1.EventTypeWarning,
}

// FromRecord returns the notifications of a record in the order of its steps, one for each step
// that has returned a result. The IDs are the same each time.
func FromRecord(ref corev1.ObjectReference, record history.Record) []StepNotification {
	all := make([]StepNotification, 0, len(record.Conditions))
	var second time.Time
	order := 0
	for _, c := range record.Conditions {
		started := timeOf(c, false)
		if !started.Equal(second) {
			second, order = started, 0
		}
		order++
		if isStarting(c) {
			continue
		}
		class := engine.Classify(c)
		if class == engine.ClassSkipped && slices.Contains(unpublished, c.Reason) || isNotifiedBefore(record, c) {
			continue
		}
		n := StepNotification{
			Notification: engine.Notification{
				Version: record.Version, Attempt: record.Attempt, Milestone: c.Milestone,
				Type: stepClasses[class], Reason: c.Reason, Message: c.Message,
			},
			Step: c.Type, Class: class, Time: timeOf(c, true), started: started, order: order,
		}
		// The version is part of the ID, because an attempt at another version may have the same
		// key.
		n.ID = engine.NotificationID(string(ref.UID), engine.AttemptKey(record), record.Version+" "+c.Type, "Step"+string(class))
		if severity, ok := announced[c.Milestone]; ok && (class == engine.ClassDone || class == engine.ClassSkipped && c.Reason == engine.ReasonNotDelivered) {
			n.Announces, n.Type = true, severity
		}
		all = append(all, n)
	}
	return all
}

// isNotifiedBefore reports whether the milestone of a step was already notified for an earlier
// object of the same name.
func isNotifiedBefore(record history.Record, c history.StepCondition) bool {
	class := engine.Classify(c)
	return (class == engine.ClassDone || class == engine.ClassSkipped) && slices.Contains(record.NotifiedMilestones, c.Milestone)
}

// isStarting reports whether a step has not returned a result yet. Such a step is not published.
func isStarting(c history.StepCondition) bool {
	return engine.Classify(c) == engine.ClassWaiting && c.Reason == engine.ReasonStarted
}

// Announcement returns the notification about the upgrade as a whole, with the ID that the step
// used to publish it.
func (n StepNotification) Announcement(ref corev1.ObjectReference, record history.Record) engine.Notification {
	announcement := n.Notification
	announcement.Reason = MilestoneReason(n.Milestone)
	announcement.ID = engine.NotificationID(string(ref.UID), engine.AttemptKey(record), record.Version, announcement.Reason)
	return announcement
}

// sortKey makes the names of Events sort like their steps: by the start of the step, then by its
// order among steps that started in the same second, and then by its state.
func (n StepNotification) sortKey() string {
	return fmt.Sprintf("%08x%02x%d", n.started.Unix()&0xffffffff, min(n.order, 0xff), n.rank())
}

// precise returns the time of the notification, with microseconds that preserve the order of steps.
func (n StepNotification) precise() time.Time {
	return n.Time.Add(time.Duration(n.order*10+n.rank()) * time.Microsecond)
}

// rank orders the states of one step.
func (n StepNotification) rank() int {
	switch n.Class {
	case engine.ClassWaiting:
		return 0
	case engine.ClassUnknown:
		return 1
	default:
		return 2
	}
}

// timeOf returns when a step reached its state, or when it started; zero if the record does not
// contain that.
func timeOf(c history.StepCondition, state bool) time.Time {
	switch {
	case !state && c.StartTime != nil:
		return c.StartTime.Time
	case c.CompleteTime != nil:
		return c.CompleteTime.Time
	case c.LastTransitionTime != nil:
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

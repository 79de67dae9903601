// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// The types of the events. Those about steps have a step in their data.
const (
	TypeStarted     = "io.openshift.managed.upgrade.started"      // the upgrade begins
	TypeDelayed     = "io.openshift.managed.upgrade.delayed"      // it has waited for long and has not commenced
	TypeCompleted   = "io.openshift.managed.upgrade.completed"    // it is complete
	TypeFailed      = "io.openshift.managed.upgrade.failed"       // it was given up
	TypeCancelled   = "io.openshift.managed.upgrade.cancelled"    // it was called off before it had commenced
	TypeNotice      = "io.openshift.managed.upgrade.notice"       // anything else about it; the reason says what
	TypeStepWaiting = "io.openshift.managed.upgrade.step.waiting" // a step waits; the reason says for what
	TypeStepUnknown = "io.openshift.managed.upgrade.step.unknown" // a step cannot find out how things are
	TypeStepDone    = "io.openshift.managed.upgrade.step.done"    // what the step is named for holds
	TypeStepSkipped = "io.openshift.managed.upgrade.step.skipped" // a step was left out; the reason says why
	TypeStepFailed  = "io.openshift.managed.upgrade.step.failed"  // because of this step the upgrade is given up
)

// Types are all types of events with what they say, in the order of an upgrade.
func Types() [][2]string {
	return [][2]string{
		{TypeStarted, "The upgrade begins."},
		{TypeDelayed, "The upgrade takes long to commence."},
		{TypeStepWaiting, "A step waits; the reason says for what."},
		{TypeStepUnknown, "A step cannot find out how things are."},
		{TypeStepDone, "What the step is named for holds."},
		{TypeStepSkipped, "A step was left out; the reason says why."},
		{TypeStepFailed, "The upgrade is given up because of this step."},
		{TypeCompleted, "The upgrade is complete."},
		{TypeFailed, "The upgrade has failed, and what it had left behind was cleaned up; the message says why."},
		{TypeCancelled, "The upgrade was called off before it had commenced, and what it had left behind was cleaned up."},
		{TypeNotice, "Anything else about the upgrade, such as what the early check has found; the reason says what."},
	}
}

// The reasons of the notifications about the upgrade as a whole.
const (
	started   = "UpgradeStarted"
	delayed   = "UpgradeDelayed"
	completed = "UpgradeCompleted"
	failed    = "UpgradeFailed"
	cancelled = "UpgradeCancelled"
)

// notDelivered is the reason of a step whose notification was not delivered.
const notDelivered = "NotDelivered"

// typesByReason are the types of the notifications about the upgrade as a whole.
var typesByReason = map[string]string{
	started: TypeStarted, delayed: TypeDelayed, completed: TypeCompleted, failed: TypeFailed, cancelled: TypeCancelled,
}

// milestoneOf is the reason of the notification about the upgrade as a whole that
// was sent by a step, or that could not be; empty if the step sent none: it is
// none of those that do, or there was nothing to tell, or it did not get that far.
func milestoneOf(record history.Record, c history.StepCondition) string {
	if c.CompleteTime == nil || c.Status != metav1.ConditionTrue || c.Reason != engine.ReasonDone && c.Reason != notDelivered {
		return ""
	}
	switch c.Type {
	case "StartedNotificationSent":
		return started
	case "DelayedNotificationSent":
		return delayed
	case "CompletedNotificationSent":
		return completed
	case "FailureNotificationSent":
		return failureType(record)
	}
	return ""
}

// failureType tells an upgrade that was called off from one that failed: by the
// first step that failed, since what fails after it is part of the clean-up.
func failureType(record history.Record) string {
	for _, c := range record.Conditions {
		if c.CompleteTime != nil && c.Status == metav1.ConditionFalse {
			if c.Reason == engine.ReasonCancelled {
				return cancelled
			}
			break
		}
	}
	return failed
}

// Data is the data of an event.
type Data struct {
	// Object is the object that the upgrade was asked for by.
	Object Object `json:"object"`
	// Severity is Normal or Warning, as in Kubernetes Events.
	Severity string `json:"severity"`
	// Reason is one CamelCase word for machines, Message is for people.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Version and Attempt say which attempt of an upgrade the event is about.
	Version string `json:"version"`
	Attempt int32  `json:"attempt"`
	// Step is missing where the event is about the upgrade as a whole.
	Step string `json:"step,omitempty"`
}

// Object names an object of Kubernetes.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// notification is an event that is to be delivered.
type notification struct {
	id, eventType string
	at            time.Time
	data          Data
}

// maxMessage bounds a message, in bytes.
const maxMessage = 2048

func objectOf(ref corev1.ObjectReference) Object {
	return Object{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: string(ref.UID)}
}

// eventsFor makes the notifications that the record says: one for each step that
// has said something. Their ids are those of the Events about the same.
func eventsFor(ref corev1.ObjectReference, record history.Record) []*notification {
	var all []*notification
	for _, c := range record.Conditions {
		n := &notification{at: timeOf(c), data: Data{
			Object: objectOf(ref), Version: record.Version, Attempt: record.Attempt,
			Severity: corev1.EventTypeNormal, Reason: c.Reason, Message: c.Message,
		}}
		key, status := record.Version+" "+c.Type, ""
		reason, finished := milestoneOf(record, c), c.CompleteTime != nil
		switch {
		case reason != "":
			key, status, n.eventType = record.Version, reason, typesByReason[reason]
			n.data.Reason, n.data.Message = reason, strings.TrimPrefix(c.Message, "told: ")
			if reason == failed || reason == delayed {
				n.data.Severity = corev1.EventTypeWarning
			}
		case finished && c.Status == metav1.ConditionFalse:
			status, n.eventType, n.data.Severity = "StepFailed", TypeStepFailed, corev1.EventTypeWarning
		case finished && c.Reason == engine.ReasonDone:
			status, n.eventType = "StepDone", TypeStepDone
		case finished:
			status, n.eventType = "StepSkipped", TypeStepSkipped
		case c.Status == metav1.ConditionUnknown:
			status, n.eventType, n.data.Severity = "StepUnknown", TypeStepUnknown, corev1.EventTypeWarning
		case c.Reason == engine.ReasonStarted:
			continue
		default:
			status, n.eventType = "StepWaiting", TypeStepWaiting
		}
		if key != record.Version {
			n.data.Step = c.Type
		}
		n.id = engine.NotificationID(string(ref.UID), engine.AttemptKey(record), key, status)
		all = append(all, n)
	}
	return all
}

// timeOf is when what the condition says came about.
func timeOf(c history.StepCondition) time.Time {
	switch {
	case c.CompleteTime != nil:
		return c.CompleteTime.Time
	case c.LastTransitionTime != nil:
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// encode writes the notification as a CloudEvent.
func (n *notification) encode(source string) ([]byte, error) {
	e := event.New()
	e.SetID(n.id)
	e.SetType(n.eventType)
	e.SetSource(source)
	e.SetSubject(fmt.Sprintf("%s/%s/%s", n.data.Object.Kind, n.data.Object.Namespace, n.data.Object.Name))
	if !n.at.IsZero() {
		e.SetTime(n.at.UTC())
	}
	data := n.data
	data.Message = text.Truncate(data.Message, maxMessage)
	if err := e.SetData(event.ApplicationJSON, data); err != nil {
		return nil, fmt.Errorf("writing the data: %w", err)
	}
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("writing the event: %w", err)
	}
	return json.Marshal(e)
}

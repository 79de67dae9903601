// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Event types. Events about steps name a step in their data.
const (
	TypeStarted     = "io.openshift.managed.upgrade.started"
	TypeDelayed     = "io.openshift.managed.upgrade.delayed"
	TypeStalled     = "io.openshift.managed.upgrade.stalled"
	TypeRecovered   = "io.openshift.managed.upgrade.recovered"
	TypeCompleted   = "io.openshift.managed.upgrade.completed"
	TypeFailed      = "io.openshift.managed.upgrade.failed"
	TypeCancelled   = "io.openshift.managed.upgrade.cancelled"
	TypeSkipped     = "io.openshift.managed.upgrade.skipped"
	TypeNotice      = "io.openshift.managed.upgrade.notice"
	TypeStepWaiting = "io.openshift.managed.upgrade.step.waiting"
	TypeStepUnknown = "io.openshift.managed.upgrade.step.unknown"
	TypeStepDone    = "io.openshift.managed.upgrade.step.done"
	TypeStepSkipped = "io.openshift.managed.upgrade.step.skipped"
	TypeStepFailed  = "io.openshift.managed.upgrade.step.failed"
)

// Types returns all event types with their descriptions, in the order of an upgrade.
func Types() [][2]string {
	return [][2]string{
		{TypeStarted, "The upgrade has started."},
		{TypeDelayed, "The upgrade takes long to commence."},
		{TypeStepWaiting, "A step is waiting; the reason and the message state for what."},
		{TypeStepUnknown, "A step cannot determine the state of the cluster."},
		{TypeStepDone, "A step is done: the condition that it is named for holds."},
		{TypeStepSkipped, "A step was skipped; the reason and the message state why."},
		{TypeStepFailed, "The upgrade fails because of this step."},
		{TypeStalled, "The current step takes longer than it should."},
		{TypeRecovered, "A step that had stalled is done."},
		{TypeCompleted, "The upgrade is complete."},
		{TypeFailed, "The upgrade has failed and was cleaned up; the message states why."},
		{TypeCancelled, "The upgrade was cancelled before it had commenced, and was cleaned up."},
		{TypeSkipped, "The upgrade was skipped before it had commenced; the message states why."},
		{TypeNotice, "Anything else about the upgrade, such as the result of the pre-check; the reason states what."},
	}
}

// typesByMilestone maps milestones to the types of the events that announce them.
var typesByMilestone = map[engine.Milestone]string{
	engine.MilestoneStarted: TypeStarted, engine.MilestoneDelayed: TypeDelayed, engine.MilestoneCompleted: TypeCompleted,
	engine.MilestoneFailed: TypeFailed, engine.MilestoneCancelled: TypeCancelled, engine.MilestoneSkipped: TypeSkipped,
	notify.MilestoneStalled: TypeStalled, notify.MilestoneRecovered: TypeRecovered,
}

// typesByClass maps step classes to the types of the events about steps.
var typesByClass = map[engine.Class]string{
	engine.ClassWaiting: TypeStepWaiting, engine.ClassUnknown: TypeStepUnknown, engine.ClassDone: TypeStepDone,
	engine.ClassSkipped: TypeStepSkipped, engine.ClassFailed: TypeStepFailed,
}

// Data is the payload of an event.
type Data struct {
	// Cluster is the display name of the cluster. Absent if unknown.
	Cluster string `json:"cluster,omitempty"`
	// Object is the object that requests the upgrade.
	Object Object `json:"object"`
	// Severity is Normal or Warning, as in Kubernetes Events.
	Severity string `json:"severity"`
	// Reason is one CamelCase word for machines. Message is for humans.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Version and Attempt identify the attempt. They are absent from events that are not about an
	// attempt, for example events about a schedule.
	Version string `json:"version,omitempty"`
	Attempt int32  `json:"attempt,omitempty"`
	// Milestone is the milestone that the upgrade as a whole has reached, such as Commenced. Absent
	// if there is none.
	Milestone string `json:"milestone,omitempty"`
	// Step is the name of the step. Absent if the event is about the upgrade as a whole.
	Step string `json:"step,omitempty"`
}

// Object identifies a Kubernetes object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// notification is a queued event.
type notification struct {
	id, eventType string
	at            time.Time
	data          Data
}

// Limits for texts of other clients, in bytes.
const (
	maxMessage = 2048
	maxWord    = 256
)

// newNotification returns a notification with truncated texts.
func newNotification(ref corev1.ObjectReference, n engine.Notification, eventType string, at time.Time) *notification {
	return &notification{id: n.ID, eventType: eventType, at: at, data: Data{
		Object:   Object{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: string(ref.UID)},
		Severity: n.Type, Reason: text.Sanitize(n.Reason, maxWord), Message: text.Sanitize(n.Message, maxMessage),
		Version: text.Sanitize(n.Version, maxWord), Attempt: n.Attempt, Milestone: text.Sanitize(string(n.Milestone), maxWord),
	}}
}

// eventsFor returns the notifications of a record: one for each step that has returned a result and
// is not omitted. Notifications about steps have the IDs of their Kubernetes Events.
func (w *Webhook) eventsFor(ref corev1.ObjectReference, record history.Record) []*notification {
	var all []*notification
	for _, n := range notify.FromRecord(ref, record) {
		if n.Announces {
			all = append(all, newNotification(ref, n.Announcement(ref, record), typesByMilestone[n.Milestone], n.Time))
			continue
		}
		if w.omit != nil && w.omit(n) {
			continue
		}
		next := newNotification(ref, n.Notification, typesByClass[n.Class], n.Time)
		next.data.Step = text.Sanitize(n.Step, maxWord)
		all = append(all, next)
	}
	return all
}

// encode encodes the notification as a CloudEvent in JSON, with a source and a cluster name.
func (n *notification) encode(source, cluster string) ([]byte, error) {
	e := event.New()
	e.SetID(n.id)
	e.SetType(n.eventType)
	e.SetSource(source)
	e.SetSubject(fmt.Sprintf("%s/%s/%s", n.data.Object.Kind, n.data.Object.Namespace, n.data.Object.Name))
	if !n.at.IsZero() {
		e.SetTime(n.at.UTC())
	}
	data := n.data
	data.Cluster = text.Sanitize(cluster, maxWord)
	if err := e.SetData(event.ApplicationJSON, data); err != nil {
		return nil, fmt.Errorf("encoding the data: %w", err)
	}
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("encoding the event: %w", err)
	}
	return json.Marshal(e)
}

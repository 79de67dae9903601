// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// EventPublisher publishes single notifications. Receivers recognize a repeat by its ID.
type EventPublisher interface {
	// Publish publishes a notification about the object, unless one with its ID was published.
	Publish(ctx context.Context, ref corev1.ObjectReference, n engine.Notification) error
	// Reset forgets the IDs that were published about an object.
	Reset(uid string)
}

// TryPublish publishes a notification. A notification that the API server rejects, for example in a namespace that is
// being deleted, is logged and blocks nothing.
func TryPublish(ctx context.Context, p EventPublisher, ref corev1.ObjectReference, n engine.Notification) error {
	err := p.Publish(ctx, ref, n)
	if manager.IsRejected(err) {
		ctrl.LoggerFrom(ctx).Error(err, "publishing an Event", "message", text.Excerpt(n.Message))
		return nil
	}
	return err
}

// Publisher publishes notifications about upgrades.
type Publisher interface {
	EventPublisher
	// PublishSteps publishes what the record contains of its steps, in order.
	PublishSteps(ctx context.Context, ref corev1.ObjectReference, record history.Record) error
}

// ObjectPublisher publishes Events about objects that have no record.
type ObjectPublisher interface {
	// Publish publishes an Event about an object.
	Publish(ctx context.Context, object client.Object, eventType, reason, message string)
	// PublishChange publishes an Event about a change of the status of an object, before it is
	// written. The same change of the same status is the same Event.
	PublishChange(ctx context.Context, object client.Object, before any, eventType, reason, message string)
	// PublishOnce publishes an Event about an object, unless an equal one exists.
	PublishOnce(ctx context.Context, object client.Object, eventType, reason, message string) error
}

// StepPublisher is a Publisher that knows how far the steps of a record are published.
type StepPublisher interface {
	Publisher
	// NotifiedTime returns the time before which all steps of the record, and the other notifications,
	// are published.
	NotifiedTime(ref corev1.ObjectReference, record history.Record, others ...engine.Notification) metav1.Time
}

// AsyncPublisher is a Publisher that never blocks, and delivers later.
type AsyncPublisher interface {
	Publisher
	// PendingError returns why notifications about an object are not delivered yet, or nil if all
	// are.
	PendingError(uid string) error
}

// MultiPublisher publishes through Kubernetes Events, and through a webhook, which delivers later.
// The errors of the webhook are not returned: it shows them itself, PendingError reports them, and
// the record is published again in each pass.
type MultiPublisher struct {
	Events  StepPublisher
	Webhook AsyncPublisher // nil means no webhook
}

// Publish publishes one notification about the object.
func (m MultiPublisher) Publish(ctx context.Context, ref corev1.ObjectReference, n engine.Notification) error {
	if m.Webhook != nil {
		_ = m.Webhook.Publish(ctx, ref, n)
	}
	return m.Events.Publish(ctx, ref, n)
}

// PublishSteps publishes what the record contains of its steps, in order.
func (m MultiPublisher) PublishSteps(ctx context.Context, ref corev1.ObjectReference, record history.Record) error {
	if m.Webhook != nil {
		_ = m.Webhook.PublishSteps(ctx, ref, record)
	}
	return m.Events.PublishSteps(ctx, ref, record)
}

// PublishOnce publishes a notification unless it happened before the notifiedTime of the record: an earlier
// process has written its Event then, which the API server may have removed since.
func (m MultiPublisher) PublishOnce(ctx context.Context, ref corev1.ObjectReference, record history.Record, n engine.Notification) error {
	if isBefore(n.Time, record) {
		if m.Webhook != nil {
			_ = m.Webhook.Publish(ctx, ref, n)
		}
		return nil
	}
	return m.Publish(ctx, ref, n)
}

// NotifiedTime returns the notifiedTime of the record when it is saved next, see Events.NotifiedTime.
func (m MultiPublisher) NotifiedTime(ref corev1.ObjectReference, record history.Record, others ...engine.Notification) metav1.Time {
	return m.Events.NotifiedTime(ref, record, others...)
}

// Reset forgets the IDs that were published about an object.
func (m MultiPublisher) Reset(uid string) {
	if m.Webhook != nil {
		m.Webhook.Reset(uid)
	}
	m.Events.Reset(uid)
}

// PendingError returns which notifications about an object were not delivered yet, and why, or nil
// if all were.
func (m MultiPublisher) PendingError(uid string) error {
	if m.Webhook == nil {
		return nil
	}
	return m.Webhook.PendingError(uid)
}

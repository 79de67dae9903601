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

// EventPublisher publishes single notifications. Receivers recognize duplicates by their ID.
type EventPublisher interface {
	// Publish publishes a notification about the object, unless its ID was published before.
	Publish(ctx context.Context, ref corev1.ObjectReference, n engine.Notification) error
	// Reset drops the published IDs about an object.
	Reset(uid string)
}

// TryPublish publishes a notification. If the API server rejects it, for example because the
// namespace is being deleted, the error is logged and not returned.
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
	// PublishSteps publishes the steps of a record in order.
	PublishSteps(ctx context.Context, ref corev1.ObjectReference, record history.Record) error
}

// ObjectPublisher publishes Events about objects that have no record.
type ObjectPublisher interface {
	// Publish publishes an Event about an object.
	Publish(ctx context.Context, object client.Object, eventType, reason, message string)
	// PublishChange publishes an Event about a change of an object's status, before the change is
	// written. The same change of the same status has the same Event.
	PublishChange(ctx context.Context, object client.Object, before any, eventType, reason, message string)
	// PublishOnce publishes an Event about an object unless an identical one exists.
	PublishOnce(ctx context.Context, object client.Object, eventType, reason, message string) error
}

// StepPublisher is a Publisher that tracks its progress through the steps of a record.
type StepPublisher interface {
	Publisher
	// NotifiedTime returns the time up to which all steps of the record and the other notifications
	// are published.
	NotifiedTime(ref corev1.ObjectReference, record history.Record, others ...engine.Notification) metav1.Time
}

// AsyncPublisher is a Publisher that never blocks and delivers later.
type AsyncPublisher interface {
	Publisher
	// PendingError returns the reason why notifications about an object are still undelivered, or
	// nil if all are delivered.
	PendingError(uid string) error
}

// MultiPublisher publishes Kubernetes Events, and notifications through an asynchronous webhook. It
// does not return errors of the webhook: the webhook exports them as metrics, PendingError reports
// them, and each pass publishes the record again.
type MultiPublisher struct {
	Events  StepPublisher
	Webhook AsyncPublisher // optional
}

// Publish publishes a notification about the object.
func (m MultiPublisher) Publish(ctx context.Context, ref corev1.ObjectReference, n engine.Notification) error {
	if m.Webhook != nil {
		_ = m.Webhook.Publish(ctx, ref, n)
	}
	return m.Events.Publish(ctx, ref, n)
}

// PublishSteps publishes the steps of a record in order.
func (m MultiPublisher) PublishSteps(ctx context.Context, ref corev1.ObjectReference, record history.Record) error {
	if m.Webhook != nil {
		_ = m.Webhook.PublishSteps(ctx, ref, record)
	}
	return m.Events.PublishSteps(ctx, ref, record)
}

// PublishOnce publishes a notification. It writes no Event if the notification is older than the
// notifiedTime of the record, because an earlier process wrote that Event and the API server may
// have removed it since.
func (m MultiPublisher) PublishOnce(ctx context.Context, ref corev1.ObjectReference, record history.Record, n engine.Notification) error {
	if isBefore(n.Time, record) {
		if m.Webhook != nil {
			_ = m.Webhook.Publish(ctx, ref, n)
		}
		return nil
	}
	return m.Publish(ctx, ref, n)
}

// NotifiedTime returns the notifiedTime for the next save of the record; see Events.NotifiedTime.
func (m MultiPublisher) NotifiedTime(ref corev1.ObjectReference, record history.Record, others ...engine.Notification) metav1.Time {
	return m.Events.NotifiedTime(ref, record, others...)
}

// Reset drops the published IDs about an object.
func (m MultiPublisher) Reset(uid string) {
	if m.Webhook != nil {
		m.Webhook.Reset(uid)
	}
	m.Events.Reset(uid)
}

// PendingError describes the undelivered notifications about an object, or returns nil if all are
// delivered.
func (m MultiPublisher) PendingError(uid string) error {
	if m.Webhook == nil {
		return nil
	}
	return m.Webhook.PendingError(uid)
}

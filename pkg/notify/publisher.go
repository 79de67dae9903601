// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Publisher publishes notifications about upgrades. Receivers recognize a repeat by its ID.
type Publisher interface {
	// Publish publishes one notification about the object.
	Publish(ctx context.Context, ref corev1.ObjectReference, n engine.Notification) error
	// PublishSteps publishes what the record contains of its steps, in order.
	PublishSteps(ctx context.Context, ref corev1.ObjectReference, record history.Record) error
	// Reset forgets the IDs that were published about an object.
	Reset(uid string)
}

// StepPublisher is a Publisher that knows how far the steps of a record are published.
type StepPublisher interface {
	Publisher
	// NotifiedTime returns the time before which all steps of the record are published.
	NotifiedTime(ref corev1.ObjectReference, record history.Record) metav1.Time
}

// AsyncPublisher is a Publisher that never blocks, and delivers later.
type AsyncPublisher interface {
	Publisher
	// PendingError returns why notifications about an object are not delivered yet; nil means that
	// all are.
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

// NotifiedTime returns the notifiedTime of the record when it is saved next, see Events.NotifiedTime.
func (m MultiPublisher) NotifiedTime(ref corev1.ObjectReference, record history.Record) metav1.Time {
	return m.Events.NotifiedTime(ref, record)
}

// Reset forgets the IDs that were published about an object.
func (m MultiPublisher) Reset(uid string) {
	if m.Webhook != nil {
		m.Webhook.Reset(uid)
	}
	m.Events.Reset(uid)
}

// PendingError returns which notifications about an object were not delivered yet, and why; nil
// means that all were.
func (m MultiPublisher) PendingError(uid string) error {
	if m.Webhook == nil {
		return nil
	}
	return m.Webhook.PendingError(uid)
}

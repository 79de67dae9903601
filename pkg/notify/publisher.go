// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Publisher tells of upgrades. What it is told of twice with the same id reaches
// the eye of the receiver once.
type Publisher interface {
	// Publish tells one thing about the subject.
	Publish(ctx context.Context, subject corev1.ObjectReference, n engine.Notification) error
	// PublishSteps tells what the record says of each step, in order.
	PublishSteps(ctx context.Context, subject corev1.ObjectReference, record history.Record) error
	// Reset drops what was told about a subject that is over or gone.
	Reset(uid string)
}

// AsyncPublisher is a Teller that never waits, and tells in its own time.
type AsyncPublisher interface {
	Publisher
	// PendingError says what is in the way of what was queued about a subject.
	PendingError(uid string) error
}

// MultiPublisher tells at once by Events, and in its own time by a webhook. That the
// webhook cannot take something is nobody's trouble but its own: it shows that,
// and the record is told again with every look.
type MultiPublisher struct {
	Events  Publisher
	Webhook AsyncPublisher // nil: there is none
}

// Publish tells one thing about the subject.
func (m MultiPublisher) Publish(ctx context.Context, ref corev1.ObjectReference, n engine.Notification) error {
	if m.Webhook != nil {
		_ = m.Webhook.Publish(ctx, ref, n)
	}
	return m.Events.Publish(ctx, ref, n)
}

// PublishSteps tells what the record says of each step, in order.
func (m MultiPublisher) PublishSteps(ctx context.Context, ref corev1.ObjectReference, record history.Record) error {
	if m.Webhook != nil {
		_ = m.Webhook.PublishSteps(ctx, ref, record)
	}
	return m.Events.PublishSteps(ctx, ref, record)
}

// Reset drops what was told about a subject that is over or gone.
func (m MultiPublisher) Reset(uid string) {
	if m.Webhook != nil {
		m.Webhook.Reset(uid)
	}
	m.Events.Reset(uid)
}

// PendingError says what of all that was told about a subject has not arrived yet,
// and why; nil if nothing waits.
func (m MultiPublisher) PendingError(uid string) error {
	if m.Webhook == nil {
		return nil
	}
	return m.Webhook.PendingError(uid)
}

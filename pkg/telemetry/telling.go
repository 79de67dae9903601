// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Teller tells of upgrades. What it is told of twice with the same id reaches
// the eye of the receiver once.
type Teller interface {
	// Notify tells one thing about the subject.
	Notify(ctx context.Context, subject corev1.ObjectReference, n engine.Notice) error
	// Tell tells what the record says of each step, in order.
	Tell(ctx context.Context, subject corev1.ObjectReference, record history.History) error
	// Forget drops what was told about a subject that is over or gone.
	Forget(uid string)
}

// Queue is a Teller that never waits, and tells in its own time.
type Queue interface {
	Teller
	// Delivered says what is in the way of what was queued about a subject.
	Delivered(uid string) error
}

// Telling tells at once by Events, and in its own time by a webhook. That the
// webhook cannot take something is nobody's trouble but its own: it shows that,
// and the record is told again with every look.
type Telling struct {
	Events  Teller
	Webhook Queue // nil: there is none
}

// Notify tells one thing about the subject.
func (t Telling) Notify(ctx context.Context, subject corev1.ObjectReference, n engine.Notice) error {
	if t.Webhook != nil {
		_ = t.Webhook.Notify(ctx, subject, n)
	}
	return t.Events.Notify(ctx, subject, n)
}

// Tell tells what the record says of each step, in order.
func (t Telling) Tell(ctx context.Context, subject corev1.ObjectReference, record history.History) error {
	if t.Webhook != nil {
		_ = t.Webhook.Tell(ctx, subject, record)
	}
	return t.Events.Tell(ctx, subject, record)
}

// Forget drops what was told about a subject that is over or gone.
func (t Telling) Forget(uid string) {
	if t.Webhook != nil {
		t.Webhook.Forget(uid)
	}
	t.Events.Forget(uid)
}

// Delivered says what of all that was told about a subject has not arrived yet,
// and why; nil if nothing waits.
func (t Telling) Delivered(uid string) error {
	if t.Webhook == nil {
		return nil
	}
	return t.Webhook.Delivered(uid)
}

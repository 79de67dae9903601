// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// eventPublisher publishes Events. A failure is logged: no status waits for an Event.
type eventPublisher struct {
	events *notify.Events
	log    logr.Logger
}

// Publish publishes an Event about an object.
func (p *eventPublisher) Publish(ctx context.Context, object client.Object, eventType, reason, message string) {
	gvk, err := apiutil.GVKForObject(object, p.events.Client.Scheme())
	if err != nil {
		p.log.Error(err, "publishing an Event", "reason", reason)
		return
	}
	ref := corev1.ObjectReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
	}
	at := p.events.Clock.Now().UTC().Format(time.RFC3339Nano)
	err = p.events.Create(ctx, ref, engine.Notification{
		ID: engine.NotificationID(string(ref.UID), at, reason, message), Type: eventType, Reason: reason, Message: message,
	})
	if err != nil {
		p.log.Error(err, "publishing an Event", "reason", reason)
	}
}

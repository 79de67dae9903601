// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
)

// eventPublisher publishes Events.
type eventPublisher struct {
	events *notify.Events
	log    logr.Logger
}

// Publish publishes an Event about an object. Failures are only logged, because no status depends on an
// Event.
func (p *eventPublisher) Publish(ctx context.Context, object client.Object, eventType, reason, message string) {
	if err := p.create(ctx, object, eventType, reason, message, p.events.Clock.Now().UTC().Format(time.RFC3339Nano)); err != nil {
		p.log.Error(err, "publishing an Event", "reason", reason)
	}
}

// PublishChange publishes an Event about a change of an object's status before the change is written. The
// same change of the same status produces the same Event. If the process is killed before the write, it
// repeats both, but the Event is not duplicated. Failures are only logged, because no status depends on an
// Event.
func (p *eventPublisher) PublishChange(ctx context.Context, object client.Object, before any, eventType, reason, message string) {
	status, err := json.Marshal(before)
	if err == nil {
		err = p.create(ctx, object, eventType, reason, message, string(status))
	}
	if err != nil {
		p.log.Error(err, "publishing an Event", "reason", reason)
	}
}

// PublishOnce publishes an Event about an object unless an equal one exists.
func (p *eventPublisher) PublishOnce(ctx context.Context, object client.Object, eventType, reason, message string) error {
	return p.create(ctx, object, eventType, reason, message, "once")
}

// create creates an Event. Events with different keys are different Events.
func (p *eventPublisher) create(ctx context.Context, object client.Object, eventType, reason, message, key string) error {
	gvk, err := apiutil.GVKForObject(object, p.events.Client.Scheme())
	if err != nil {
		return fmt.Errorf("determining the kind of the object of an Event: %w", err)
	}
	return p.events.Create(ctx, objects.Reference(object, gvk), engine.Notification{
		ID: engine.NotificationID(string(object.GetUID()), key, reason, message), Type: eventType, Reason: reason, Message: message,
	})
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/fakealertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// errDown is the error of requests to a server that is down.
var errDown = errors.New("connection refused")

// Server starts, stops, or kills a server.
func (w *World) Server(_ context.Context, server scenario.Server, verb string) error {
	var down error
	if verb != "start" {
		down = errDown
	}
	switch server {
	case scenario.Prometheus:
		w.Cluster.Alerts.Err = down
	case scenario.Alertmanager:
		w.Cluster.Alertmanager.Err = down
	case scenario.Receiver:
		w.receiver.err = down
	case scenario.APIServer, scenario.Etcd:
		return ErrBinary
	}
	return nil
}

// Fire makes an alert fire.
func (w *World) Fire(_ context.Context, alert alerting.Alert) error {
	w.Cluster.Alerts.Fire(alert)
	return nil
}

// Resolve resolves all alerts with a name.
func (w *World) Resolve(_ context.Context, name string) error {
	w.Cluster.Alerts.Resolve(name)
	return nil
}

// CloudEvents returns the received notifications in order.
func (w *World) CloudEvents() []event.Event { return w.receiver.events }

func isExternal(gvk schema.GroupVersionKind) bool {
	return gvk.GroupVersion().String() == scenario.ExternalAPIVersion
}

// listExternal returns the objects of a kind that is not served by the API server.
func (w *World) listExternal(ctx context.Context, kind string) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	switch kind {
	case scenario.KindCloudEvent:
		return scenario.CloudEventObjects(w.receiver.events)
	case scenario.KindSilence:
		silences, _, err := w.Cluster.Alertmanager.Silences(ctx)
		if errors.Is(err, errDown) {
			return nil, nil // as if Alertmanager were queried again when it is back
		}
		if err != nil {
			return nil, fmt.Errorf("listing silences: %w", err)
		}
		for i := range silences {
			found = append(found, scenario.NewExternal(kind, fakealertmanager.Content(silences[i]), silences[i].ID, silences[i].ID))
		}
	default:
		return nil, fmt.Errorf("listing %ss: %w", kind, ErrBinary)
	}
	return found, nil
}

// receiver receives notifications.
type receiver struct {
	err    error // the error returned for notifications; nil to accept them
	events []event.Event
	lives  int // number of webhooks
}

// Do accepts a notification. Duplicates are recognized by their ID.
func (r *receiver) Do(_ context.Context, request httpclient.Request) ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	var received event.Event
	if err := received.UnmarshalJSON(request.Body); err != nil {
		return nil, fmt.Errorf("reading a notification: %w", err)
	}
	if !slices.ContainsFunc(r.events, func(e event.Event) bool { return e.ID() == received.ID() }) {
		r.events = append(r.events, received)
	}
	return nil, nil
}

// deliveryRetry is the delay after a failed delivery.
const deliveryRetry = 5 * time.Second

// lifeWebhook delivers the notifications of one life of the operator. When that life ends, its
// queue is lost.
type lifeWebhook struct {
	*webhook.Webhook
	world     *World
	life      int
	scheduled bool // whether a delivery is scheduled
}

// newWebhook returns the webhook for the next life of the operator.
func (w *World) newWebhook(env simulation.Env) notify.AsyncPublisher {
	w.receiver.lives++
	source := func(context.Context) (string, error) { return "devcluster", nil }
	next := &lifeWebhook{
		Webhook: webhook.New(webhook.Options{Source: source, Clock: env.Clock, Log: logr.Discard()}),
		world:   w, life: w.receiver.lives,
	}
	next.SetSender(&w.receiver)
	return next
}

// Publish queues a notification.
func (l *lifeWebhook) Publish(ctx context.Context, ref corev1.ObjectReference, n engine.Notification) error {
	defer l.deliverAfter(0)
	return l.Webhook.Publish(ctx, ref, n)
}

// PublishSteps queues notifications about the steps in the record.
func (l *lifeWebhook) PublishSteps(ctx context.Context, ref corev1.ObjectReference, r history.Record) error {
	defer l.deliverAfter(0)
	return l.Webhook.PublishSteps(ctx, ref, r)
}

// deliverAfter delivers the queue after d unless a delivery is already scheduled.
func (l *lifeWebhook) deliverAfter(d time.Duration) {
	if l.scheduled {
		return
	}
	l.scheduled = true
	l.world.simulation.After(d, func() {
		l.scheduled = false
		alive := l.life == l.world.receiver.lives && l.world.operator.Alive()
		if alive && l.Flush(context.Background()) != nil {
			l.deliverAfter(deliveryRetry)
		}
	})
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// Options configures a Webhook.
type Options struct {
	// Source returns the cluster that sends the events, as a URI reference. It is called for each
	// delivery. If it fails, the delivery fails.
	Source func(context.Context) (string, error)
	// Cluster returns the display name of an object's cluster; empty if it is unknown. Optional.
	Cluster func(context.Context, Object) string
	// Omit reports whether a notification about a step is omitted. Optional.
	Omit  func(notify.StepNotification) bool
	Clock clock.Clock
	// Log receives each delivery error once, until the error changes.
	Log logr.Logger
}

// Sender sends one event to the receiver.
type Sender interface {
	Do(ctx context.Context, r httpclient.Request) ([]byte, error)
}

// Webhook delivers notifications to one receiver. The receiver may change.
type Webhook struct {
	source  func(context.Context) (string, error)
	cluster func(context.Context, Object) string
	omit    func(notify.StepNotification) bool
	clock   clock.Clock
	log     logr.Logger
	wake    chan struct{} // holds a token if there may be something to deliver

	mu        sync.Mutex
	receiver  *receiver                  // nil if there is none
	queue     []*notification            // in order; the first one is being delivered
	published map[string]map[string]bool // queued IDs by the UID of the object
	rejected  map[string]bool            // UIDs of objects with notifications that did not fit into the queue
	counters  counters
	err       error // of the last attempt
}

// receiver is the destination of notifications.
type receiver struct {
	Sender
	superseded chan struct{} // closed once another receiver is set
}

// counters holds the values of the metrics.
type counters struct{ delivered, failures, refused float64 }

const (
	// MaxQueued limits the queued notifications about steps. It is enough for several upgrades.
	// Notifications beyond the limit are published again from the record.
	MaxQueued = 256
	// maxQueuedNotices limits all queued notifications. No record holds the ones beyond the limit.
	maxQueuedNotices = 4 * MaxQueued
)

var errQueueFull = errors.New("too many notifications are waiting for the receiver")

// New returns a Webhook without a receiver.
func New(o Options) *Webhook {
	return &Webhook{
		source: o.Source, cluster: o.Cluster, omit: o.Omit, clock: o.Clock, log: o.Log,
		wake: make(chan struct{}, 1), published: map[string]map[string]bool{}, rejected: map[string]bool{},
	}
}

// SetReceiver replaces the receiver. If the options are invalid, it returns an error and changes
// nothing. Queued notifications go to the new receiver at once. Without options or a URL, there is
// no receiver: queued notifications are dropped, and no more are queued.
func (w *Webhook) SetReceiver(options *httpclient.Options) error {
	if options == nil || options.URL == "" {
		w.SetSender(nil)
		return nil
	}
	client, err := httpclient.New(*options)
	if err != nil {
		return err
	}
	w.SetSender(client)
	return nil
}

// SetSender is like SetReceiver, but with the caller's own client.
func (w *Webhook) SetSender(sender Sender) {
	var next *receiver
	if sender != nil {
		next = &receiver{sender, make(chan struct{})}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.receiver != nil {
		close(w.receiver.superseded)
	}
	w.receiver, w.err = next, nil
	if next == nil {
		w.queue, w.published, w.rejected = nil, map[string]map[string]bool{}, map[string]bool{}
	}
}

// Publish queues a notification about the upgrade as a whole, unless its ID was queued before or
// there is no receiver. It never blocks. It returns an error if the queue is full.
func (w *Webhook) Publish(_ context.Context, ref corev1.ObjectReference, n engine.Notification) error {
	n.Milestone = notify.MilestoneOf(n)
	eventType, known := typesByMilestone[n.Milestone]
	if !known {
		eventType, n.Milestone = TypeNotice, ""
	}
	return w.add(newNotification(ref, n, eventType, w.clock.Now()), maxQueuedNotices)
}

// PublishSteps queues the steps of a record in order, unless they were queued before or there is no
// receiver. It never blocks. If the queue is full, it returns an error, and the next call queues
// the rest. PendingError reports the error until then.
func (w *Webhook) PublishSteps(_ context.Context, ref corev1.ObjectReference, record history.Record) error {
	for _, n := range w.eventsFor(ref, record) {
		if err := w.add(n, MaxQueued); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.rejected, string(ref.UID))
	return nil
}

// Reset drops the queued IDs about an object. Queued events are still delivered.
func (w *Webhook) Reset(uid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.published, uid)
	delete(w.rejected, uid)
}

// PendingError returns the reason why notifications about an object are undelivered, or nil if all
// are delivered.
func (w *Webhook) PendingError(uid string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	queued := 0
	for _, n := range w.queue {
		if n.data.Object.UID == uid {
			queued++
		}
	}
	switch {
	case queued == 0 && w.rejected[uid]:
		return errQueueFull
	case queued == 0:
		return nil
	case w.err == nil:
		return fmt.Errorf("%d notifications have not been delivered yet", queued)
	}
	return fmt.Errorf("%d notifications have not been delivered yet: %w", queued, w.err)
}

// LastError returns the error of the last delivery attempt.
func (w *Webhook) LastError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// add queues a notification if fewer than limit are queued.
func (w *Webhook) add(n *notification, limit int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := n.data.Object.UID
	if w.receiver == nil || w.published[uid][n.id] {
		return nil
	}
	if len(w.queue) >= limit {
		w.rejected[uid] = true
		return errQueueFull
	}
	if w.published[uid] == nil {
		w.published[uid] = map[string]bool{}
	}
	w.published[uid][n.id] = true
	w.queue = append(w.queue, n)
	select {
	case w.wake <- struct{}{}:
	default: // it already holds a token
	}
	return nil
}

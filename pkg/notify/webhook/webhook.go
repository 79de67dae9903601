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
)

// Options say by whom the receiver is told, and when.
type Options struct {
	// Source says from which cluster the events come, as a URI reference. It is
	// asked for each delivery; while it fails, so does the delivery.
	Source func(context.Context) (string, error)
	// Clock tells the time, and when to try again.
	Clock clock.Clock
	// Log says what is in the way of deliveries, once until that changes.
	Log logr.Logger
}

// Webhook tells one receiver, who may change.
type Webhook struct {
	source func(context.Context) (string, error)
	clock  clock.Clock
	log    logr.Logger
	wake   chan struct{} // holds a token if there may be something to deliver

	mu        sync.Mutex
	receiver  *receiver                  // nil: there is none
	queue     []*notification            // in order; the first one is being delivered
	published map[string]map[string]bool // subject's uid → ids that were queued
	counters  counters
	err       error // why the last try failed; nil if it did not
}

// receiver is who is told.
type receiver struct {
	*httpclient.Client
	superseded chan struct{} // closed once another one is told
}

// counters are what the metrics show.
type counters struct{ delivered, failures, refused float64 }

// MaxQueued is how many notifications wait at most: those of several upgrades.
const MaxQueued = 256

var errQueueFull = errors.New("too many notifications wait for the receiver")

// New makes a Webhook that has no receiver yet.
func New(o Options) *Webhook {
	return &Webhook{
		source: o.Source, clock: o.Clock, log: o.Log,
		wake: make(chan struct{}, 1), published: map[string]map[string]bool{},
	}
}

// SetReceiver sets the receiver, or returns why the options are invalid and changes nothing. Queued
// notifications are delivered to the new receiver at once. Nil means no receiver: the queue is dropped,
// and nothing is queued.
func (w *Webhook) SetReceiver(options *httpclient.Options) error {
	var next *receiver
	if options != nil {
		client, err := httpclient.New(*options)
		if err != nil {
			return err
		}
		next = &receiver{client, make(chan struct{})}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.receiver != nil {
		close(w.receiver.superseded)
	}
	w.receiver, w.err = next, nil
	if next == nil {
		w.queue, w.published = nil, map[string]map[string]bool{}
	}
	return nil
}

// Publish queues a notification about the subject as a whole, unless one with
// this id was queued before or there is no receiver. It never waits; there is an
// error if the queue is full.
func (w *Webhook) Publish(_ context.Context, ref corev1.ObjectReference, n engine.Notification) error {
	next := &notification{id: n.ID, eventType: typesByReason[n.Reason], at: w.clock.Now(), data: Data{
		Object: objectOf(ref), Severity: n.Type, Reason: n.Reason, Message: n.Message, Version: n.Version, Attempt: n.Attempt,
	}}
	if next.eventType == "" {
		next.eventType = TypeNotice
	}
	return w.add(next)
}

// PublishSteps queues what the record says of each step, in order, unless that was
// queued before or there is no receiver. It never waits; if the queue is full,
// there is an error, and what is left is queued the next time.
func (w *Webhook) PublishSteps(_ context.Context, ref corev1.ObjectReference, record history.Record) error {
	for _, n := range eventsFor(ref, record) {
		if err := w.add(n); err != nil {
			return err
		}
	}
	return nil
}

// Reset drops what was told about a subject that is over or gone. What waits
// to be delivered is delivered nevertheless.
func (w *Webhook) Reset(uid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.published, uid)
}

// PendingError says whether everything that was queued about a subject was
// delivered, or else what is in the way.
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
	case queued == 0:
		return nil
	case w.err == nil:
		return fmt.Errorf("%d notifications are not delivered yet", queued)
	}
	return fmt.Errorf("%d notifications are not delivered yet: %w", queued, w.err)
}

// LastError is why the last try to deliver something failed; nil if it did not.
func (w *Webhook) LastError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Webhook) add(n *notification) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := n.data.Object.UID
	if w.receiver == nil || w.published[uid][n.id] {
		return nil
	}
	if len(w.queue) >= MaxQueued {
		return errQueueFull
	}
	if w.published[uid] == nil {
		w.published[uid] = map[string]bool{}
	}
	w.published[uid][n.id] = true
	w.queue = append(w.queue, n)
	select {
	case w.wake <- struct{}{}:
	default: // there is a token already
	}
	return nil
}

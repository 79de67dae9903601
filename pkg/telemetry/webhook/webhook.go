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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/endpoint"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
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
	woken  chan struct{} // holds a token if there may be something to deliver

	mu       sync.Mutex
	receiver *receiver                  // nil: there is none
	queue    []*notification            // in order; the first one is being delivered
	told     map[string]map[string]bool // subject's uid → ids that were queued
	count    counts
	err      error // why the last try failed; nil if it did not
}

// receiver is who is told.
type receiver struct {
	*endpoint.Endpoint
	replaced chan struct{} // closed once another one is told
}

// counts are what the metrics show.
type counts struct{ delivered, failures, refused float64 }

// MaxWaiting is how many notifications wait at most: those of several upgrades.
const MaxWaiting = 256

var errFull = errors.New("too many notifications wait for the receiver")

// New makes a Webhook that has no receiver yet.
func New(o Options) *Webhook {
	return &Webhook{
		source: o.Source, clock: o.Clock, log: o.Log,
		woken: make(chan struct{}, 1), told: map[string]map[string]bool{},
	}
}

// Direct says who is told from now on, or says what is wrong with the receiver,
// and then all stays as it was. What waits is delivered to the new one, at once.
// Nil means that nobody is: what waits is dropped, and nothing is queued any more.
func (w *Webhook) Direct(options *endpoint.Options) error {
	var next *receiver
	if options != nil {
		to, err := endpoint.New(*options)
		if err != nil {
			return err
		}
		next = &receiver{to, make(chan struct{})}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.receiver != nil {
		close(w.receiver.replaced)
	}
	w.receiver, w.err = next, nil
	if next == nil {
		w.queue, w.told = nil, map[string]map[string]bool{}
	}
	return nil
}

// Notify queues a notification about the subject as a whole, unless one with
// this id was queued before or there is no receiver. It never waits; there is an
// error if the queue is full.
func (w *Webhook) Notify(_ context.Context, subject corev1.ObjectReference, n engine.Notice) error {
	next := &notification{id: n.ID, eventType: typesByReason[n.Reason], at: w.clock.Now(), data: Data{
		Object: objectOf(subject), Severity: n.Type, Reason: n.Reason, Message: n.Message, Version: n.Version, Attempt: n.Attempt,
	}}
	if next.eventType == "" {
		next.eventType = TypeNotice
	}
	return w.add(next)
}

// Tell queues what the record says of each step, in order, unless that was
// queued before or there is no receiver. It never waits; if the queue is full,
// there is an error, and what is left is queued the next time.
func (w *Webhook) Tell(_ context.Context, subject corev1.ObjectReference, record history.History) error {
	for _, n := range derive(subject, record) {
		if err := w.add(n); err != nil {
			return err
		}
	}
	return nil
}

// Forget drops what was told about a subject that is over or gone. What waits
// to be delivered is delivered nevertheless.
func (w *Webhook) Forget(uid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.told, uid)
}

// Delivered says whether everything that was queued about a subject was
// delivered, or else what is in the way.
func (w *Webhook) Delivered(uid string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := 0
	for _, n := range w.queue {
		if n.data.Object.UID == uid {
			waiting++
		}
	}
	switch {
	case waiting == 0:
		return nil
	case w.err == nil:
		return fmt.Errorf("%d notifications are not delivered yet", waiting)
	}
	return fmt.Errorf("%d notifications are not delivered yet: %w", waiting, w.err)
}

// Trouble is why the last try to deliver something failed; nil if it did not.
func (w *Webhook) Trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Webhook) add(n *notification) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := n.data.Object.UID
	if w.receiver == nil || w.told[uid][n.id] {
		return nil
	}
	if len(w.queue) >= MaxWaiting {
		return errFull
	}
	if w.told[uid] == nil {
		w.told[uid] = map[string]bool{}
	}
	w.told[uid][n.id] = true
	w.queue = append(w.queue, n)
	select {
	case w.woken <- struct{}{}:
	default: // there is a token already
	}
	return nil
}

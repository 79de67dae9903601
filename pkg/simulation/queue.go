// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is the work queue of a controller in virtual time. As in controller-runtime, it contains a
// request at most once, does not hand out a request while it is being processed, and keeps the
// earliest of several due times.
type queue struct {
	world      *World
	limiter    workqueue.TypedRateLimiter[reconcile.Request]
	ready      []reconcile.Request
	due        map[reconcile.Request]time.Time
	processing map[reconcile.Request]bool // the value is true if the request was added again during processing
}

func newQueue(w *World, limiter workqueue.TypedRateLimiter[reconcile.Request]) *queue {
	return &queue{world: w, limiter: limiter, due: map[reconcile.Request]time.Time{}, processing: map[reconcile.Request]bool{}}
}

func (q *queue) add(request reconcile.Request) {
	if _, busy := q.processing[request]; busy {
		q.processing[request] = true
		return
	}
	if !slices.Contains(q.ready, request) {
		q.ready = append(q.ready, request)
	}
}

func (q *queue) addAfter(request reconcile.Request, d time.Duration) {
	if d <= 0 {
		q.add(request)
		return
	}
	at := q.world.now.Add(d)
	if before, ok := q.due[request]; !ok || at.Before(before) {
		q.due[request] = at
	}
}

// get returns the next request.
func (q *queue) get() (reconcile.Request, bool) {
	q.release()
	if len(q.ready) == 0 {
		return reconcile.Request{}, false
	}
	request := q.ready[0]
	q.ready = q.ready[1:]
	q.processing[request] = false
	return request, true
}

// done marks a request as processed.
func (q *queue) done(request reconcile.Request) {
	again := q.processing[request]
	delete(q.processing, request)
	if again {
		q.add(request)
	}
}

// release moves due requests to the end of the queue, earliest first.
func (q *queue) release() {
	var due []reconcile.Request
	for request, at := range q.due {
		if !at.After(q.world.now) {
			due = append(due, request)
		}
	}
	slices.SortFunc(due, func(a, b reconcile.Request) int {
		return cmp.Or(q.due[a].Compare(q.due[b]), compareKeys(a.NamespacedName, b.NamespacedName))
	})
	for _, request := range due {
		delete(q.due, request)
		q.add(request)
	}
}

// next returns when the next request is due, or the zero time if the queue is empty.
func (q *queue) next() time.Time {
	var next time.Time
	for at := range maps.Values(q.due) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

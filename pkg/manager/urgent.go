// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// UrgentPriority is the priority of urgent requests. Other requests have priority 0, or less if
// nothing has changed. A reconciler that returns this priority keeps the request urgent.
const UrgentPriority = 100

// handler returns the event handler that turns changes into requests.
func (k Kind) handler() handler.EventHandler {
	if k.Requests == nil {
		return handler.Funcs{}
	}
	requests := handler.EnqueueRequestsFromMapFunc(k.Requests)
	if k.IsUrgent == nil {
		return requests
	}
	return urgentFirst{requests, k}
}

// urgentFirst raises the priority of requests for urgent objects.
type urgentFirst struct {
	handler.EventHandler

	kind Kind
}

// Create handles a new object, or one that existed at the start.
func (u urgentFirst) Create(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	u.EventHandler.Create(ctx, e, queue)
	u.raise(ctx, e.Object, queue)
}

// Update handles a change of an object.
func (u urgentFirst) Update(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	u.EventHandler.Update(ctx, e, queue)
	u.raise(ctx, e.ObjectNew, queue)
}

func (u urgentFirst) raise(ctx context.Context, obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if q, is := queue.(priorityqueue.PriorityQueue[reconcile.Request]); is && u.kind.IsUrgent(obj) {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(UrgentPriority)}, u.kind.Requests(ctx, obj)...)
	}
}

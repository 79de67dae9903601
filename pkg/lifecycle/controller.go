// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Declaration holds what differs between the controllers of kinds of upgrade objects.
type Declaration struct {
	// Name identifies the controller.
	Name string
	// AddToScheme registers the kinds that the runbooks read and write.
	AddToScheme []func(*runtime.Scheme) error
	// Objects declares the objects of the kind.
	Objects manager.Kind
	// Facts declares the kinds that Kind and the runbooks read. A change of an object triggers a pass over
	// every unfinished upgrade, unless the kind declares other requests.
	Facts []manager.Kind
	// LockNamespaces lists the namespaces of the locks.
	LockNamespaces []string
	// LockLabel is the label key of the locks if each cluster has its own lock. If empty, lock.Name is the only
	// lock.
	LockLabel string
	// ActsOnStatus triggers another pass after each change of the status, for a controller that acts on the
	// status itself.
	ActsOnStatus bool
	// ConfigChanged receives an event whenever Kind returns other plans. It may be nil.
	ConfigChanged <-chan event.GenericEvent
}

// Controller declares the controller of the kind, with the objects, the lock, and the backoff that every kind
// needs.
func (r *Reconciler[T]) Controller(d Declaration) manager.Controller {
	objects := d.Objects
	objects.Requests = manager.Self
	if _, several := r.Kind.(ClusterLister[T]); !several {
		objects.IsUrgent = func(obj client.Object) bool {
			own, ok := obj.(T)
			return ok && r.isUrgent(own, r.Clock.Now())
		}
	}
	if !d.ActsOnStatus {
		objects.Predicates = append(slices.Clone(objects.Predicates), predicate.Funcs{
			UpdateFunc: func(e event.UpdateEvent) bool { return !r.store.isKnown(e.ObjectNew) },
		})
	}
	reads := []manager.Kind{objects}
	for _, fact := range d.Facts {
		if fact.Requests == nil {
			fact.Requests = r.factChanged
		}
		reads = append(reads, fact)
	}
	leases := manager.Kind{
		Object: &coordinationv1.Lease{}, Namespaces: d.LockNamespaces, HasLabel: d.LockLabel,
		Requests: r.leaseChanged, Predicates: []predicate.Predicate{lockChanged()},
	}
	if d.LockLabel == "" {
		leases.Name = lock.Name
	}
	reads = append(reads, leases)
	c := manager.Controller{
		Name: d.Name, AddToScheme: append(slices.Clone(d.AddToScheme), coordinationv1.AddToScheme),
		Reads: reads, Bind: r.bind, Reconciler: r,
		RateLimiter: func() workqueue.TypedRateLimiter[reconcile.Request] {
			return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, maxBackoff)
		},
	}
	if d.ConfigChanged != nil {
		c.Channels = []manager.Channel{{Events: d.ConfigChanged, Requests: r.configChanged}}
	}
	return c
}

// bind prepares the reconciler with the clients of its process.
func (r *Reconciler[T]) bind(clients manager.Clients) error {
	r.Client, r.Live = clients.Client, clients.Live
	if r.Holders == nil {
		r.Holders = &lock.Holders{Live: r.Live, Mapper: r.Client.RESTMapper(), Clock: r.Clock}
	}
	r.Init()
	return nil
}

func (r *Reconciler[T]) factChanged(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.Active(ctx)
}

// Active returns a request for each unfinished object: a change in the cluster may concern any of them.
func (r *Reconciler[T]) Active(ctx context.Context) []reconcile.Request {
	return r.requests(ctx, func(obj T) bool {
		records := *r.Kind.Status(obj).History
		return len(obj.GetFinalizers()) > 0 || len(records) == 0 || !records[0].Finished()
	})
}

// configChanged returns a request for each object, as each shows whether the configuration is valid.
func (r *Reconciler[T]) configChanged(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requests(ctx, func(T) bool { return true })
}

// leaseChanged returns a request for each object. A finished one may still be the holder, if the cache showed
// that too late, and the holder may no longer exist.
func (r *Reconciler[T]) leaseChanged(ctx context.Context, obj client.Object) []reconcile.Request {
	all, err := listOfLock(ctx, r.Kind, r.Client, client.ObjectKeyFromObject(obj))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the objects that a change of their lock concerns")
	}
	requests := make([]reconcile.Request, 0, len(all))
	for _, o := range all {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
	lease, ok := obj.(*coordinationv1.Lease)
	if !ok {
		return requests
	}
	holder := lock.HolderOf(lease)
	request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: holder.Namespace, Name: holder.Name}}
	gvk := r.Kind.GroupVersionKind()
	if holder.Kind != gvk.Kind || holder.Group != gvk.Group || slices.Contains(requests, request) {
		return requests
	}
	if err := r.Client.Get(ctx, request.NamespacedName, r.Kind.New()); client.IgnoreNotFound(err) != nil {
		return requests // its namespace is not watched
	}
	return append(requests, request)
}

// requests returns a request for each object that a change concerns.
func (r *Reconciler[T]) requests(ctx context.Context, concerned func(T) bool) []reconcile.Request {
	all, err := r.Kind.List(ctx, r.Client)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the objects that a change may concern")
		return nil
	}
	var requests []reconcile.Request
	for _, obj := range all {
		if concerned(obj) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		}
	}
	return requests
}

// lockChanged selects changes of the holder, or of the noted attempt. A renewed note triggers no pass.
func lockChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isOld := e.ObjectOld.(*coordinationv1.Lease)
		after, isNew := e.ObjectNew.(*coordinationv1.Lease)
		return !isOld || !isNew || before.UID != after.UID || lock.HolderOf(before) != lock.HolderOf(after) || lock.AttemptOf(before) != lock.AttemptOf(after)
	}}
}

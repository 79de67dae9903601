// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// The shortest and the longest time between two passes over an unfinished attempt.
const (
	minRequeue = time.Second
	maxRequeue = 5 * time.Minute
	// maxBackoff is the longest time between two retries.
	maxBackoff = time.Minute
)

// Reconciler runs the objects of one kind through their life.
type Reconciler[T client.Object] struct {
	// Kind describes the objects.
	Kind UpgradeKind[T]
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock provides the time.
	Clock clock.PassiveClock
	// Holders decides whether a lock may be broken. All kinds of a process share it.
	Holders *lock.Holders
	// Notifier publishes events of attempts, and Metrics counts them.
	Notifier notify.MultiPublisher
	Metrics  *metrics.Upgrades

	store    *store[T]
	memories cache[*memory]
	rejected cache[rejection] // passes over other objects read it
}

// Init prepares the reconciler and registers its kind with Holders. It must be called once before
// the first pass.
func (r *Reconciler[T]) Init() {
	r.store = &store[T]{client: r.Client, live: r.Live, clock: r.Clock, newObj: r.Kind.New, onRestore: r.publishRestore}
	r.Holders.Register(r.Kind.GroupVersionKind().GroupKind(), lock.ManagedKind{InProgress: r.holderInProgress, Claimants: r.claimants, Abandon: r.abandonOrphan})
}

// Reconcile makes one pass over one object.
func (r *Reconciler[T]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj, found, err := r.store.load(ctx, req.NamespacedName)
	switch {
	case errors.Is(err, errStaleCache):
		return reconcile.Result{RequeueAfter: minRequeue}, nil // at the latest: the event usually comes first
	case err != nil:
		return reconcile.Result{}, err
	case !found:
		return reconcile.Result{}, r.forget(ctx, req.NamespacedName)
	}

	version := r.store.versions.get(req.NamespacedName)
	s := r.newScope(obj, ctrl.LoggerFrom(ctx))
	next, err := s.reconcile(ctx)
	s.recordMetrics(err)
	switch {
	case errors.Is(err, errStaleCache), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err): // the cache will follow
		return reconcile.Result{RequeueAfter: minRequeue}, nil
	case err != nil:
		return reconcile.Result{}, err
	case (next.IsZero() || s.record.Finished()) && r.store.versions.get(req.NamespacedName) != version:
		return reconcile.Result{RequeueAfter: minRequeue}, nil // own writes cause no event, and this one may allow more
	case (s.record.Finished() || s.deleted()) && next.IsZero():
		return reconcile.Result{}, nil
	}
	after := requeueAfter(next, r.Clock.Now())
	return reconcile.Result{RequeueAfter: after, Priority: r.priority(s.obj, r.Clock.Now().Add(after))}, nil
}

// priority returns the priority of a pass at a time, or nil to keep it. The clusters of a fleet have an order
// of their own.
func (r *Reconciler[T]) priority(obj T, at time.Time) *int {
	switch _, several := r.Kind.(ClusterLister[T]); {
	case several:
		return nil
	case r.isUrgent(obj, at):
		return new(manager.UrgentPriority)
	}
	return new(0)
}

// isUrgent reports whether the requested attempt is due at that time and unfinished. Such objects come before
// all others.
func (r *Reconciler[T]) isUrgent(obj T, at time.Time) bool {
	request := r.Kind.Request(obj)
	return request.StartRequested || !request.At.IsZero() && !request.At.After(at) &&
		!history.AttemptFinished(*r.Kind.Status(obj).History, request.Version, newRecord("", request.At).Key())
}

// forget drops what is kept of an object that no longer exists, and releases its lock.
func (r *Reconciler[T]) forget(ctx context.Context, key client.ObjectKey) error {
	r.Metrics.DeleteUpgrade(r.Kind.GroupVersionKind().GroupKind(), key.Namespace, key.Name)
	r.rejected.delete(key)
	if last := r.memories.get(key); last != nil {
		r.Notifier.Reset(string(last.uid))
	}
	r.memories.delete(key)
	obj := r.Kind.New()
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	return r.lockOf(obj).ReleaseOrphaned(ctx, r.holder(obj))
}

// holder returns the name of an object as a holder of the lock.
func (r *Reconciler[T]) holder(obj T) lock.Holder {
	gvk := r.Kind.GroupVersionKind()
	return lock.Holder{Group: gvk.Group, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: string(obj.GetUID())}
}

// requeueAfter returns how long to wait until the next pass. What fell due during this pass is handled soon,
// but not at once, or an object could keep a worker busy.
func requeueAfter(next, now time.Time) time.Duration {
	switch {
	case next.IsZero():
		return maxRequeue
	case !next.After(now):
		return minRequeue
	}
	return min(next.Sub(now), maxRequeue)
}

// holderInProgress reports whether the attempt of an object of this kind is in progress. It queries the API
// server only if the cache says no.
func (r *Reconciler[T]) holderInProgress(ctx context.Context, h lock.Holder, attempt lock.Attempt) (bool, error) {
	key := client.ObjectKey{Namespace: h.Namespace, Name: h.Name}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		obj := r.Kind.New()
		err := reader.Get(ctx, key, obj)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("getting %s: %w", h, err)
		}
		if err == nil && string(obj.GetUID()) == h.UID &&
			!history.AttemptFinished(*r.Kind.Status(obj).History, attempt.Version, attempt.Key) {
			return true, nil
		}
	}
	return false, nil
}

// lockOf returns the lock of an object's cluster.
func (r *Reconciler[T]) lockOf(obj T) *lock.Lock {
	l := &lock.Lock{Client: r.Client, Live: r.Live, Key: r.Kind.LockKey(obj), Clock: r.Clock, InProgress: r.Holders.InProgress, Abandon: r.Holders.Abandon}
	if clusters, several := r.Kind.(ClusterLister[T]); several {
		l.DeleteFree = true // a Lease for each cluster that was ever upgraded would pile up
		l.Labels, l.Former = clusters.LockLabels(), clusters.FormerLockNamespace(obj)
	}
	return l
}

// abandonOrphan withdraws the request of an attempt whose object is gone although it had a finalizer, and
// removes what would be orphaned. Only the Lease is left of it. It reports whether the upgrade has commenced.
func (r *Reconciler[T]) abandonOrphan(ctx context.Context, holder lock.Holder, attempt lock.Attempt) (commenced bool, err error) {
	obj := r.Kind.New()
	err = r.Live.Get(ctx, client.ObjectKey{Namespace: holder.Namespace, Name: holder.Name}, obj)
	if err == nil && string(obj.GetUID()) == holder.UID { // its attempt has ended
		return false, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting %s: %w", holder, err)
	}
	obj = r.Kind.New()
	obj.SetNamespace(holder.Namespace)
	obj.SetName(holder.Name)
	obj.SetUID(types.UID(holder.UID))
	record := lostRecord(attempt)
	record.RequestTime = notedRequest(attempt, r.Clock.Now())
	never := engine.FromBool(func(context.Context) (bool, error) { return false, nil }) // nothing is acquired from now on
	plan := r.Kind.Plan(obj, record, attempt.Type, never)
	book := plan.Book
	if err := book.Withdraw(ctx, engine.Run{Now: r.Clock.Now(), Requested: attempt.Requested, RequestedImage: notedImage(attempt)}); err != nil {
		return false, err
	}
	if attempt.Requested || attempt.CommenceTime != "" {
		record = engine.ResumeAfter(book, record, plan.lockStep(), r.Clock.Now())
		phase, err := engine.CurrentPhase(ctx, r.Clock, book, record)
		if err != nil {
			return false, err
		}
		commenced = phase == engine.PhaseCommitted
	}
	if book.Abandon == nil {
		return commenced, nil
	}
	return commenced, book.Abandon(ctx)
}

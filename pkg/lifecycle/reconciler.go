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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// The shortest and the longest time between two passes over an attempt that is not finished.
const (
	minRequeue = time.Second
	maxRequeue = 5 * time.Minute
	// maxBackoff is the longest time between two retries.
	maxBackoff = time.Minute
)

// Reconciler runs the objects of one kind through their life.
type Reconciler[T client.Object] struct {
	// Kind describes the objects.
	Kind Kind[T]
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock provides the time.
	Clock clock.PassiveClock
	// Holders decides whether a lock may be broken. All kinds of a process share it.
	Holders *lock.Holders
	// Notifier publishes what happens to attempts, Metrics counts it.
	Notifier notify.MultiPublisher
	Metrics  *metrics.Upgrades

	store       *store[T]
	prechecks   cache[precheckResult]
	rejected    cache[rejection]
	shown       cache[shownStatus]
	saved       cache[time.Time] // when the engine's record was last saved
	unrequested cache[time.Time] // when a request was last withdrawn or had no effect
	republished cache[time.Time] // when publishing a result was last tried in vain
	uids        cache[types.UID] // of the objects about which something may have been published
	claims      cache[claim]     // what the API server has answered about the Lease
}

// Init prepares the reconciler and registers its kind with Holders. It must be called once before
// the first pass.
func (r *Reconciler[T]) Init() {
	r.store = &store[T]{client: r.Client, live: r.Live, clock: r.Clock, newObj: r.Kind.New, onRestore: r.publishRestore}
	r.Holders.Register(r.Kind.GroupVersionKind().GroupKind(), r.holderInProgress, r.claimants)
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

	r.noteUID(req.NamespacedName, obj.GetUID())
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
	return reconcile.Result{RequeueAfter: requeueAfter(next, r.Clock.Now())}, nil
}

// forget drops what is kept of an object that does not exist, and releases the lock if it holds it.
func (r *Reconciler[T]) forget(ctx context.Context, key client.ObjectKey) error {
	r.Metrics.DeleteUpgrade(r.Kind.GroupVersionKind().GroupKind(), key.Namespace, key.Name)
	r.prechecks.delete(key)
	r.rejected.delete(key)
	r.shown.delete(key)
	r.saved.delete(key)
	r.unrequested.delete(key)
	r.republished.delete(key)
	r.claims.delete(key)
	r.noteUID(key, "")
	obj := r.Kind.New()
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	return r.lockOf(obj, r.Client).ReleaseOrphaned(ctx, r.holder(obj))
}

// noteUID notes which object has that key, and forgets what was published about one that had it
// before; empty means that there is none.
func (r *Reconciler[T]) noteUID(key client.ObjectKey, uid types.UID) {
	if former := r.uids.get(key); former != "" && former != uid {
		r.Notifier.Reset(string(former))
	}
	r.uids.set(key, uid)
	if uid == "" {
		r.uids.delete(key)
	}
}

// holder returns how an object is named as the holder of the lock.
func (r *Reconciler[T]) holder(obj T) lock.Holder {
	gvk := r.Kind.GroupVersionKind()
	return lock.Holder{Group: gvk.Group, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: string(obj.GetUID())}
}

// requeueAfter returns how long to wait until the next pass. What fell due during this pass is
// handled soon, but not at once, so that no object can keep a worker busy.
func requeueAfter(next, now time.Time) time.Duration {
	switch {
	case next.IsZero():
		return maxRequeue
	case !next.After(now):
		return minRequeue
	}
	return min(next.Sub(now), maxRequeue)
}

// holderInProgress reports whether the attempt of an object of this kind is in progress. The API
// server is queried only if the cache says that it is not.
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

// lockOf returns the lock of an object's cluster, read through the given client.
func (r *Reconciler[T]) lockOf(obj T, c client.Client) *lock.Lock {
	_, several := r.Kind.(ClusterLister[T]) // a Lease for each cluster that was ever upgraded would pile up
	return &lock.Lock{
		Client: c, Namespace: r.Kind.LockNamespace(obj), DeleteFree: several, Clock: r.Clock, InProgress: r.Holders.InProgress,
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

const (
	// maxConcurrentReconciles is the number of nodes that are reconciled concurrently. A hundred
	// nodes may be drained at the same time, and most of a pass is spent waiting for the API
	// server.
	maxConcurrentReconciles = 16
	// staleCacheRequeue is the delay before a node is reconciled again because the cache was stale.
	staleCacheRequeue = time.Second
	// maxRequeue is the longest time between two passes over a draining node. It limits how long a
	// configuration change goes unnoticed.
	maxRequeue = 5 * time.Minute
)

// Reconciler keeps the drains of nodes moving.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// Config returns the configuration in effect.
	Config func() config.NodeDrain
	// Sources lists the kinds of upgrades that cause drains.
	Sources []AttemptSource
	Events  notify.EventPublisher
	Metrics *metrics.Drains

	drains nodeCache
}

// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs,namespace=managed-upgrade-operator,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;delete
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create

// Controller declares the controller.
func (r *Reconciler) Controller() manager.Controller {
	reads := []manager.Kind{
		{Object: &corev1.Node{}, ClusterScoped: true, Transform: clusterstate.StripNode, Requests: manager.Self, Predicates: []predicate.Predicate{drainChangedPredicate{}}},
		{Object: &policyv1.PodDisruptionBudget{}, Transform: clusterstate.StripPDB},
	}
	for _, source := range r.Sources {
		kind := source.Kind
		kind.Requests = r.mapToDrainingNodes
		reads = append(reads, kind)
	}
	return manager.Controller{
		Name:        "nodekeeper",
		AddToScheme: []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1.AddToScheme},
		Reads:       reads,
		Bind: func(c manager.Clients) error {
			r.Client, r.Live = c.Client, c.Live
			return nil
		},
		Reconciler:              r,
		MaxConcurrentReconciles: maxConcurrentReconciles,
		RateLimiter: func() workqueue.TypedRateLimiter[reconcile.Request] {
			return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, time.Minute)
		},
	}
}

// Reconcile reconciles one node. It makes no API request unless the node is being drained for an
// upgrade and a deadline of one of its pods may have passed.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var node corev1.Node
	if err := r.Client.Get(ctx, req.NamespacedName, &node); err != nil {
		if apierrors.IsNotFound(err) {
			r.clearNode(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	next, err := r.reconcileDrain(ctx, &node)
	switch {
	case apierrors.IsConflict(err): // the cache will soon have the change of the other client
		return reconcile.Result{RequeueAfter: staleCacheRequeue}, nil
	case err != nil:
		return reconcile.Result{}, err
	case next.IsZero():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: min(max(next.Sub(r.Clock.Now()), time.Millisecond), maxRequeue)}, nil
}

// reconcileDrain handles the drain of a node as far as possible now. It returns the time of the
// next pass; zero waits for a change.
func (r *Reconciler) reconcileDrain(ctx context.Context, node *corev1.Node) (time.Time, error) {
	drain := clusterstate.DrainState(node)
	attempt, err := r.activeAttempt(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if attempt == nil || !drain.Active {
		r.clearNode(node.Name)
		if hasFirstSeen(node) {
			return time.Time{}, r.setFirstSeen(ctx, node, nil)
		}
		return time.Time{}, nil
	}
	start, err := r.drainStart(ctx, node, drain, attempt)
	if err != nil {
		return time.Time{}, err
	}
	d := clusterstate.NewDrainDeadlines(start, r.Config().TimeOut.Duration, attempt.PDBTimeout)
	now := r.Clock.Now()
	if first := d.First(); first.IsZero() || now.Before(first) {
		return first, nil
	}
	if next := r.drains.nextPass(node.Name, d); now.Before(next) && !next.After(now.Add(recheckInterval)) { // later if the clock was ahead
		return next, nil
	}
	s := &drainScope{Reconciler: r, node: node, drain: drain, attempt: attempt, log: ctrl.LoggerFrom(ctx), now: now, d: d, refusals: map[types.UID]string{}}
	next, err := s.reconcile(ctx)
	if err != nil {
		return time.Time{}, err
	}
	r.drains.recordPass(node.Name, d, next)
	return next, nil
}

// mapToDrainingNodes returns requests for the nodes that a change of an upgrade may affect.
func (r *Reconciler) mapToDrainingNodes(ctx context.Context, _ client.Object) []reconcile.Request {
	return manager.Requests(ctx, r.Client, &corev1.NodeList{}, isRelevant)
}

// drainChangedPredicate passes changes of a node that affect its drain.
type drainChangedPredicate struct{ predicate.Funcs }

// Create passes nodes that are being drained, or were in the last pass.
func (drainChangedPredicate) Create(e event.CreateEvent) bool {
	node, ok := e.Object.(*corev1.Node)
	return !ok || isRelevant(node)
}

// Update compares the drains of two states of a node.
func (drainChangedPredicate) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*corev1.Node)
	after, okAfter := e.ObjectNew.(*corev1.Node)
	if !ok || !okAfter {
		return true
	}
	return !clusterstate.DrainState(before).Equal(clusterstate.DrainState(after)) || hasFirstSeen(before) != hasFirstSeen(after) ||
		before.Annotations[AnnotationDrainFirstSeen] != after.Annotations[AnnotationDrainFirstSeen]
}

// isRelevant reports whether the node is being drained, or was in the last pass.
func isRelevant(node *corev1.Node) bool {
	return clusterstate.DrainState(node).Active || hasFirstSeen(node)
}

func hasFirstSeen(node *corev1.Node) bool {
	_, ok := node.Annotations[AnnotationDrainFirstSeen]
	return ok
}

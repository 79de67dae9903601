// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
)

const (
	// maxConcurrentReconciles is how many nodes are dealt with at once. What takes time is to
	// wait for the API server; a hundred nodes may be drained at the same time.
	maxConcurrentReconciles = 16
	// staleCacheRequeue is when a node is looked at again of which the cache was behind.
	staleCacheRequeue = time.Second
	// maxRequeue is the longest time between two looks at a node that is being
	// drained: so long may a changed configuration take to be noticed.
	maxRequeue = 5 * time.Minute
)

// Reconciler keeps the drains of nodes moving.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock tells the time.
	Clock clock.PassiveClock
	// Config returns the configuration that is in force.
	Config func() config.NodeDrain
	// Runbook makes the table by which an UpgradeConfig's upgrade is carried
	// out; an empty one if its type is unknown.
	Runbook func(*v1alpha1.UpgradeConfig) engine.Runbook
	// Events and Metrics tell of drains.
	Events  EventPublisher
	Metrics *metrics.Drains

	drains nodeCache
}

// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;delete
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create

// SetupWithManager makes the controller part of the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodekeeper").
		For(&corev1.Node{}, builder.WithPredicates(drainChangedPredicate{})).
		Watches(&v1alpha1.UpgradeConfig{}, handler.EnqueueRequestsFromMapFunc(r.mapToDrainingNodes)).
		Watches(&policyv1.PodDisruptionBudget{}, handler.Funcs{}). // they are read from the cache; no event of theirs matters
		WithOptions(controller.Options{
			MaxConcurrentReconciles: maxConcurrentReconciles,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, time.Minute),
		}).
		Complete(r)
}

// Reconcile takes one look at one node. Nobody is asked anything unless the node
// is being drained for an upgrade and a pod on it may have had its time.
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
	case apierrors.IsConflict(err): // somebody was faster: the cache will show it
		return reconcile.Result{RequeueAfter: staleCacheRequeue}, nil
	case err != nil:
		return reconcile.Result{}, err
	case next.IsZero():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: min(max(next.Sub(r.Clock.Now()), time.Millisecond), maxRequeue)}, nil
}

// reconcileDrain does what can be done now about a node, and returns when to look again;
// zero: not until something changes.
func (r *Reconciler) reconcileDrain(ctx context.Context, node *corev1.Node) (time.Time, error) {
	drain := clusterstate.DrainState(node)
	upgrade, err := r.activeUpgrade(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if upgrade == nil || !drain.Active {
		r.clearNode(node.Name)
		if hasFirstSeen(node) {
			return time.Time{}, r.setFirstSeen(ctx, node, nil)
		}
		return time.Time{}, nil
	}
	start, err := r.drainStart(ctx, node, drain, upgrade)
	if err != nil {
		return time.Time{}, err
	}
	d := deadlines{unprotected: start.Add(r.Config().TimeOut.Duration)}
	if upgrade.pdbTimeout >= 0 {
		d.pdbProtected = start.Add(upgrade.pdbTimeout)
	}
	now := r.Clock.Now()
	if first := d.first(); now.Before(first) {
		return first, nil
	}
	if next := r.drains.nextPass(node.Name, d); now.Before(next) {
		return next, nil
	}
	s := &drainScope{Reconciler: r, node: node, drain: drain, upgrade: upgrade, log: ctrl.LoggerFrom(ctx)}
	next, err := s.reconcile(ctx, now, d)
	if err != nil {
		return time.Time{}, err
	}
	r.drains.recordPass(node.Name, d, next)
	return next, nil
}

// mapToDrainingNodes are the nodes to which a change of an upgrade may matter.
func (r *Reconciler) mapToDrainingNodes(ctx context.Context, _ client.Object) []reconcile.Request {
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the nodes could not be listed")
		return nil
	}
	var requests []reconcile.Request
	for i := range nodes.Items {
		if isRelevant(&nodes.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&nodes.Items[i])})
		}
	}
	return requests
}

// drainChangedPredicate lets through what has changed in a node's drain, and nothing else.
type drainChangedPredicate struct{ predicate.Funcs }

// Create lets through nodes that are being drained, or were when they were last looked at.
func (drainChangedPredicate) Create(e event.CreateEvent) bool {
	node, ok := e.Object.(*corev1.Node)
	return !ok || isRelevant(node)
}

// Update compares what two states of a node say of its drain.
func (drainChangedPredicate) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*corev1.Node)
	after, okAfter := e.ObjectNew.(*corev1.Node)
	if !ok || !okAfter {
		return true
	}
	return !clusterstate.DrainState(before).Equal(clusterstate.DrainState(after)) || hasFirstSeen(before) != hasFirstSeen(after) ||
		before.Annotations[AnnotationDrainFirstSeen] != after.Annotations[AnnotationDrainFirstSeen]
}

// isRelevant says whether the node is being drained, or was when it was last looked at.
func isRelevant(node *corev1.Node) bool {
	return clusterstate.DrainState(node).Active || hasFirstSeen(node)
}

func hasFirstSeen(node *corev1.Node) bool {
	_, ok := node.Annotations[AnnotationDrainFirstSeen]
	return ok
}

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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/telemetry"
)

const (
	// atOnce is how many nodes are dealt with at once. What takes time is to
	// wait for the API server; a hundred nodes may be drained at the same time.
	atOnce = 16
	// soon is when a node is looked at again of which the cache was behind.
	soon = time.Second
	// longestRest is the longest time between two looks at a node that is being
	// drained: so long may a changed configuration take to be noticed.
	longestRest = 5 * time.Minute
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
	Events  Teller
	Metrics *telemetry.Drains

	drains memory
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
		For(&corev1.Node{}, builder.WithPredicates(drainChanged{})).
		Watches(&v1alpha1.UpgradeConfig{}, handler.EnqueueRequestsFromMapFunc(r.concerned)).
		Watches(&policyv1.PodDisruptionBudget{}, handler.Funcs{}). // they are read from the cache; no event of theirs matters
		WithOptions(controller.Options{
			MaxConcurrentReconciles: atOnce,
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
			r.forget(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	next, err := r.keep(ctx, &node)
	switch {
	case apierrors.IsConflict(err): // somebody was faster: the cache will show it
		return reconcile.Result{RequeueAfter: soon}, nil
	case err != nil:
		return reconcile.Result{}, err
	case next.IsZero():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: min(max(next.Sub(r.Clock.Now()), time.Millisecond), longestRest)}, nil
}

// keep does what can be done now about a node, and returns when to look again;
// zero: not until something changes.
func (r *Reconciler) keep(ctx context.Context, node *corev1.Node) (time.Time, error) {
	drain := cluster.DrainOf(node)
	upgrade, err := r.underWay(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if upgrade == nil || !drain.Running {
		r.forget(node.Name)
		if isNoted(node) {
			return time.Time{}, r.note(ctx, node, nil)
		}
		return time.Time{}, nil
	}
	since, err := r.since(ctx, node, drain, upgrade)
	if err != nil {
		return time.Time{}, err
	}
	terms := deadlines{others: since.Add(r.Config().TimeOut.Duration)}
	if upgrade.patience >= 0 {
		terms.guarded = since.Add(upgrade.patience)
	}
	now := r.Clock.Now()
	if first := terms.first(); now.Before(first) {
		return first, nil
	}
	if next := r.drains.next(node.Name, terms); now.Before(next) {
		return next, nil
	}
	l := &look{Reconciler: r, node: node, drain: drain, upgrade: upgrade, log: ctrl.LoggerFrom(ctx)}
	next, err := l.take(ctx, now, terms)
	if err != nil {
		return time.Time{}, err
	}
	r.drains.looked(node.Name, terms, next)
	return next, nil
}

// concerned are the nodes to which a change of an upgrade may matter.
func (r *Reconciler) concerned(ctx context.Context, _ client.Object) []reconcile.Request {
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the nodes could not be listed")
		return nil
	}
	var requests []reconcile.Request
	for i := range nodes.Items {
		if concerns(&nodes.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&nodes.Items[i])})
		}
	}
	return requests
}

// drainChanged lets through what has changed in a node's drain, and nothing else.
type drainChanged struct{ predicate.Funcs }

// Create lets through nodes that are being drained, or were when they were last looked at.
func (drainChanged) Create(e event.CreateEvent) bool {
	node, ok := e.Object.(*corev1.Node)
	return !ok || concerns(node)
}

// Update compares what two states of a node say of its drain.
func (drainChanged) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*corev1.Node)
	after, okAfter := e.ObjectNew.(*corev1.Node)
	if !ok || !okAfter {
		return true
	}
	return !cluster.DrainOf(before).Equal(cluster.DrainOf(after)) || isNoted(before) != isNoted(after) ||
		before.Annotations[FirstSeen] != after.Annotations[FirstSeen]
}

// concerns says whether the node is being drained, or was when it was last looked at.
func concerns(node *corev1.Node) bool { return cluster.DrainOf(node).Running || isNoted(node) }

func isNoted(node *corev1.Node) bool {
	_, is := node.Annotations[FirstSeen]
	return is
}

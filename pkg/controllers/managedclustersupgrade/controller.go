// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

const (
	// decisionInterval is the shortest time between two passes over one object, unless its spec has
	// changed.
	decisionInterval = 200 * time.Millisecond
	// publishInterval is the shortest time between two writes of one status.
	publishInterval = time.Second
	// maxAdmissions bounds how many clusters one pass admits, so that a pause is observed soon.
	maxAdmissions = 50
	// maxRequeue bounds the time until the next pass: clocks are set, and machines are suspended.
	maxRequeue = 10 * time.Minute
	// retryDelay is the time until the next pass after the cache turned out to be behind.
	retryDelay = time.Second
	// cacheTimeout is how long the cache may be behind a write before the API server is read.
	cacheTimeout = 10 * time.Second
)

// HoldAnnotation on a ManagedCluster holds its admission; its value is the reason.
const HoldAnnotation = "upgrade.managed.openshift.io/hold"

// selector selects the clusters of an upgrade by reading from the cache.
type selector func(context.Context, client.Reader, *fleetv1beta1.ManagedClustersUpgrade, selection.Options) (selection.Selection, error)

// Reconciler reconciles ManagedClustersUpgrades.
type Reconciler struct {
	// Clock provides the time.
	Clock clock.PassiveClock
	// Selection configures which Placements are used.
	Selection selection.Options

	selectMembers selector
	client        client.Client
	live          client.Reader
	memories      map[types.NamespacedName]*memory
}

// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclustersupgrades,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclustersupgrades/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclusters,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placements,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions,verbs=list;watch
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=clusterupgraderuns,verbs=get;list;watch;create;patch;delete

// Controller declares the controller.
func (r *Reconciler) Controller() manager.Controller {
	reads := []manager.Kind{
		{Object: &fleetv1beta1.ManagedClustersUpgrade{}, Requests: r.dependentRequests},
		{Object: &fleetv1alpha1.ClusterUpgradeRun{}, Requests: upgradeRequests},
		{Object: &clusterv1.ManagedCluster{}, ClusterScoped: true, Requests: r.allRequests},
		{Object: &ocmv1beta1.Placement{}, Requests: r.allRequests},
		{Object: &ocmv1beta1.PlacementDecision{}, Requests: r.allRequests},
	}
	return manager.Controller{
		Name: "managedclustersupgrade",
		AddToScheme: []func(*runtime.Scheme) error{
			fleetv1beta1.AddToScheme, fleetv1alpha1.AddToScheme, clusterv1.Install, ocmv1beta1.Install,
		},
		Reads: reads,
		Bind: func(clients manager.Clients) error {
			r.client, r.live, r.memories = clients.Client, clients.Live, map[types.NamespacedName]*memory{}
			if r.selectMembers == nil {
				r.selectMembers = selection.Select
			}
			return nil
		},
		Reconciler: r,
	}
}

// upgradeRequests requests a pass over the upgrade that a run belongs to.
func upgradeRequests(_ context.Context, object client.Object) []reconcile.Request {
	run, ok := object.(*fleetv1alpha1.ClusterUpgradeRun)
	if !ok {
		return nil
	}
	ref := &run.Spec.ManagedClustersUpgrade
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}}
}

// dependentRequests requests a pass over an upgrade and over those that depend on it.
func (r *Reconciler) dependentRequests(ctx context.Context, object client.Object) []reconcile.Request {
	requests := manager.Self(ctx, object)
	for _, request := range r.requests(ctx, func(other *fleetv1beta1.ManagedClustersUpgrade) bool {
		return other.Namespace == object.GetNamespace() && dependsOn(other, object.GetName())
	}) {
		if request != requests[0] {
			requests = append(requests, request)
		}
	}
	return requests
}

func dependsOn(upgrade *fleetv1beta1.ManagedClustersUpgrade, name string) bool {
	for i := range upgrade.Spec.DependsOn {
		if upgrade.Spec.DependsOn[i].Name == name {
			return true
		}
	}
	return false
}

// allRequests requests a pass over all upgrades.
func (r *Reconciler) allRequests(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requests(ctx, func(*fleetv1beta1.ManagedClustersUpgrade) bool { return true })
}

func (r *Reconciler) requests(ctx context.Context, matches func(*fleetv1beta1.ManagedClustersUpgrade) bool) []reconcile.Request {
	var list fleetv1beta1.ManagedClustersUpgradeList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the ManagedClustersUpgrades that a change concerns")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if matches(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// Reconcile makes one pass over one upgrade.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{}
	err := r.client.Get(ctx, req.NamespacedName, upgrade)
	if apierrors.IsNotFound(err) {
		delete(r.memories, req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("getting ManagedClustersUpgrade %s: %w", req, err)
	}
	now := r.Clock.Now()
	m := r.memory(upgrade, now)
	if m.isBehind(upgrade, now) {
		return reconcile.Result{RequeueAfter: retryDelay}, nil // the watch usually comes first
	}
	if rest := m.decided.Add(decisionInterval).Sub(now); rest > 0 && rest <= decisionInterval && m.generation == upgrade.Generation {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	s := &scope{Reconciler: r, memory: m, upgrade: upgrade, now: now, wake: now.Add(maxRequeue)}
	if upgrade.DeletionTimestamp != nil {
		err = s.delete(ctx)
	} else {
		err = s.reconcile(ctx)
	}
	behind := apierrors.IsConflict(err) || errors.Is(err, errBehind)
	if err != nil && !behind {
		return reconcile.Result{}, err // the next pass is not deferred, which would reset the backoff
	}
	m.decided, m.generation = now, upgrade.Generation
	if behind {
		return reconcile.Result{RequeueAfter: retryDelay}, nil
	}
	return reconcile.Result{RequeueAfter: max(s.wake.Sub(now), time.Millisecond)}, nil
}

// ensureFinalizer adds the finalizer before the first object is created. It reports whether the
// object was written.
func (s *scope) ensureFinalizer(ctx context.Context) (bool, error) {
	if controllerutil.ContainsFinalizer(s.upgrade, fleetv1beta1.Finalizer) {
		return false, nil
	}
	return true, s.patch(ctx, "adding the finalizer of", func(u *fleetv1beta1.ManagedClustersUpgrade) {
		controllerutil.AddFinalizer(u, fleetv1beta1.Finalizer)
	})
}

// patch changes the metadata of the upgrade.
func (s *scope) patch(ctx context.Context, doing string, change func(*fleetv1beta1.ManagedClustersUpgrade)) error {
	updated := s.upgrade.DeepCopy()
	change(updated)
	replaced := s.upgrade.ResourceVersion
	if err := s.client.Patch(ctx, updated, client.MergeFromWithOptions(s.upgrade, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("%s ManagedClustersUpgrade %s: %w", doing, client.ObjectKeyFromObject(s.upgrade), err)
	}
	s.memory.wrote(replaced, s.now)
	s.upgrade = updated
	return nil
}

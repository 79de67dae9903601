// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
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

// selector selects the clusters of an upgrade by reading from the cache.
type selector func(
	context.Context, client.Reader, *fleetv1beta1.ManagedClustersUpgrade, map[string]*clusterv1.ManagedCluster, selection.Options,
) (selection.Selection, error)

// Reconciler reconciles ManagedClustersUpgrades.
type Reconciler struct {
	// Clock provides the time.
	Clock clock.PassiveClock
	// Selection configures which Placements are used.
	Selection selection.Options
	// Image is the image of the Jobs that approve operators; empty means that no cluster begins an upgrade
	// of operators.
	Image string
	// Metrics are set after each pass; nil means that they are not exported.
	Metrics *metrics.Fleets

	events        *notify.Events
	selectMembers selector
	client        client.Client
	live          client.Reader
	caches        map[types.NamespacedName]*cache
}

// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclustersupgrades,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclustersupgrades/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclusters,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placements,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions,verbs=list;watch
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=clusterupgraderuns,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=work.open-cluster-management.io,resources=manifestworks,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create

// Controller declares the controller.
func (r *Reconciler) Controller() manager.Controller {
	reads := []manager.Kind{
		{Object: &fleetv1beta1.ManagedClustersUpgrade{}, Requests: r.upgradeRequests},
		{Object: &fleetv1alpha1.ClusterUpgradeRun{}, Requests: r.runRequests},
		{
			Object: &clusterv1.ManagedCluster{}, ClusterScoped: true, Transform: admission.TrimCluster,
			Requests: r.clusterRequests, Predicates: []predicate.Predicate{clusterChanged()},
		},
		{Object: &workv1.ManifestWork{}, HasLabel: fleetv1beta1.UpgradeLabel, Transform: delivery.TrimWork, Requests: r.workRequests},
		{Object: &ocmv1beta1.Placement{}, Requests: r.placementRequests},
		{Object: &ocmv1beta1.PlacementDecision{}, Requests: r.decisionRequests},
	}
	return manager.Controller{
		Name: "managedclustersupgrade",
		AddToScheme: []func(*runtime.Scheme) error{
			corev1.AddToScheme, fleetv1beta1.AddToScheme, fleetv1alpha1.AddToScheme, clusterv1.Install, ocmv1beta1.Install, workv1.Install,
		},
		Reads: reads,
		Bind: func(clients manager.Clients) error {
			r.client, r.live, r.caches = clients.Client, clients.Live, map[types.NamespacedName]*cache{}
			if r.selectMembers == nil {
				r.selectMembers = selection.Select
			}
			if r.Metrics == nil {
				unexported, err := metrics.NewFleets(prometheus.NewRegistry())
				if err != nil {
					return fmt.Errorf("creating the metrics: %w", err)
				}
				r.Metrics = unexported
			}
			r.events = &notify.Events{Client: clients.Client, Clock: r.Clock, Component: component, OnFailure: r.Metrics.IncEventFailures}
			return nil
		},
		Reconciler: r,
	}
}

// Reconcile makes one pass over one upgrade.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{}
	err := r.client.Get(ctx, req.NamespacedName, upgrade)
	if apierrors.IsNotFound(err) {
		delete(r.caches, req.NamespacedName)
		r.Metrics.DeleteFleet(req.Namespace, req.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("getting ManagedClustersUpgrade %s: %w", req, err)
	}
	now := r.Clock.Now()
	m := r.cacheOf(upgrade, now)
	if m.replaced.IsBehind(upgrade, now) {
		return reconcile.Result{RequeueAfter: retryDelay}, nil // the watch usually comes first
	}
	if rest := m.decided.Add(decisionInterval).Sub(now); rest > 0 && rest <= decisionInterval && m.generation == upgrade.Generation {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	s := &scope{Reconciler: r, cache: m, upgrade: upgrade, now: now, wake: now.Add(maxRequeue)}
	if upgrade.DeletionTimestamp != nil {
		err = s.delete(ctx)
		s.observeDeletion()
	} else {
		if err = s.reconcile(ctx); err == nil {
			s.observe()
		} else {
			s.observeFailure()
		}
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

// ensureFinalizer adds the finalizer before the first object is created.
func (s *scope) ensureFinalizer(ctx context.Context) error {
	if controllerutil.ContainsFinalizer(s.upgrade, fleetv1beta1.Finalizer) {
		return nil
	}
	return s.write(ctx, "adding the finalizer of", s.patchObject, func(u *fleetv1beta1.ManagedClustersUpgrade) {
		controllerutil.AddFinalizer(u, fleetv1beta1.Finalizer)
	})
}

// patch patches an object or its status.
type patch func(ctx context.Context, updated client.Object, patch client.Patch) error

func (s *scope) patchObject(ctx context.Context, updated client.Object, patch client.Patch) error {
	return s.client.Patch(ctx, updated, patch)
}

func (s *scope) patchStatus(ctx context.Context, updated client.Object, patch client.Patch) error {
	return s.client.Status().Patch(ctx, updated, patch)
}

// write changes the upgrade or its status, unless it was changed since it was read.
func (s *scope) write(ctx context.Context, doing string, send patch, change func(*fleetv1beta1.ManagedClustersUpgrade)) error {
	updated := s.upgrade.DeepCopy()
	change(updated)
	if err := send(ctx, updated, client.MergeFromWithOptions(s.upgrade, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("%s ManagedClustersUpgrade %s: %w", doing, client.ObjectKeyFromObject(s.upgrade), err)
	}
	s.cache.replaced.Note(s.upgrade, updated, s.now)
	s.upgrade = updated
	return nil
}

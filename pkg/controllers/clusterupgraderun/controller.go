// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/feedback"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/fleet"
)

// Reconciler runs ClusterUpgradeRuns.
type Reconciler struct {
	// Clock provides the time.
	Clock clock.PassiveClock
	// Image is the image of the Job that approves operators.
	Image string
	// ReplicaSets has the actions delivered by ManifestWorkReplicaSets of Open Cluster Management, not by
	// works of the runs.
	ReplicaSets bool
	// Notifier publishes what happens to runs. Without Events, those of the hub are used.
	Notifier notify.MultiPublisher
	// Metrics counts what happens to runs; nil means that it is not exported.
	Metrics *metrics.Upgrades
	// OnEventFailure is called for each Event that could not be written; nil means that Metrics counts it.
	OnEventFailure func()
	// Holders decides whether a lock may be broken; nil means that no other kind uses the locks.
	Holders *lock.Holders

	lifecycle *lifecycle.Reconciler[*fleetv1alpha1.ClusterUpgradeRun]
	client    client.Client
	cache     cache
	creations *fleet.Creations

	// changeTable makes the table of another release; nil, as outside of tests, means that of this one.
	changeTable func(engine.Runbook) engine.Runbook
}

// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=clusterupgraderuns,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=clusterupgraderuns/status,verbs=patch
// +kubebuilder:rbac:groups=work.open-cluster-management.io,resources=manifestworks,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placements,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclustersupgrades,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclusters,verbs=list;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=cluster-upgrade,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create

// workers is how many runs are reconciled at a time. Most of the time of a pass is the wait for the answers
// to its writes; two runs of one cluster exclude each other by its Lease.
const workers = 8

// Controller declares the controller.
func (r *Reconciler) Controller() manager.Controller {
	r.lifecycle = &lifecycle.Reconciler[*fleetv1alpha1.ClusterUpgradeRun]{Kind: kind{r}}
	facts := []manager.Kind{
		{Object: &workv1.ManifestWork{}, HasLabel: fleetv1beta1.UpgradeLabel, Transform: delivery.TrimWork, Requests: r.workChanged, IsUrgent: reportsFailure},
		{Object: &fleetv1beta1.ManagedClustersUpgrade{}, Requests: r.upgradeChanged},
		{Object: &clusterv1.ManagedCluster{}, ClusterScoped: true, Transform: admission.TrimCluster, Requests: r.clusterChanged},
		{Object: &ocmv1beta1.Placement{}},
		{Object: &ocmv1beta1.PlacementDecision{}},
	}
	if r.ReplicaSets {
		facts = append(facts, manager.Kind{Object: &workv1alpha1.ManifestWorkReplicaSet{}, HasLabel: fleetv1beta1.UpgradeLabel})
	}
	c := r.lifecycle.Controller(lifecycle.Declaration{
		Name: "clusterupgraderun",
		AddToScheme: []func(*runtime.Scheme) error{
			fleetv1beta1.AddToScheme, fleetv1alpha1.AddToScheme, clusterv1.Install, ocmv1beta1.Install, workv1.Install, workv1alpha1.Install,
		},
		Objects: manager.Kind{Object: &fleetv1alpha1.ClusterUpgradeRun{}}, ActsOnStatus: true,
		Facts: facts,
	})
	bind := c.Bind
	c.Bind = func(clients manager.Clients) error {
		if err := r.bind(clients); err != nil {
			return err
		}
		return bind(clients)
	}
	c.Reconciler, c.MaxConcurrentReconciles = r, workers
	return c
}

func (r *Reconciler) bind(clients manager.Clients) error {
	r.client, r.creations = clients.Client, &fleet.Creations{Clock: r.Clock}
	if r.Metrics == nil {
		unexported, err := metrics.NewUpgrades(prometheus.NewRegistry())
		if err != nil {
			return fmt.Errorf("creating the metrics: %w", err)
		}
		r.Metrics = unexported
	}
	if r.OnEventFailure == nil {
		r.OnEventFailure = r.Metrics.IncEventFailures
	}
	if r.Notifier.Events == nil {
		r.Notifier.Events = &notify.Events{Client: clients.Client, Clock: r.Clock, Omit: isOmitted, OnFailure: r.OnEventFailure}
	}
	l := r.lifecycle
	l.Clock, l.Notifier, l.Metrics, l.Holders = r.Clock, r.Notifier, r.Metrics, r.Holders
	return nil
}

// isOmitted reports which steps have no Event. The status of the run shows what it waits for; thousands of
// Events would only hide the others.
func isOmitted(n notify.StepNotification) bool {
	switch n.Class {
	case engine.ClassWaiting:
		return true
	case engine.ClassDone:
		return n.Step == fleetv1alpha1.StepUpgradeDelivered || n.Step == fleetv1alpha1.StepWorksRemoved
	case engine.ClassSkipped:
		return slices.Contains([]string{fleet.ReasonNoAction, fleet.ReasonNoClusterVersion, fleet.ReasonNoOperators}, n.Reason)
	case engine.ClassUnknown, engine.ClassFailed:
	}
	return false
}

// reportsFailure reports whether the agent reports in a ManifestWork what may fail a run.
func reportsFailure(obj client.Object) bool {
	work, is := obj.(*workv1.ManifestWork)
	if !is {
		return false
	}
	f := feedback.Read(work)
	return f.ReportsFailure()
}

// workChanged requests a pass over the runs that a ManifestWork may concern.
func (r *Reconciler) workChanged(ctx context.Context, work client.Object) []reconcile.Request {
	return r.requests(ctx, client.InNamespace(work.GetNamespace()))
}

// clusterChanged requests a pass over the runs of a cluster.
func (r *Reconciler) clusterChanged(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.requests(ctx, client.InNamespace(cluster.GetName()))
}

// upgradeChanged requests a pass over the runs of a ManagedClustersUpgrade if a change of it concerns
// them: of its spec, or that all its clusters are finished. Its status changes with each of its runs.
func (r *Reconciler) upgradeChanged(ctx context.Context, obj client.Object) []reconcile.Request {
	upgrade, ok := obj.(*fleetv1beta1.ManagedClustersUpgrade)
	if !ok || !r.cache.upgradeChanged(upgrade) {
		return nil
	}
	return r.requests(ctx, client.MatchingLabels{fleetv1beta1.UpgradeLabel: string(upgrade.UID)})
}

func (r *Reconciler) requests(ctx context.Context, selected client.ListOption) []reconcile.Request {
	runs, err := list(ctx, r.client, selected)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the runs that a change concerns")
		return nil
	}
	requests := make([]reconcile.Request, len(runs))
	for i := range runs {
		requests[i].NamespacedName = client.ObjectKeyFromObject(runs[i])
	}
	return requests
}

// Reconcile makes one pass over one run.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var run fleetv1alpha1.ClusterUpgradeRun
	switch err := r.client.Get(ctx, req.NamespacedName, &run); {
	case apierrors.IsNotFound(err):
		r.cache.delete(req.NamespacedName)
		return r.lifecycle.Reconcile(ctx, req)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("getting ClusterUpgradeRun %s: %w", req.NamespacedName, err)
	}
	v, err := r.observe(ctx, &run)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.cache.setView(req.NamespacedName, v)
	if changed, err := r.protect(ctx, &run); changed || err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // the change causes another pass
	}
	if !run.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(&run, fleetv1alpha1.Finalizer) {
		return reconcile.Result{}, nil // the lifecycle has released it
	}
	if run.Spec.Outcome != nil && !hasRecord(&run) {
		return reconcile.Result{}, r.publishOutcome(ctx, &run)
	}
	result, err := r.lifecycle.Reconcile(ctx, req)
	if err != nil {
		return reconcile.Result{}, err
	}
	if v.failing { // until it has failed, other clusters begin
		result.Priority = new(manager.UrgentPriority)
	}
	return result, r.tidy(ctx, &run, v)
}

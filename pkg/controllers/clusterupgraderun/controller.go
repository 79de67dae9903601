// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	fleetrun "github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// Reconciler runs ClusterUpgradeRuns.
type Reconciler struct {
	Clock          clock.PassiveClock
	Namespace      string                // of the hub: the locks of the clusters are in it
	Image          string                // of the Job that approves operators
	ReplicaSets    bool                  // ManifestWorkReplicaSets of Open Cluster Management deliver the actions, not works of the runs
	Notifier       notify.MultiPublisher // without Events, the Events of the hub are used
	Metrics        *metrics.Upgrades     // nil if nothing is exported
	OnEventFailure func()                // is called for each Event that could not be written; nil if Metrics counts them
	Holders        *lock.Holders         // decide whether a lock may be broken; nil if no other kind uses the locks

	lifecycle *lifecycle.Reconciler[*fleetv1alpha1.ClusterUpgradeRun]
	client    client.Client
	live      client.Reader
	views     sync.Map // of runs, by name; a loss costs a pass, and delays the report that a cluster is slow
	writes    *fleetrun.Writes

	// changeTable makes the table of another release, in tests.
	changeTable func(engine.Runbook) engine.Runbook
}

// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=clusterupgraderuns,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=clusterupgraderuns/status,verbs=patch
// +kubebuilder:rbac:groups=work.open-cluster-management.io,resources=manifestworks,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placements,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclustersupgrades,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclusters,verbs=list;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=cluster-upgrade,verbs=get;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create

// workers is how many runs are reconciled at a time. A pass mostly waits for the answers to its writes. Two runs of one
// cluster exclude each other by its Lease.
const workers = 8

// Controller declares the controller.
func (r *Reconciler) Controller() manager.Controller {
	r.lifecycle = &lifecycle.Reconciler[*fleetv1alpha1.ClusterUpgradeRun]{Kind: kind{r}}
	runsBeside := func(ctx context.Context, work client.Object) []reconcile.Request {
		return r.requests(ctx, client.InNamespace(work.GetNamespace()))
	}
	runsOfUpgrade := func(ctx context.Context, upgrade client.Object) []reconcile.Request {
		return r.requests(ctx, client.MatchingLabels{fleetv1beta1.UpgradeLabel: string(upgrade.GetUID())})
	}
	runsOfCluster := func(ctx context.Context, cluster client.Object) []reconcile.Request {
		return r.requests(ctx, client.InNamespace(cluster.GetName()))
	}
	facts := []manager.Kind{
		{Object: &workv1.ManifestWork{}, HasLabel: fleetv1beta1.UpgradeLabel, Transform: delivery.TrimWork, Requests: runsBeside, IsUrgent: reportsFailure},
		{Object: &fleetv1beta1.ManagedClustersUpgrade{}, Requests: runsOfUpgrade, Predicates: []predicate.Predicate{concernsRuns()}},
		{Object: &clusterv1.ManagedCluster{}, ClusterScoped: true, Transform: admission.TrimCluster, Requests: runsOfCluster},
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
		LockNamespaces: []string{r.Namespace}, LockLabel: lockLabel,
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
	r.client, r.live, r.writes = clients.Client, clients.Live, &fleetrun.Writes{Clock: r.Clock}
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
		r.Notifier.Events = &notify.Events{Client: clients.Client, Clock: r.Clock, Omit: IsOmitted, OnFailure: r.OnEventFailure}
	}
	l := r.lifecycle
	l.Clock, l.Notifier, l.Metrics, l.Holders = r.Clock, r.Notifier, r.Metrics, r.Holders
	return nil
}

// IsOmitted reports whether a step is not published: what thousands of runs wait for would only hide the others.
func IsOmitted(n notify.StepNotification) bool {
	switch n.Class {
	case engine.ClassWaiting:
		return true
	case engine.ClassDone:
		return n.Step == fleetv1alpha1.StepUpgradeDelivered || n.Step == fleetv1alpha1.StepWorksRemoved
	case engine.ClassSkipped:
		return slices.Contains([]string{fleetrun.ReasonNoAction, fleetrun.ReasonNoClusterVersion, fleetrun.ReasonNoOperators}, n.Reason)
	case engine.ClassUnknown, engine.ClassFailed:
	}
	return false
}

// reportsFailure reports whether the agent reports in a ManifestWork what may fail a run.
func reportsFailure(obj client.Object) bool {
	work, is := obj.(*workv1.ManifestWork)
	return is && delivery.Read(work).ReportsFailure()
}

func (r *Reconciler) requests(ctx context.Context, selected client.ListOption) []reconcile.Request {
	return manager.Requests[*fleetv1alpha1.ClusterUpgradeRun](ctx, r.client, &fleetv1alpha1.ClusterUpgradeRunList{}, nil, selected)
}

// concernsRuns passes changes of a ManagedClustersUpgrade that concern its runs: of its spec, or that all its clusters are
// finished. Its status changes with each of its runs.
func concernsRuns() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isOld := e.ObjectOld.(*fleetv1beta1.ManagedClustersUpgrade)
		after, isNew := e.ObjectNew.(*fleetv1beta1.ManagedClustersUpgrade)
		return !isOld || !isNew || !after.DeletionTimestamp.IsZero() || before.UID != after.UID ||
			before.Generation != after.Generation || isFinished(before) != isFinished(after)
	}}
}

// Reconcile makes one pass over one run.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var run fleetv1alpha1.ClusterUpgradeRun
	switch err := r.client.Get(ctx, req.NamespacedName, &run); {
	case apierrors.IsNotFound(err):
		r.views.Delete(req.NamespacedName)
		return r.lifecycle.Reconcile(ctx, req)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("getting ClusterUpgradeRun %s: %w", req.NamespacedName, err)
	}
	if refused, err := manager.RefuseUndecodable(ctx, r.client, r.Clock.Now(), &run); refused || err != nil {
		return reconcile.Result{}, err
	}
	v, err := r.observe(ctx, &run)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.views.Store(req.NamespacedName, v)
	if changed, err := r.protect(ctx, &run); changed || err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // the change causes another pass
	}
	if !run.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(&run, fleetv1alpha1.Finalizer) {
		return reconcile.Result{}, nil // the lifecycle has released it
	}
	if run.Spec.AdmissionTime.IsZero() && !hasRecord(&run) {
		return reconcile.Result{}, errors.Join(r.publishPending(ctx, &run), r.removeActions(ctx, &run, v))
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

const (
	runbookType   = "ClusterUpgradeRun" // names the only runbook
	cancelTimeout = 10 * time.Minute    // how long a deletion waits until a request is withdrawn
	// never is how often a step is written that waits for the same reason: there are thousands of runs.
	never = -1
	// withdrawn explains why a cluster is pending again.
	withdrawn = "it was held, locked, or out of reach for stallTimeout before its upgrade was requested; it begins once that ends"
	noVersion = "none" // the version in the record of a run that upgrades no platform
)

// kind describes ClusterUpgradeRuns to the lifecycle.
type kind struct{ *Reconciler }

func (kind) GroupVersionKind() schema.GroupVersionKind {
	return fleetv1alpha1.GroupVersion.WithKind("ClusterUpgradeRun")
}

func (kind) Finalizer() string { return fleetv1alpha1.Finalizer }

func (kind) New() *fleetv1alpha1.ClusterUpgradeRun { return &fleetv1alpha1.ClusterUpgradeRun{} }

func (kind) HistoryKey() lifecycle.HistoryKey { return lifecycle.ByAttempt }

const lockLabel = "upgrade.managed.openshift.io/cluster-upgrade" // marks the locks of clusters

// LockKey names the lock of the cluster. It is where the agent of the cluster may not write.
func (k kind) LockKey(run *fleetv1alpha1.ClusterUpgradeRun) client.ObjectKey {
	return client.ObjectKey{Namespace: k.Namespace, Name: lock.Name + "-" + run.Namespace}
}

func (kind) LockLabels() map[string]string { return map[string]string{lockLabel: ""} }

func (kind) FormerLockNamespace(run *fleetv1alpha1.ClusterUpgradeRun) string { return run.Namespace }

func (kind) List(ctx context.Context, r client.Reader) ([]*fleetv1alpha1.ClusterUpgradeRun, error) {
	return list(ctx, r)
}

// ListOfLock returns the runs of the cluster of a lock.
func (k kind) ListOfLock(ctx context.Context, r client.Reader, key client.ObjectKey) ([]*fleetv1alpha1.ClusterUpgradeRun, error) {
	cluster, found := strings.CutPrefix(key.Name, lock.Name+"-")
	if !found || key.Namespace != k.Namespace {
		return nil, nil
	}
	return list(ctx, r, client.InNamespace(cluster))
}

func list(ctx context.Context, r client.Reader, options ...client.ListOption) ([]*fleetv1alpha1.ClusterUpgradeRun, error) {
	var list fleetv1alpha1.ClusterUpgradeRunList
	if err := r.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("listing the ClusterUpgradeRuns: %w", err)
	}
	all := make([]*fleetv1alpha1.ClusterUpgradeRun, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

func (kind) Status(run *fleetv1alpha1.ClusterUpgradeRun) lifecycle.Status {
	return lifecycle.Status{
		Conditions: &run.Status.Conditions, ObservedGeneration: &run.Status.ObservedGeneration,
		NextTime: &run.Status.NextTime, History: &run.Status.History,
	}
}

// Request returns the attempt of the spec.
func (k kind) Request(run *fleetv1alpha1.ClusterUpgradeRun) lifecycle.AttemptRequest {
	request := lifecycle.AttemptRequest{
		Version: version(run), At: run.Spec.AdmissionTime.Time, Due: true, RunbookType: runbookType, Number: run.Spec.Attempt,
	}
	v := k.view(run)
	upgrade := v.upgrade
	ref := &run.Spec.ManagedClustersUpgrade
	switch {
	case upgrade == nil:
		request.Paused = fmt.Sprintf("ManagedClustersUpgrade %s/%s does not exist", ref.Namespace, ref.Name)
	case upgrade.Spec.Cancelled:
		request.Cancelled = "spec.cancelled of the ManagedClustersUpgrade is true"
	case upgrade.Spec.Paused:
		request.Paused = "spec.paused of the ManagedClustersUpgrade is true"
	case upgrade.Spec.DryRun:
		request.Paused = "spec.dryRun of the ManagedClustersUpgrade is true"
	case v.held != "":
		request.Paused = v.held
	}
	if run.Spec.AdmissionTime.IsZero() {
		request.Withdrawn = withdrawn
	}
	return request
}

func version(run *fleetv1alpha1.ClusterUpgradeRun) string {
	if run.Spec.ClusterVersion == nil {
		return noVersion
	}
	return cmp.Or(run.Spec.ClusterVersion.Version, run.Spec.ClusterVersion.Image)
}

// Plan returns how the attempt is carried out.
func (k kind) Plan(run *fleetv1alpha1.ClusterUpgradeRun, record history.Record, _ string, _ engine.UpgradeStep) lifecycle.AttemptPlan {
	v := k.view(run)
	cluster := k.cluster(run)
	cluster.Record = record
	table := cluster.Runbook(v.upgrade, v.progress.at)
	if k.changeTable != nil {
		table = k.changeTable(table)
	}
	retry := "raise spec.attempt of the ManagedClustersUpgrade"
	if v.upgrade != nil && v.upgrade.Spec.Cancelled { // another attempt has no effect
		retry = "create another ManagedClustersUpgrade"
	}
	return lifecycle.AttemptPlan{
		Known: true, Type: runbookType,
		Book:   table,
		Window: -1, CancelTimeout: cancelTimeout, FinalizerPreset: true,
		Heartbeat: never, MessageInterval: never,
		Retry: retry,
	}
}

// Release also removes the finalizer about works with the ClusterVersion, unless one is left. A deleted run keeps it until
// protect has removed these works. The garbage collector deletes the other works of a deleted run, except works of sets.
func (k kind) Release(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun) error {
	cluster := k.cluster(run)
	if !run.DeletionTimestamp.IsZero() {
		return cluster.UnlistActions(ctx)
	}
	if left, err := cluster.ProtectClusterVersion(ctx); err != nil || left {
		return err
	}
	controllerutil.RemoveFinalizer(run, fleetv1alpha1.WorksFinalizer)
	return nil
}

// Hold returns no reason: Request pauses a held cluster.
func (kind) Hold(context.Context) (string, error) { return "", nil }

// CacheIsCurrent returns true: the runbook has no admission.
func (kind) CacheIsCurrent(context.Context) (bool, error) { return true, nil }

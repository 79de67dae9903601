// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

const (
	decisionInterval = 200 * time.Millisecond // between two passes over one object, unless its spec has changed
	publishInterval  = time.Second            // between two writes of one status
	maxAdmissions    = 50                     // bounds how many clusters one pass admits: a pause is observed soon
	maxRequeue       = 10 * time.Minute       // bounds the time until the next pass: clocks are set, and machines are suspended
	retryDelay       = time.Second            // until the next pass if the cache is behind
	cacheTimeout     = 10 * time.Second       // how long the cache may be behind a write before the API server is read
)

type selector func(
	context.Context, client.Reader, *fleetv1beta1.ManagedClustersUpgrade, map[string]*clusterv1.ManagedCluster, selection.SelectOptions,
) (selection.Selection, error)

// Reconciler reconciles ManagedClustersUpgrades.
type Reconciler struct {
	Clock     clock.PassiveClock
	Selection selection.SelectOptions // of Placements
	Image     string                  // of the Jobs that approve operators; if it is empty, no cluster begins an upgrade of operators
	Metrics   *metrics.Fleets         // nil if nothing is exported
	Webhook   notify.AsyncPublisher   // gets the Events as well; may be nil

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
		{Object: &ocmv1beta1.PlacementDecision{}, Requests: r.placementRequests},
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
	if req.Namespace == "" {
		return r.removeOrphans(ctx, types.UID(req.Name))
	}
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{}
	err := r.client.Get(ctx, req.NamespacedName, upgrade)
	if apierrors.IsNotFound(err) {
		m := r.caches[req.NamespacedName]
		delete(r.caches, req.NamespacedName)
		r.Metrics.DeleteFleet(req.Namespace, req.Name)
		if m != nil && r.Webhook != nil {
			r.Webhook.Reset(string(m.uid))
		}
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("getting ManagedClustersUpgrade %s: %w", req, err)
	}
	now := r.Clock.Now()
	if refused, err := manager.RefuseUndecodable(ctx, r.client, now, upgrade); refused || err != nil {
		return reconcile.Result{}, err
	}
	m := r.cacheOf(upgrade, now)
	if m.replaced.IsBehind(upgrade, now) {
		return reconcile.Result{RequeueAfter: retryDelay}, nil // the watch usually comes first
	}
	if rest := m.decided.Add(decisionInterval).Sub(now); rest > 0 && rest <= decisionInterval && m.generation == upgrade.Generation {
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	s := &scope{Reconciler: r, cache: m, Fleet: admission.Fleet{Upgrade: upgrade, Now: now}, wake: now.Add(maxRequeue)}
	s.repeatMilestones(ctx)
	if upgrade.DeletionTimestamp != nil {
		err = s.delete(ctx) // makes no progress if it takes more than minutes, whether its passes fail or wait
		s.exportAgain(fleetv1beta1.ReasonDeleting, upgrade.DeletionTimestamp.Time)
	} else if err = s.reconcile(ctx); err == nil {
		s.observe()
	} else {
		s.observeFailure()
	}
	behind := apierrors.IsConflict(err) || errors.Is(err, errBehind)
	if err != nil && !behind {
		return reconcile.Result{}, err // deferring the next pass would reset the backoff
	}
	m.decided, m.generation = now, upgrade.Generation
	if behind {
		return reconcile.Result{RequeueAfter: retryDelay}, nil
	}
	return reconcile.Result{RequeueAfter: max(s.wake.Sub(now), time.Millisecond)}, nil
}

// write changes the upgrade or its status, unless it was changed since it was read.
func (s *scope) write(ctx context.Context, doing string, isStatus bool, change func(*fleetv1beta1.ManagedClustersUpgrade)) error {
	updated := s.Upgrade.DeepCopy()
	change(updated)
	patch := client.MergeFromWithOptions(s.Upgrade, client.MergeFromWithOptimisticLock{})
	var err error
	if isStatus {
		err = s.client.Status().Patch(ctx, updated, patch)
	} else {
		err = s.client.Patch(ctx, updated, patch)
	}
	if err != nil {
		return fmt.Errorf("%s ManagedClustersUpgrade %s: %w", doing, client.ObjectKeyFromObject(s.Upgrade), err)
	}
	s.cache.replaced.Note(s.Upgrade, updated, s.Now)
	if s.cache.status == &s.Upgrade.Status {
		s.cache.status = &updated.Status
	}
	s.Upgrade = updated
	return nil
}

// runRequests requests a pass over the upgrade of a run, over the dry runs that check its cluster, and, once the run has
// ended, over the upgrades that wait for it.
func (r *Reconciler) runRequests(ctx context.Context, object client.Object) []reconcile.Request {
	run, ok := object.(*fleetv1alpha1.ClusterUpgradeRun)
	if !ok {
		return nil
	}
	ref := &run.Spec.ManagedClustersUpgrade
	requests := r.requestsOf(ctx, ref.UID)
	locks := run.DeletionTimestamp == nil && admission.Locks(run)
	waits := func(u *fleetv1beta1.ManagedClustersUpgrade) bool {
		return string(u.UID) != ref.UID && (u.Spec.DryRun || !locks && !isAtRest(u))
	}
	if len(r.requests(ctx, waits)) == 0 {
		return requests
	}
	uses := r.selecting(ctx, run.Namespace)
	return append(requests, r.requests(ctx, func(u *fleetv1beta1.ManagedClustersUpgrade) bool { return waits(u) && uses(u) })...)
}

// requestsOf requests a pass over the upgrade with a UID. If there is none, it requests one over the UID, as a name without a
// namespace.
func (r *Reconciler) requestsOf(ctx context.Context, uid string) []reconcile.Request {
	if requests := r.requests(ctx, func(u *fleetv1beta1.ManagedClustersUpgrade) bool { return string(u.UID) == uid }); len(requests) > 0 {
		return requests
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: uid}}}
}

// upgradeRequests requests a pass over an upgrade and over those that depend on it.
func (r *Reconciler) upgradeRequests(ctx context.Context, object client.Object) []reconcile.Request {
	return append(manager.Self(ctx, object), r.requests(ctx, func(other *fleetv1beta1.ManagedClustersUpgrade) bool {
		return other.Namespace == object.GetNamespace() && other.Name != object.GetName() &&
			slices.ContainsFunc(other.Spec.DependsOn, func(d fleetv1beta1.Dependency) bool { return d.Name == object.GetName() })
	})...)
}

// placementRequests requests a pass over the upgrades that use a Placement, or the Placement of a PlacementDecision.
func (r *Reconciler) placementRequests(ctx context.Context, object client.Object) []reconcile.Request {
	return r.requests(ctx, usesOneOf(map[types.NamespacedName]bool{placementOf(object): true}))
}

// clusterRequests requests a pass over the upgrades that select a cluster, or that have a run on it.
func (r *Reconciler) clusterRequests(ctx context.Context, object client.Object) []reconcile.Request {
	var runs fleetv1alpha1.ClusterUpgradeRunList
	uses := r.selecting(ctx, object.GetName())
	if err := r.client.List(ctx, &runs, client.InNamespace(object.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the ClusterUpgradeRuns of a cluster", "cluster", object.GetName())
		return nil
	}
	begun := map[types.UID]bool{}
	for i := range runs.Items {
		begun[types.UID(runs.Items[i].Spec.ManagedClustersUpgrade.UID)] = true
	}
	return r.requests(ctx, func(u *fleetv1beta1.ManagedClustersUpgrade) bool { return begun[u.UID] || uses(u) })
}

// selecting returns whether an upgrade selects a cluster by a Placement. If that cannot be read, no upgrade does.
func (r *Reconciler) selecting(ctx context.Context, cluster string) func(*fleetv1beta1.ManagedClustersUpgrade) bool {
	var decisions ocmv1beta1.PlacementDecisionList
	if err := r.client.List(ctx, &decisions, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the PlacementDecisions that select a cluster", "cluster", cluster)
	}
	placements := map[types.NamespacedName]bool{}
	for i := range decisions.Items {
		decision := &decisions.Items[i]
		if slices.ContainsFunc(decision.Status.Decisions, func(d ocmv1beta1.ClusterDecision) bool { return d.ClusterName == cluster }) {
			placements[placementOf(decision)] = true
		}
	}
	return usesOneOf(placements)
}

func placementOf(object client.Object) types.NamespacedName {
	key := client.ObjectKeyFromObject(object)
	if _, is := object.(*ocmv1beta1.PlacementDecision); is {
		key.Name = object.GetLabels()[ocmv1beta1.PlacementLabel]
	}
	return key
}

func usesOneOf(placements map[types.NamespacedName]bool) func(*fleetv1beta1.ManagedClustersUpgrade) bool {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) bool {
		if u.Spec.ClusterSelector != nil && placements[types.NamespacedName{Namespace: u.Namespace, Name: selection.PlacementName(u)}] {
			return true
		}
		return slices.ContainsFunc(selection.References(u), func(ref fleetv1beta1.PlacementReference) bool {
			return placements[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}]
		})
	}
}

func (r *Reconciler) requests(ctx context.Context, include func(*fleetv1beta1.ManagedClustersUpgrade) bool) []reconcile.Request {
	return manager.Requests(ctx, r.client, &fleetv1beta1.ManagedClustersUpgradeList{}, include)
}

// clusterChanged passes changes of a ManagedCluster that decide about admission or about a dry run.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isOld := e.ObjectOld.(*clusterv1.ManagedCluster)
		after, isNew := e.ObjectNew.(*clusterv1.ManagedCluster)
		return !isOld || !isNew || before.UID != after.UID ||
			admission.Detached(before) != admission.Detached(after) || (admission.Unreachable(before) == "") != (admission.Unreachable(after) == "") ||
			!maps.Equal(before.Labels, after.Labels) || admission.Held(before) != admission.Held(after) ||
			!maps.Equal(admission.Claims(before), admission.Claims(after))
	}}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package poolrelease

import (
	"context"
	"fmt"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// maxRequeue is the longest time between two passes over a marked pool. The machine config
	// operator may take a while to report that the pool has nothing to update.
	maxRequeue = 5 * time.Minute
	// conflictRequeue is the delay before a pool is reconciled again that has changed since it was
	// read.
	conflictRequeue = time.Second
)

// Reconciler unpauses pools that their upgrade no longer unpauses.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// WatchNamespaces lists the namespaces whose upgrades are reconciled. Defaults to all.
	WatchNamespaces []string
	// WithoutMaintenance is set if there are no UpgradeJobs.
	WithoutMaintenance bool
	Events             notify.EventPublisher
	Metrics            *metrics.Pools
}

// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigpools,verbs=list;watch;patch
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobs,namespace=managed-upgrade-operator,verbs=list;watch
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs,namespace=managed-upgrade-operator,verbs=list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusteroperators,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create

// Controller declares the controller.
func (r *Reconciler) Controller() manager.Controller {
	reads := facts.Watches()
	for i := range reads {
		if _, ok := reads[i].Object.(*mcfgv1.MachineConfigPool); ok {
			reads[i].Requests = manager.Self
		}
	}
	for _, kind := range r.owners() {
		objects := facts.Owners(kind, r.WatchNamespaces)
		objects.Requests = r.mapToPools
		reads = append(reads, objects)
	}
	return manager.Controller{
		Name:        "poolrelease",
		AddToScheme: facts.AddToScheme(),
		Reads:       reads,
		Bind: func(c manager.Clients) error {
			r.Client, r.Live = c.Client, c.Live
			return nil
		},
		Reconciler: r,
	}
}

// owners returns the kinds of objects whose upgrades pause pools.
func (r *Reconciler) owners() []maintenance.OwnerKind {
	if r.WithoutMaintenance {
		return []maintenance.OwnerKind{maintenance.ConfigOwners()}
	}
	return maintenance.OwnerKinds()
}

// mapToPools returns requests for the pools that an upgrade marked.
func (r *Reconciler) mapToPools(ctx context.Context, object client.Object) []reconcile.Request {
	all, err := clusterstate.ListPools(ctx, r.Client)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "finding the pools of an upgrade")
		return nil
	}
	var requests []reconcile.Request
	for _, pool := range all {
		if pool.Mark != nil && pool.Mark.OwnerUID == string(object.GetUID()) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: pool.Name}})
		}
	}
	return requests
}

// Reconcile makes one pass over one pool.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var object mcfgv1.MachineConfigPool
	if err := r.Client.Get(ctx, req.NamespacedName, &object); err != nil {
		if apierrors.IsNotFound(err) {
			r.Metrics.DeletePool(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	pool := clusterstate.NewPool(&object)
	r.setMetrics(pool)
	if pool.Mark == nil {
		r.Events.Reset(string(object.UID))
		return reconcile.Result{}, nil
	}
	found, err := r.cachedOwner(ctx, pool.Mark.OwnerUID)
	switch state := found.attempt(*pool.Mark); {
	case err != nil:
		return reconcile.Result{}, err
	case !pool.Paused && state != maintenance.AttemptOpen:
		return r.removeMark(ctx, pool)
	case state != maintenance.AttemptEnded:
		return reconcile.Result{}, nil // the upgrade still releases the pool itself
	}
	return r.reconcilePaused(ctx, &object, pool)
}

// removeMark removes the mark of a pool that a user unpaused. Before the upgrade has commenced, the
// mark stays, because it keeps the upgrade from pausing the pool again.
func (r *Reconciler) removeMark(ctx context.Context, pool clusterstate.Pool) (reconcile.Result, error) {
	if state, err := r.attemptLive(ctx, *pool.Mark); err != nil || state == maintenance.AttemptOpen {
		return reconcile.Result{RequeueAfter: maxRequeue}, err
	}
	return reconcile.Result{}, pools.RemoveMark(ctx, r.Client, pool)
}

// reconcilePaused makes one pass over a paused pool that no upgrade releases.
func (r *Reconciler) reconcilePaused(ctx context.Context, object *mcfgv1.MachineConfigPool, pool clusterstate.Pool) (reconcile.Result, error) {
	release := clusterstate.ReleaseOf(pool, pool.Delayed() && r.upToDate(ctx, pool), r.Clock.Now())
	switch release.State {
	case clusterstate.ReleaseLater:
		return reconcile.Result{RequeueAfter: min(max(release.At.Sub(r.Clock.Now()), time.Millisecond), maxRequeue)}, nil
	case clusterstate.ReleaseNow:
		return r.release(ctx, object, pool, release)
	case clusterstate.ReleaseMissed:
		return reconcile.Result{RequeueAfter: maxRequeue}, r.publish(ctx, object, corev1.EventTypeWarning, "PoolLeftPaused", fmt.Sprintf(
			"machine config pool %s stays paused: it was to be unpaused before %s; set spec.paused to false to update its nodes", pool.Name, text.FormatTime(release.At)))
	case clusterstate.ReleaseKept, clusterstate.ReleaseNotOurs:
	}
	return reconcile.Result{}, nil
}

// upToDate reports whether the pool has nothing to update. It returns false if this is unknown. The
// API server confirms a positive answer: until the cache shows that an upgrade has commenced, every
// pool is up to date.
func (r *Reconciler) upToDate(ctx context.Context, pool clusterstate.Pool) bool {
	for _, reader := range []client.Reader{r.Client, r.Live} {
		rollout, err := checks.GetRollout(ctx, reader)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "reading the state of the rollout")
		}
		if err != nil || !rollout.UpToDate(pool.Name) {
			return false
		}
	}
	return true
}

// release unpauses a pool, unless the API server shows that its upgrade is in progress. The Event
// is published first. If the operator stops in between, the next pass makes it true.
func (r *Reconciler) release(ctx context.Context, object *mcfgv1.MachineConfigPool, pool clusterstate.Pool, release clusterstate.PoolRelease) (reconcile.Result, error) {
	if state, err := r.attemptLive(ctx, *pool.Mark); err != nil || state != maintenance.AttemptEnded {
		return reconcile.Result{RequeueAfter: maxRequeue}, err
	}
	message := fmt.Sprintf("machine config pool %s is unpaused in its release window, without the upgrade that paused it: its hooks for the event MachineConfigPoolUnpause do not run", pool.Name)
	if release.UpToDate {
		message = fmt.Sprintf("machine config pool %s is unpaused, because it has nothing to update; the upgrade that paused it has ended", pool.Name)
	}
	if err := r.publish(ctx, object, corev1.EventTypeNormal, "PoolReleased", message); err != nil {
		return reconcile.Result{}, err
	}
	applied, err := pools.Release(ctx, r.Client, pool)
	if err != nil || applied {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: conflictRequeue}, nil
}

// publish publishes an Event about a pool, once for each mark. If the API server rejects the Event,
// the error is logged and the pass continues.
func (r *Reconciler) publish(ctx context.Context, object *mcfgv1.MachineConfigPool, eventType, reason, message string) error {
	id := engine.NotificationID(string(object.UID), object.Annotations[clusterstate.AnnotationPausedBy], "", reason)
	return notify.TryPublish(ctx, r.Events, objects.Reference(object, mcfgv1.GroupVersion.WithKind("MachineConfigPool")),
		engine.Notification{ID: id, Type: eventType, Reason: reason, Message: message})
}

func (r *Reconciler) setMetrics(pool clusterstate.Pool) {
	state := metrics.Pool{Updating: !pool.Paused && !pool.Updated}
	if pool.PausedByMark() {
		state.PausedReason, state.PausedUntil = metrics.PausedByDelay, pool.Mark.ReleaseBefore
		if pool.Mark.Kept() {
			state.PausedReason, state.PausedUntil = metrics.PausedByFailure, pool.Mark.KeptSince
		}
	}
	r.Metrics.SetPool(pool.Name, state)
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// upgradeConfigKind is the kind of the objects, as it stands in the lock and in Events.
const upgradeConfigKind = "UpgradeConfig"

var groupKind = v1alpha1.GroupVersion.WithKind(upgradeConfigKind).GroupKind()

// The shortest and the longest time between two looks at an upgrade that is not over.
const (
	minRequeue = time.Second
	maxRequeue = 5 * time.Minute
)

// ClusterUpgrader is a way to upgrade a cluster: it makes a runbook of an UpgradeConfig.
type ClusterUpgrader interface {
	// Runbook makes the table of the steps. It asks nobody and changes nothing;
	// the shape of the table is the same for every UpgradeConfig, also an empty
	// one. The first element of the status's history is the attempt at hand.
	// The window, a hold and a cancellation are set by the caller.
	Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook
}

// Snapshot is what upgrades are carried out with. It follows from the operator's
// configuration, and is replaced as a whole when that changes.
type Snapshot struct {
	// Upgraders are the ways to upgrade, by spec.type.
	Upgraders map[string]ClusterUpgrader
	// Config is the configuration in force.
	Config config.Config
	// ConfigError says why the configuration as it is written is not the one in
	// force; empty if it is.
	ConfigError string
}

// Reconciler carries out UpgradeConfigs.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock tells the time.
	Clock clock.PassiveClock
	// Namespace is where the cluster's lock is.
	Namespace string
	// Config returns what upgrades are carried out with now; each look takes one.
	Config func() Snapshot
	// ConfigChanged has a token whenever Setup returns another one; nil: it never does.
	ConfigChanged chan event.GenericEvent
	// Notifier and Metrics tell of upgrades.
	Notifier notify.MultiPublisher
	Metrics  *metrics.Upgrades

	store     *store
	prechecks cache[precheckResult]
	lock      *lock.Lock
	liveLock  *lock.Lock // the same lock, read from the API server
}

// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusteroperators,verbs=list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,verbs=get;list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=patch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigpools,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=cluster-upgrade,verbs=get;list;watch;patch

// SetupWithManager makes the controller part of the manager. The runbooks of the
// upgraders must be ones that Validate accepts.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.init()
	enqueueActive := handler.EnqueueRequestsFromMapFunc(r.mapToActiveConfigs)
	b := ctrl.NewControllerManagedBy(mgr).
		Named("upgradeconfig").
		For(&v1alpha1.UpgradeConfig{}).
		Watches(&configv1.ClusterVersion{}, enqueueActive).
		Watches(&configv1.ClusterOperator{}, enqueueActive).
		Watches(&mcfgv1.MachineConfigPool{}, enqueueActive).
		Watches(&corev1.Node{}, enqueueActive, builder.WithPredicates(nodeChangedPredicate{})).
		Watches(&policyv1.PodDisruptionBudget{}, enqueueActive, builder.WithPredicates(pdbChangedPredicate{})).
		Watches(&coordinationv1.Lease{}, enqueueActive).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, time.Minute),
		})
	if r.ConfigChanged != nil {
		b.WatchesRawSource(source.Channel(r.ConfigChanged, enqueueActive))
	}
	return b.Complete(r)
}

func (r *Reconciler) init() {
	r.store = &store{client: r.Client, live: r.Live}
	r.lock = &lock.Lock{Client: r.Client, Namespace: r.Namespace, Clock: r.Clock, HolderInProgress: r.holderInProgress}
	r.liveLock = &lock.Lock{Client: uncachedClient{r.Client, r.Live}, Namespace: r.Namespace, Clock: r.Clock, HolderInProgress: r.holderInProgress}
}

// Reconcile takes one look at one UpgradeConfig.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cfg, err := r.store.load(ctx, req.NamespacedName)
	switch {
	case errors.Is(err, errStaleCache):
		return reconcile.Result{RequeueAfter: minRequeue}, nil // at the latest: the event comes first
	case err != nil:
		return reconcile.Result{}, err
	case cfg == nil:
		r.Metrics.DeleteUpgrade(groupKind, req.Namespace, req.Name)
		r.prechecks.delete(req.NamespacedName)
		return reconcile.Result{}, nil
	}

	s := r.newScope(cfg, ctrl.LoggerFrom(ctx))
	next, err := s.reconcile(ctx)
	s.recordMetrics(err)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err): // somebody was faster: the cache will show it
		return reconcile.Result{RequeueAfter: minRequeue}, nil
	case err != nil:
		return reconcile.Result{}, err
	case isFinished(s.record) || cfg.DeletionTimestamp != nil && next.IsZero():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: requeueAfter(next, r.Clock.Now())}, nil
}

// requeueAfter is how long to rest until the next look. What is past, such as a deadline
// that fell due during the look, is looked at soon, but not at once: nothing may spin.
func requeueAfter(next, now time.Time) time.Duration {
	switch {
	case next.IsZero():
		return maxRequeue
	case !next.After(now):
		return minRequeue
	}
	return min(next.Sub(now), maxRequeue)
}

// holderInProgress says whether the holder of the lock still does.
func (r *Reconciler) holderInProgress(ctx context.Context, h lock.Holder) (bool, error) {
	if h.Kind != upgradeConfigKind { // who else takes part is not known here; a person may delete the Lease
		return true, nil
	}
	key := client.ObjectKey{Namespace: h.Namespace, Name: h.Name}
	for _, from := range []client.Reader{r.Client, r.Live} { // the API server is asked only if the cache says no
		var cfg v1alpha1.UpgradeConfig
		err := from.Get(ctx, key, &cfg)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if err == nil && string(cfg.UID) == h.UID {
			return true, nil
		}
	}
	return false, nil
}

// mapToActiveConfigs are the UpgradeConfigs to which a change in the cluster may matter.
func (r *Reconciler) mapToActiveConfigs(ctx context.Context, _ client.Object) []reconcile.Request {
	var list v1alpha1.UpgradeConfigList
	if err := r.Client.List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the UpgradeConfigs could not be listed")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		cfg := &list.Items[i]
		if len(cfg.Finalizers) > 0 || len(cfg.Status.History) == 0 || !isFinished(cfg.Status.History[0]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cfg)})
		}
	}
	return requests
}

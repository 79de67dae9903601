// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// ClusterUpgrader returns the runbook by which an UpgradeConfig is carried out.
type ClusterUpgrader interface {
	// Runbook returns the table of the steps. It makes no request and changes nothing. The shape of
	// the table is the same for every UpgradeConfig, an empty one included. The first element of
	// the status's history is the current attempt. The window, a hold, and a cancellation are no
	// part of the table.
	Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook
}

// Snapshot is what upgrades are carried out with. It is derived from the operator's configuration
// and replaced as a whole when that changes.
type Snapshot struct {
	// Upgraders are the known upgraders by spec.type.
	Upgraders map[string]ClusterUpgrader
	// Config is the configuration in effect.
	Config config.Config
	// ConfigError explains why the configuration in effect is not the current one; empty if it is.
	ConfigError string
}

// Reconciler runs UpgradeConfigs.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock provides the time.
	Clock clock.PassiveClock
	// Namespace is the namespace of the cluster's lock.
	Namespace string
	// WatchNamespaces lists the namespaces whose UpgradeConfigs are reconciled; empty means all.
	WatchNamespaces []string
	// Config returns what upgrades are carried out with now.
	Config func() Snapshot
	// ConfigChanged receives an event whenever Config returns another snapshot; nil means never.
	ConfigChanged chan event.GenericEvent
	// Watches declares further kinds that steps read from the cache. A change of an object reconciles
	// each upgrade that is not finished, unless the kind declares other requests.
	Watches []manager.Kind
	// Holders decides whether a lock may be broken; nil means one that knows UpgradeConfigs only.
	Holders *lock.Holders
	// Notifier publishes what happens to upgrades, Metrics counts it.
	Notifier notify.MultiPublisher
	Metrics  *metrics.Upgrades

	lifecycle *lifecycle.Reconciler[*v1alpha1.UpgradeConfig]
}

// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs,namespace=managed-upgrade-operator,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs/status,namespace=managed-upgrade-operator,verbs=patch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusteroperators,verbs=list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigpools,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=cluster-upgrade,verbs=get;list;watch;patch

// Kind declares the UpgradeConfigs that are reconciled, for all controllers that read them.
func (r *Reconciler) Kind() manager.Kind {
	return manager.Kind{Object: &v1alpha1.UpgradeConfig{}, Namespaces: r.WatchNamespaces, Transform: clusterstate.StripMetadata}
}

// Controller declares the controller. The runbooks of the upgraders must be ones that Validate
// accepts.
func (r *Reconciler) Controller() manager.Controller {
	upgradeConfigs := r.Kind()
	upgradeConfigs.Requests = manager.Self
	c := manager.Controller{
		Name: "upgradeconfig",
		AddToScheme: []func(*runtime.Scheme) error{
			v1alpha1.AddToScheme, configv1.Install, mcfgv1.Install, corev1.AddToScheme, policyv1.AddToScheme, coordinationv1.AddToScheme,
		},
		Reads: []manager.Kind{
			upgradeConfigs,
			{Object: &configv1.ClusterVersion{}, ClusterScoped: true, Name: "version", Transform: clusterstate.StripClusterVersion, Requests: r.active},
			{Object: &configv1.ClusterOperator{}, ClusterScoped: true, Transform: clusterstate.StripClusterOperator, Requests: r.active},
			{Object: &mcfgv1.MachineConfigPool{}, ClusterScoped: true, Transform: clusterstate.StripPool, Requests: r.active},
			{Object: &corev1.Node{}, ClusterScoped: true, Transform: clusterstate.StripNode, Requests: r.active, Predicates: []predicate.Predicate{nodeChangedPredicate{}}},
			{Object: &policyv1.PodDisruptionBudget{}, Transform: clusterstate.StripPDB, Requests: r.active, Predicates: []predicate.Predicate{pdbChangedPredicate{}}},
			{Object: &coordinationv1.Lease{}, Namespaces: []string{r.Namespace}, Name: lock.Name, Requests: r.leaseChanged},
		},
		Bind: func(c manager.Clients) error {
			r.Client, r.Live = c.Client, c.Live
			r.init()
			return nil
		},
		Reconciler: r,
		RateLimiter: func() workqueue.TypedRateLimiter[reconcile.Request] {
			return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, time.Minute)
		},
	}
	for _, kind := range r.Watches {
		if kind.Requests == nil {
			kind.Requests = r.active
		}
		c.Reads = append(c.Reads, kind)
	}
	if r.ConfigChanged != nil {
		c.Channels = []manager.Channel{{Events: r.ConfigChanged, Requests: r.all}}
	}
	return c
}

func (r *Reconciler) init() {
	if r.Holders == nil {
		r.Holders = &lock.Holders{Live: r.Live, Mapper: r.Client.RESTMapper(), Clock: r.Clock}
	}
	r.lifecycle = &lifecycle.Reconciler[*v1alpha1.UpgradeConfig]{
		Kind: kind{r}, Client: r.Client, Live: r.Live, Clock: r.Clock,
		Holders: r.Holders, Notifier: r.Notifier, Metrics: r.Metrics,
	}
	r.lifecycle.Init()
}

// Reconcile makes one pass over one UpgradeConfig.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.lifecycle.Reconcile(ctx, req)
}

// active returns the UpgradeConfigs that a change in the cluster may concern.
func (r *Reconciler) active(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.lifecycle.Active(ctx)
}

func (r *Reconciler) leaseChanged(ctx context.Context, lease client.Object) []reconcile.Request {
	return r.lifecycle.LeaseChanged(ctx, lease)
}

// all returns every UpgradeConfig: each shows whether the configuration is invalid.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.lifecycle.All(ctx)
}

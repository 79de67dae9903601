// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// ConfigSnapshot is a configuration and its upgraders. It is replaced as a whole when the configuration of the
// operator changes.
type ConfigSnapshot struct {
	// Upgraders are the known upgraders by spec.type.
	Upgraders map[string]upgraders.ClusterUpgrader
	// Config is the configuration in effect.
	Config config.Config
	// ConfigError explains why the current configuration is not in effect, or is empty.
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
	// WatchNamespaces lists the namespaces of the reconciled UpgradeConfigs. If empty, all are.
	WatchNamespaces []string
	// Config returns the current snapshot.
	Config func() ConfigSnapshot
	// ConfigChanged receives an event whenever Config returns another snapshot. It may be nil.
	ConfigChanged chan event.GenericEvent
	// Watches declares further kinds that steps read from the cache. A change of an object triggers a pass over
	// every unfinished upgrade, unless the kind declares other requests.
	Watches []manager.Kind
	// Holders decides whether a lock may be broken. If nil, it knows only UpgradeConfigs.
	Holders *lock.Holders
	// Notifier publishes events of upgrades, and Metrics counts them.
	Notifier notify.MultiPublisher
	Metrics  *metrics.Upgrades

	lifecycle *lifecycle.Reconciler[*upgradev1alpha1.UpgradeConfig]
}

// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs,namespace=managed-upgrade-operator,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs/status,namespace=managed-upgrade-operator,verbs=patch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=cluster-upgrade,verbs=get;list;watch;patch

// Kind declares the UpgradeConfigs that are reconciled, for all controllers that read them.
func (r *Reconciler) Kind() manager.Kind {
	return facts.Upgrades(r.WatchNamespaces)
}

// Controller declares the controller. The runbooks of the upgraders must pass Validate.
func (r *Reconciler) Controller() manager.Controller {
	r.lifecycle = &lifecycle.Reconciler[*upgradev1alpha1.UpgradeConfig]{Kind: kind{r}}
	c := r.lifecycle.Controller(lifecycle.Declaration{
		Name: "upgradeconfig", AddToScheme: append(facts.AddToScheme(), upgradev1alpha1.AddToScheme),
		Objects: r.Kind(), Facts: append(append(facts.Watches(), facts.RequiredPlans()), r.Watches...),
		LockNamespaces: []string{r.Namespace}, ConfigChanged: r.ConfigChanged,
	})
	bind := c.Bind
	c.Bind = func(clients manager.Clients) error {
		r.Client, r.Live = clients.Client, clients.Live
		l := r.lifecycle
		l.Clock, l.Holders, l.Notifier, l.Metrics = r.Clock, r.Holders, r.Notifier, r.Metrics
		return bind(clients)
	}
	c.Reconciler = r
	return c
}

// Reconcile makes one pass over one UpgradeConfig.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var cfg upgradev1alpha1.UpgradeConfig
	if err := r.Client.Get(ctx, req.NamespacedName, &cfg); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting UpgradeConfig %s: %w", req.NamespacedName, err)
	}
	if refused, err := manager.RefuseUndecodable(ctx, r.Client, r.Clock.Now(), &cfg); refused || err != nil {
		return reconcile.Result{}, err
	}
	if cfg.Name != "" {
		switch answered, err := r.answerRequests(ctx, &cfg); {
		case apierrors.IsConflict(err): // the cache will follow
			return reconcile.Result{RequeueAfter: time.Second}, nil
		case answered || err != nil:
			return reconcile.Result{}, err
		}
	}
	return r.lifecycle.Reconcile(ctx, req)
}

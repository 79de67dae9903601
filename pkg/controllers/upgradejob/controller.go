// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// Upgrader carries out UpgradeJobs.
type Upgrader interface {
	upgraders.ClusterUpgrader
	// PoolStatus returns the state of the machine config pools that the attempt delays or has paused.
	PoolStatus(ctx context.Context, job *maintenancev1beta1.UpgradeJob, record history.Record, now time.Time) ([]maintenancev1beta1.MachineConfigPoolStatus, error)
	// PoolStatusAfterEnd returns the state of the machine config pools after the attempt: pools that the
	// UpgradeJob still pauses, and what its status shows of the others. It also returns when that may change
	// without a change of a pool, or zero for never.
	PoolStatusAfterEnd(ctx context.Context, job *maintenancev1beta1.UpgradeJob, record history.Record, now time.Time) ([]maintenancev1beta1.MachineConfigPoolStatus, time.Time, error)
	// ConfigProblem returns why the UpgradeJob does not suit the machine config pools of the cluster: a reason
	// and a message, or empty strings.
	ConfigProblem(ctx context.Context, job *maintenancev1beta1.UpgradeJob, now time.Time) (reason, message string, err error)
}

// ConfigSnapshot is a configuration and its upgrader. It is replaced as a whole when the configuration of the
// operator changes.
type ConfigSnapshot struct {
	// Upgrader carries out UpgradeJobs.
	Upgrader Upgrader
	// Config is the configuration in effect.
	Config config.Config
	// ConfigError explains why the current configuration is not in effect, or is empty.
	ConfigError string
}

// Reconciler runs UpgradeJobs.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock provides the time.
	Clock clock.PassiveClock
	// Namespace is the namespace of the cluster's lock.
	Namespace string
	// WatchNamespaces lists the namespaces of the reconciled UpgradeJobs. If empty, all are.
	WatchNamespaces []string
	// Config returns the current snapshot.
	Config func() ConfigSnapshot
	// ConfigChanged receives an event whenever Config returns another snapshot. It may be nil.
	ConfigChanged <-chan event.GenericEvent
	// Watches declares further kinds that steps read from the cache. A change of an object triggers a pass over
	// every unfinished upgrade, unless the kind declares other requests.
	Watches []manager.Kind
	// Holders decides whether a lock may be broken. The controllers of all kinds share it.
	Holders *lock.Holders
	// Notifier publishes events of upgrades, and Metrics counts them.
	Notifier notify.MultiPublisher
	Metrics  *metrics.Upgrades

	lifecycle *lifecycle.Reconciler[*maintenancev1beta1.UpgradeJob]
	facts     poolFacts
}

// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobs,namespace=managed-upgrade-operator,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobs/status,namespace=managed-upgrade-operator,verbs=patch
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradeconfigs;upgradesuspensionwindows,namespace=managed-upgrade-operator,verbs=list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusteroperators,verbs=list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigpools,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=cluster-upgrade,verbs=get;list;watch;patch

// Kind declares the UpgradeJobs that are reconciled, for all controllers that read them.
func (r *Reconciler) Kind() manager.Kind { return facts.UpgradeJobs(r.WatchNamespaces) }

// Controller declares the controller. The runbook of the upgrader must pass Validate.
func (r *Reconciler) Controller() manager.Controller {
	r.lifecycle = &lifecycle.Reconciler[*maintenancev1beta1.UpgradeJob]{Kind: kind{r}}
	reads := append(r.withPoolRequests(facts.Watches()), facts.UpgradeConfigs(r.WatchNamespaces), facts.UpgradeSuspensionWindows(r.WatchNamespaces), facts.RequiredPlans())
	c := r.lifecycle.Controller(lifecycle.Declaration{
		Name: "upgradejob", AddToScheme: append(facts.AddToScheme(), maintenancev1beta1.AddToScheme),
		Objects: r.Kind(), Facts: append(reads, r.Watches...),
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

// Reconcile makes one pass over one UpgradeJob.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var job maintenancev1beta1.UpgradeJob
	switch err := r.Client.Get(ctx, req.NamespacedName, &job); {
	case apierrors.IsNotFound(err):
		r.facts.delete(req.NamespacedName)
		return r.lifecycle.Reconcile(ctx, req)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("getting UpgradeJob %s: %w", req.NamespacedName, err)
	}
	if refused, err := manager.RefuseUndecodable(ctx, r.Client, r.Clock.Now(), &job); refused || err != nil {
		return reconcile.Result{}, err
	}
	switch answered, err := r.answerRetry(ctx, &job); {
	case apierrors.IsConflict(err): // the cache will follow
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case err != nil || answered:
		return reconcile.Result{}, err
	}
	next := r.observePools(ctx, &job)
	result, err := r.lifecycle.Reconcile(ctx, req)
	if after := next.Sub(r.Clock.Now()); err == nil && !next.IsZero() && (result.RequeueAfter == 0 || after < result.RequeueAfter) {
		result.RequeueAfter = max(after, time.Millisecond)
	}
	return result, err
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/nodekeeper"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
)

// The lease of the leader election.
const leaderLease = "managed-upgrade-operator-leader"

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=managed-upgrade-operator-leader,verbs=get;update
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Run runs the operator until the context ends. Options, configuration and
// upgraders are checked before anything is done.
func Run(ctx context.Context, o Options, restConfig *rest.Config, log logr.Logger, clk clock.WithTicker, upgraders Upgraders) error {
	if err := o.Validate(); err != nil {
		return err
	}
	cfg, err := o.config()
	if err != nil {
		return err
	}
	if err := validateClients(cfg, clk); err != nil { // before anybody is asked
		return fmt.Errorf("--config: %s", singleLine(err))
	}
	mgr, err := ctrl.NewManager(restConfig, o.managerOptions(log))
	if err != nil {
		return wrapListenError("health-probe-bind-address", fmt.Errorf("asking the API server %s: %w", restConfig.Host, err))
	}
	if err := addController(mgr, o, cfg, clk, upgraders); err != nil {
		return err
	}
	if err := addProbes(mgr); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return wrapListenError("metrics-bind-address", fmt.Errorf("running the manager: %w", err))
	}
	return nil
}

// wrapListenError names the flag with the address if the error is that nobody can listen there.
func wrapListenError(flag string, err error) error {
	var opErr *net.OpError
	if errors.As(err, &opErr) && opErr.Op == "listen" {
		return fmt.Errorf("--%s: must be an address that is free and of this machine, or 0 for none: %w", flag, opErr)
	}
	return err
}

// validateClients says what is wrong with a configuration beside its form.
func validateClients(cfg config.Config, clk clock.Clock) error {
	_, err := newDeps(cfg, clk)
	return errors.Join(err, configureWebhook(webhook.New(webhook.Options{Clock: clk}), cfg.Webhook))
}

func addController(mgr ctrl.Manager, o Options, cfg config.Config, clk clock.WithTicker, upgraders Upgraders) error {
	webhookPublisher := webhook.New(webhook.Options{Clock: clk, Log: mgr.GetLogger().WithName("webhook"), Source: func(ctx context.Context) (string, error) {
		id, err := clusterstate.GetClusterID(ctx, mgr.GetClient())
		return "urn:uuid:" + id, err
	}})
	registry := prometheus.NewRegistry()
	upgradeMetrics, err := metrics.NewUpgrades(registry)
	if err := errors.Join(err, registry.Register(webhookPublisher), metrics.RegisterBuildInfo(registry, o.Version)); err != nil {
		return fmt.Errorf("making the metrics: %w", err)
	}
	events := &notify.Events{Client: mgr.GetClient(), Clock: clk, OnFailure: upgradeMetrics.IncEventFailures}
	publisher := notify.MultiPublisher{Events: events, Webhook: webhookPublisher}
	reloader := &configReloader{
		read:    o.config,
		report:  upgradeMetrics.SetConfigValid,
		clock:   clk,
		log:     mgr.GetLogger().WithName("configuration"),
		changed: make(chan event.GenericEvent, 1),
	}
	reloader.build = func(cfg config.Config) (upgradeconfig.Snapshot, error) {
		deps, err := newDeps(cfg, clk)
		if err != nil {
			return upgradeconfig.Snapshot{}, err
		}
		deps.Sources.Observe = upgradeMetrics.ObserveHealthCheck
		deps.Client, deps.Live, deps.Notifier = mgr.GetClient(), mgr.GetAPIReader(), publisher
		deps.ExtraNodes = &capacity.ExtraNodes{Client: deps.Client, Live: deps.Live}
		byType := upgraders(deps)
		if err := validateUpgraders(byType); err != nil {
			return upgradeconfig.Snapshot{}, fmt.Errorf("checking the upgraders: %w", err)
		}
		return upgradeconfig.Snapshot{Upgraders: byType, Config: cfg}, configureWebhook(webhookPublisher, cfg.Webhook)
	}
	first, err := reloader.build(cfg)
	if err != nil {
		return err
	}
	reloader.set(first)
	controller := &upgradeconfig.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clk, Namespace: o.Namespace,
		Config: reloader.Current, ConfigChanged: reloader.changed, Notifier: publisher, Metrics: upgradeMetrics,
	}
	if err := controller.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("making the controller of UpgradeConfigs: %w", err)
	}
	if err := addNodekeeper(mgr, reloader, clk, registry, events); err != nil {
		return fmt.Errorf("making the controller of drains: %w", err)
	}
	if err := ctrlmetrics.Registry.Register(registry); err != nil {
		return fmt.Errorf("registering the metrics: %w", err)
	}
	return errors.Join(mgr.Add(reloader), mgr.Add(webhookPublisher))
}

// addNodekeeper adds the controller of drains. It tells by Events alone: a drain
// has one for each pod, and a receiver has no use for them.
func addNodekeeper(mgr ctrl.Manager, reloader *configReloader, clk clock.Clock, registry prometheus.Registerer, events *notify.Events) error {
	drainMetrics, err := metrics.NewDrains(registry)
	if err != nil {
		return fmt.Errorf("registering the metrics: %w", err)
	}
	controller := &nodekeeper.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clk,
		Config:   func() config.NodeDrain { return reloader.Current().Config.NodeDrain },
		Attempts: &upgradeConfigAttempts{client: mgr.GetClient(), clock: clk, runbook: reloader.runbook},
		Upgrades: []client.Object{&v1alpha1.UpgradeConfig{}},
		Events:   events, Metrics: drainMetrics,
	}
	return controller.SetupWithManager(mgr)
}

// addProbes makes the probes say the truth: the operator is ready once its
// caches are synced, and until then the log says which one is not.
func addProbes(mgr ctrl.Manager) error {
	log := mgr.GetLogger().WithName("readyz")
	checkReady := func(req *http.Request) error {
		err := checkCacheSync(req.Context(), mgr.GetCache())
		if err != nil {
			log.Info("not ready", "reason", err.Error())
		}
		return err
	}
	return errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", checkReady))
}

// checkCacheSync says which of the kinds that are read from the cache is not there yet.
func checkCacheSync(ctx context.Context, from cache.Cache) error {
	for _, kind := range cachedKinds() {
		informer, err := from.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		if !informer.HasSynced() {
			return fmt.Errorf("the cache of %T is not synced yet", kind)
		}
	}
	return nil
}

// cachedKinds are the kinds that are read from the cache. No other is.
func cachedKinds() []client.Object {
	return []client.Object{
		&v1alpha1.UpgradeConfig{}, &configv1.ClusterVersion{}, &configv1.ClusterOperator{},
		&mcfgv1.MachineConfigPool{}, &corev1.Node{}, &policyv1.PodDisruptionBudget{}, &coordinationv1.Lease{},
	}
}

func (o *Options) managerOptions(log logr.Logger) ctrl.Options {
	metricsOptions := metricsserver.Options{BindAddress: o.MetricsBind, SecureServing: o.MetricsSecure, TLSOpts: []func(*tls.Config){tlsOptions(o.MetricsCerts)}}
	if o.MetricsSecure {
		metricsOptions.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return ctrl.Options{
		Scheme:  Scheme(),
		Logger:  log,
		Metrics: metricsOptions,
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true,
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Node{}:                  {Transform: upgradeconfig.StripNode},
				&policyv1.PodDisruptionBudget{}: {Transform: nodekeeper.StripPDB},
				&coordinationv1.Lease{}: {
					Namespaces: map[string]cache.Config{o.Namespace: {}},
					Field:      fields.OneTermEqualSelector("metadata.name", lock.Name),
				},
			},
		},
		Controller:                    ctrlconfig.Controller{EnableWarmup: new(true)},
		HealthProbeBindAddress:        o.HealthBind,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              leaderLease,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true,
	}
}

// Scheme knows the kinds that the operator reads and writes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, coordinationv1.AddToScheme,
		configv1.Install, mcfgv1.Install, machinev1beta1.Install,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

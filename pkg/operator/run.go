// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterproxy"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/clusterversion"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/nodekeeper"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/poolrelease"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/suspensionwindow"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejob"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejobhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeschedule"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// userAgent identifies the operator to the API server.
const userAgent = "managed-upgrade-operator"

// leaderLease is the name of the leader election Lease.
const leaderLease = "managed-upgrade-operator-leader"

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=managed-upgrade-operator-leader,verbs=get;update

// Main starts Run with the client configuration and the logger given by the options.
func Main(ctx context.Context, o manager.Options, clk clock.WithTicker, upgraders Upgraders, watches ...manager.Kind) error {
	restConfig, log, err := o.Start(userAgent)
	if err != nil {
		return err
	}
	return Run(ctx, o, restConfig, log, clk, upgraders, watches...)
}

// Run runs the operator until the context ends. It first validates options, configuration, and
// upgraders.
func Run(ctx context.Context, o manager.Options, restConfig *rest.Config, log logr.Logger, clk clock.WithTicker, upgraders Upgraders, watches ...manager.Kind) error {
	if err := o.Validate(); err != nil {
		return err
	}
	cfg, err := readConfig(&o)
	if err != nil {
		return err
	}
	if err := validateClients(cfg, clk); err != nil { // before any request is sent
		return fmt.Errorf("--config: %s", manager.SingleLine(err))
	}
	p, err := newOperator(&o, cfg, log, clk, upgraders, nil, watches...)
	if err != nil {
		return err
	}
	former, err := newFormerOperator(&o, restConfig, clk)
	if err != nil {
		return err
	}
	watch, err := newFormerWatch(former, restConfig)
	if err != nil {
		return err
	}
	binary := p.binary()
	binary.Preflight = former.refuse
	binary.Watchdogs = append(binary.Watchdogs, watch)
	return manager.Run(ctx, o, restConfig, log, binary)
}

func readConfig(o *manager.Options) (config.Config, error) {
	return manager.ReadConfig(o, config.Default(), config.Parse)
}

// validateClients validates the URLs and files in the configuration, because the decoder of the
// configuration does not.
func validateClients(cfg config.Config, clk clock.Clock) error {
	_, err := newDeps(cfg, clk, nil)
	return errors.Join(err, configureWebhook(webhook.New(webhook.Options{Clock: clk}), cfg, nil))
}

// operator contains the shared dependencies of its controllers.
type operator struct {
	clock     clock.WithTicker
	upgraders Upgraders
	externals *Externals // nil for the servers in the configuration
	upgrades  *upgradeconfig.Reconciler
	drains    *nodekeeper.Reconciler
	schedules *upgradeschedule.Reconciler
	windows   *suspensionwindow.Reconciler
	versions  *clusterversion.Reconciler
	pools     *poolrelease.Reconciler
	jobs      *upgradejob.Reconciler
	hookKinds *upgradejobhook.Reconciler
	reloader  *manager.Reloader[config.Config]
	changes   []chan event.GenericEvent // one per kind of upgrades; each holds an event until the change has been observed
	first     config.Config
	// withoutMaintenance disables the controllers of scheduled maintenance.
	withoutMaintenance bool

	registry *prometheus.Registry
	metrics  *metrics.Upgrades
	events   *notify.Events
	webhook  *webhook.Webhook
	clients  manager.Clients
	holders  *lock.Holders
	hooks    *hooks.Runner
	// clusterName is the name of the cluster, or empty until it has been read.
	clusterName string
	proxy       *clusterproxy.Proxy

	mu         sync.Mutex
	current    upgradeconfig.ConfigSnapshot
	currentJob upgradejob.Upgrader
}

func newOperator(o *manager.Options, first config.Config, log logr.Logger, clk clock.WithTicker, upgraders Upgraders, externals *Externals, watches ...manager.Kind) (*operator, error) {
	p := &operator{clock: clk, upgraders: upgraders, first: first, withoutMaintenance: o.WithoutMaintenance, externals: externals, registry: prometheus.NewRegistry(), holders: &lock.Holders{Clock: clk}, proxy: &clusterproxy.Proxy{Clock: clk}}
	if externals != nil && externals.Registry != nil {
		p.registry = externals.Registry
	}
	p.webhook = webhook.New(webhook.Options{Clock: clk, Log: log.WithName("webhook"), Source: p.eventSource, Cluster: p.eventCluster})
	var err error
	if p.metrics, err = metrics.NewUpgrades(p.registry); err != nil {
		return nil, fmt.Errorf("registering the metrics: %w", err)
	}
	drainMetrics, err := metrics.NewDrains(p.registry, clusterstate.HoldReasons()...)
	scheduleMetrics, scheduleErr := metrics.NewSchedules(p.registry, upgradeschedule.Results()...)
	versionMetrics, versionErr := metrics.NewClusterVersions(p.registry)
	poolMetrics, poolErr := metrics.NewPools(p.registry)
	if err := errors.Join(err, scheduleErr, versionErr, poolErr, p.registry.Register(p.webhook), metrics.RegisterBuildInfo(p.registry, o.Version)); err != nil {
		return nil, fmt.Errorf("registering the metrics: %w", err)
	}
	p.events = &notify.Events{Clock: clk, OnFailure: p.metrics.IncEventFailures}
	p.reloader = &manager.Reloader[config.Config]{
		Read:  func() (config.Config, error) { return readConfig(o) },
		Apply: p.apply, Observe: p.observe, Clock: clk, Log: log.WithName("configuration"),
	}
	p.upgrades = &upgradeconfig.Reconciler{
		Clock: clk, Namespace: o.Namespace, WatchNamespaces: o.Watched(),
		Config: p.snapshot, ConfigChanged: p.changed(), Watches: p.withHooks(o, watches, maintenance.ConfigOwners()), Holders: p.holders, Notifier: p.notifier(), Metrics: p.metrics,
	}
	if err := p.newJobs(o, watches); err != nil {
		return nil, err
	}
	sources := []nodekeeper.AttemptSource{UpgradeConfigSource(p.upgrades.Kind(), clk, p.runbook)}
	if !p.withoutMaintenance {
		sources = append(sources, UpgradeJobSource(p.jobs.Kind(), clk, p.jobRunbook))
	}
	p.drains = &nodekeeper.Reconciler{
		Clock:   clk,
		Config:  func() config.NodeDrain { return p.snapshot().Config.NodeDrain },
		Sources: sources,
		Events:  p.events, Metrics: drainMetrics, // no webhook, because a drain creates one Event per pod
	}
	p.schedules = &upgradeschedule.Reconciler{
		Clock: clk, WatchNamespaces: o.Watched(), ConfigProblem: p.configProblem, Events: p.notifier(), Metrics: scheduleMetrics,
	}
	p.windows = &suspensionwindow.Reconciler{Clock: clk, WatchNamespaces: o.Watched(), Events: p.events}
	p.versions = &clusterversion.Reconciler{
		Clock: clk, Namespace: o.Namespace, WatchNamespaces: o.Watched(), Events: p.events, Metrics: versionMetrics,
	}
	p.pools = &poolrelease.Reconciler{Clock: clk, WatchNamespaces: o.Watched(), WithoutMaintenance: o.WithoutMaintenance, Events: p.events, Metrics: poolMetrics}
	return p, nil
}

// binary returns the description of the binary.
func (p *operator) binary() manager.Binary {
	controllers := []manager.Controller{p.upgrades.Controller(), p.drains.Controller(), p.pools.Controller()}
	if !p.withoutMaintenance {
		controllers = append(controllers,
			p.jobs.Controller(),
			p.schedules.Controller(),
			p.windows.Controller(),
			p.versions.Controller(),
		)
		controllers = append(controllers, p.hookKinds.Controllers()...)
	}
	return manager.Binary{
		LeaderLease: leaderLease,
		Controllers: controllers,
		AddToScheme: []func(*runtime.Scheme) error{machinev1beta1.Install}, // accessed by steps without the cache
		Bind:        p.bind,
		Metrics:     p.registry,
		Runnables:   []ctrlmanager.Runnable{p.webhook},
		Watchdogs:   []ctrlmanager.Runnable{p.reloader},
		Clock:       p.clock,
	}
}

func (p *operator) bind(clients manager.Clients) error {
	p.clients, p.events.Client = clients, clients.Client
	p.hooks.Client, p.hooks.Live, p.proxy.Live = clients.Client, clients.Live, clients.Live
	p.holders.Live, p.holders.Mapper = clients.Live, clients.Client.RESTMapper()
	if err := p.reloader.Init(p.first); err != nil {
		return err
	}
	p.metrics.SetConfigValid(true)
	return nil
}

func (p *operator) notifier() notify.MultiPublisher {
	if p.externals != nil {
		return notify.MultiPublisher{Events: p.events, Webhook: p.externals.Webhook}
	}
	return notify.MultiPublisher{Events: p.events, Webhook: p.webhook}
}

// eventSource returns the source of CloudEvents: the ID of the cluster.
func (p *operator) eventSource(ctx context.Context) (string, error) {
	id, err := clusterstate.GetClusterID(ctx, p.clients.Client)
	return "urn:uuid:" + id, err
}

// +kubebuilder:rbac:groups=config.openshift.io,resources=infrastructures,resourceNames=cluster,verbs=get

// eventCluster returns the name of the cluster for CloudEvents. It is not safe for concurrent use:
// only the delivery of events calls it.
func (p *operator) eventCluster(ctx context.Context, _ webhook.Object) string {
	if p.clusterName == "" {
		p.clusterName, _ = clusterstate.GetClusterName(ctx, p.clients.Live) // on error, try again with the next event
	}
	return p.clusterName
}

// apply applies a configuration.
func (p *operator) apply(cfg config.Config) error {
	deps, err := newDeps(cfg, p.clock, p.proxy.ForRequest)
	if err != nil {
		return err
	}
	if p.externals != nil && cfg.Alerts.URL != "" {
		deps.Sources.Prometheus = p.externals.Prometheus
	}
	if p.externals != nil && cfg.Alertmanager.URL != "" {
		deps.Silencer = &silence.Silencer{Alertmanager: p.externals.Alertmanager}
	}
	deps.Sources.Observe = p.metrics.ObserveHealthCheck
	deps.Client, deps.Live, deps.Notifier = p.clients.Client, p.clients.Live, p.notifier()
	deps.ExtraNodes = &capacity.ExtraNodes{Client: deps.Client, Live: deps.Live}
	if !p.withoutMaintenance {
		deps.Hooks = p.hooks
	}
	byType, err := p.upgraders(deps)
	if err != nil {
		return fmt.Errorf("invalid configuration: %w", err)
	}
	job := upgraders.Job{Deps: deps}
	if err := errors.Join(validateUpgraders(byType), validateJob(job)); err != nil {
		return fmt.Errorf("invalid upgraders: %w", err)
	}
	if err := configureWebhook(p.webhook, cfg, p.proxy.ForRequest); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current.Upgraders, p.current.Config, p.currentJob = byType, cfg, job
	return nil
}

// observe reports a change of the configuration and requests a reconcile of all upgrades.
func (p *operator) observe(configError string) {
	p.mu.Lock()
	p.current.ConfigError = configError
	p.mu.Unlock()
	p.metrics.SetConfigValid(configError == "")
	for _, changed := range p.changes {
		select {
		case changed <- event.GenericEvent{Object: &upgradev1alpha1.UpgradeConfig{}}: // an event for any object stands for all of them
		default: // one is already pending
		}
	}
}

// changed returns a channel that receives an event when the configuration changes.
func (p *operator) changed() chan event.GenericEvent {
	changed := make(chan event.GenericEvent, 1)
	p.changes = append(p.changes, changed)
	return changed
}

// snapshot returns the effective configuration.
func (p *operator) snapshot() upgradeconfig.ConfigSnapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// runbook returns the runbook of an upgrade, or an empty one if the type is unknown.
func (p *operator) runbook(cfg *upgradev1alpha1.UpgradeConfig) engine.Runbook {
	upgrader := p.snapshot().Upgraders[cfg.Spec.Type]
	if upgrader == nil {
		return engine.Runbook{}
	}
	return upgrader.Runbook(upgraders.AttemptAt(cfg))
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/poolrelease"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejob"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejobhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/aftermath"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

const (
	namespace = "managed-upgrade-operator"
	installed = "4.4.5"
	desired   = "4.4.6"
	channel   = "stable-4.4"
)

var (
	noon = simulation.Start
	// startAfter is when the window of the UpgradeJobs opens; it is an hour long.
	startAfter = noon.Truncate(time.Minute).Add(2 * time.Hour)
)

// world is a scripted cluster with the operator's controller of UpgradeJobs.
type world struct {
	*simulation.World
	t       testing.TB
	cluster *openshift.Script
	client  client.Client
	config  config.Config

	definitions []*simulation.Definition // that validate what is written; nil means that nothing is
	maxBurst    int                      // of reconciles at one time

	program  simulation.Program
	process  *simulation.Process
	registry *prometheus.Registry
	metrics  *metrics.Upgrades
	holders  *lock.Holders
	runner   *hooks.Runner
	sources  *checks.Sources
	extra    func(simulation.Env, *world) []manager.Controller // more controllers; nil means none
	alerts   checks.Prometheus                                 // the source of alerts; nil means that they are disabled
	plan     simulation.Plan                                   // of the writes; nil serves all
	requests []string                                          // of the operator to the API server
	writes   int                                               // those of them that are writes
	commits  int                                               // how often a version was requested

	requested aftermath.Requests // by the operator
}

// definitions are those of this project. The scripted cluster does not comply with those of OpenShift.
var definitions = sync.OnceValues(func() ([]*simulation.Definition, error) {
	return simulation.Definitions(os.DirFS("../../../deploy/crds"))
})

func newWorld(tb testing.TB, options ...func(*world)) *world {
	tb.Helper()
	definitions, err := definitions()
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{t: tb, config: config.Default(), definitions: definitions, maxBurst: 200}
	for _, option := range options {
		option(w)
	}
	w.World = simulation.New(simulation.Options{MaxBurst: w.maxBurst, Definitions: w.definitions})
	w.client = w.Client("test")
	for _, name := range []string{namespace, "default"} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if w.cluster, err = openshift.NewScript(w.World, installed, channel); err != nil {
		tb.Fatal(err)
	}
	w.report()
	w.cluster.Offer(desired, "4.4.7")
	w.cluster.ChangePools(func(pool *mcfgv1.MachineConfigPool) { pool.Labels = map[string]string{"pool": pool.Name} })
	for _, program := range []*simulation.Program{simulation.KubeControllerManager(), pods()} {
		if _, err := w.Start(program); err != nil {
			tb.Fatal(err)
		}
	}
	w.EnableGarbageCollection()
	w.Observe(w.observe)
	w.program = simulation.Program{Name: "operator", Controllers: w.controllers, Plan: w.decide, OnCrash: w.start}
	w.start()
	tb.Cleanup(func() {
		w.settle()
		w.expectReleased()
	})
	return w
}

// start begins a life of the operator.
func (w *world) start() {
	process, err := w.Start(&w.program)
	if err != nil {
		w.t.Fatal(err)
	}
	w.process = process
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	w.registry = prometheus.NewPedanticRegistry()
	upgradeMetrics, err := metrics.NewUpgrades(w.registry)
	if err != nil {
		return nil, err
	}
	w.metrics = upgradeMetrics
	events := &notify.Events{Client: env.Client, Clock: env.Clock, OnFailure: upgradeMetrics.IncEventFailures}
	namespaces := []string{namespace}
	w.runner = &hooks.Runner{Client: env.Client, Live: env.Live, Config: func() config.Hooks { return w.config.Hooks }, Publisher: events}
	w.sources = &checks.Sources{AlertsDisabled: w.alerts == nil, Prometheus: w.alerts, Clock: env.Clock, Interval: w.config.Alerts.Interval.Duration}
	deps := runbooks.Deps{
		Client: env.Client, Live: env.Live, Notifier: events, Sources: w.sources, Config: w.config,
		Hooks: w.runner,
	}
	w.holders = &lock.Holders{Live: env.Live, Mapper: env.Client.RESTMapper(), Clock: env.Clock}
	r := &upgradejob.Reconciler{
		Clock: env.Clock, Namespace: namespace, WatchNamespaces: namespaces, Holders: w.holders,
		Config: func() upgradejob.Snapshot {
			return upgradejob.Snapshot{Upgrader: runbooks.Job{Deps: deps}, Config: w.config}
		},
		Watches:  []manager.Kind{facts.HookJobs(namespaces), facts.UpgradeJobHooks(namespaces)},
		Notifier: notify.MultiPublisher{Events: events}, Metrics: upgradeMetrics,
	}
	hookMetrics, err := metrics.NewHooks(w.registry)
	if err != nil {
		return nil, err
	}
	hookJobs := &upgradejobhook.Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock, WatchNamespaces: namespaces, Runner: w.runner,
		Publisher: events, Metrics: hookMetrics,
	}
	poolMetrics, err := metrics.NewPools(w.registry)
	if err != nil {
		return nil, err
	}
	releaser := &poolrelease.Reconciler{Clock: env.Clock, WatchNamespaces: namespaces, Events: events, Metrics: poolMetrics}
	controllers := append(hookJobs.Controllers(), r.Controller(), releaser.Controller())
	if w.extra != nil {
		controllers = append(controllers, w.extra(env, w)...)
	}
	return controllers, nil
}

// decide records the requests of the operator and applies the plan.
func (w *world) decide(r simulation.Request) simulation.Fault {
	if r.IsWrite() || !r.Cached {
		w.requests = append(w.requests, fmt.Sprintf("%s %s", r.Verb, r.Kind))
	}
	if r.IsWrite() {
		w.writes = r.Write
		if w.plan != nil {
			return w.plan(r)
		}
	}
	return simulation.Fault{}
}

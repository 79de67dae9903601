// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/poolrelease"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejob"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejobhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
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
	*simulation.Harness
	cluster *openshift.Script
	config  config.Config

	definitions []*simulation.Definition // that validate what is written; nil if nothing is
	maxBurst    int                      // of reconciles at one time

	plan    simulation.Plan // of the writes, from the first one on
	metrics *metrics.Upgrades
	holders *lock.Holders
	runner  *hooks.Runner
	sources *checks.Sources
	extra   func(simulation.Env, *world) []manager.Controller // more controllers; nil means none
	alerts  checks.Prometheus                                 // the source of alerts; nil means they are disabled
	commits int                                               // how often a version was requested

	requested aftermath.Requests // by the operator
}

func newWorld(tb testing.TB, options ...func(*world)) *world {
	tb.Helper()
	definitions := simulation.DefinitionsIn(tb, "../../../deploy/crds") // the scripted cluster does not comply with OpenShift's
	w := &world{config: config.Default(), definitions: definitions, maxBurst: 200}
	for _, option := range options {
		option(w)
	}
	w.Harness = simulation.NewHarness(tb, simulation.Options{MaxBurst: w.maxBurst, Definitions: w.definitions})
	w.Writes = w.plan
	for _, name := range []string{namespace, "default"} {
		w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	var err error
	w.cluster, err = openshift.NewScript(w.World, installed, channel)
	w.Must(err)
	w.cluster.ReportHealthy()
	w.cluster.Offer(desired, "4.4.7")
	w.cluster.ChangePools(func(pool *mcfgv1.MachineConfigPool) { pool.Labels = map[string]string{"pool": pool.Name} })
	w.Must(openshift.StartPods(w.World, nil))
	w.Observe(w.observe)
	w.Describe = func(r simulation.Request) string { return r.Verb + " " + r.Kind }
	w.Run(w.controllers)
	tb.Cleanup(func() {
		w.settle()
		w.expectReleased()
	})
	return w
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	upgradeMetrics, err := metrics.NewUpgrades(w.Registry)
	if err != nil {
		return nil, err
	}
	w.metrics = upgradeMetrics
	events := &notify.Events{Client: env.Client, Clock: env.Clock, OnFailure: upgradeMetrics.IncEventFailures}
	namespaces := []string{namespace}
	w.runner = &hooks.Runner{Client: env.Client, Live: env.Live, Config: func() config.Hooks { return w.config.Hooks }, Publisher: events}
	w.sources = &checks.Sources{AlertsDisabled: w.alerts == nil, Prometheus: w.alerts, Clock: env.Clock, Interval: w.config.Alerts.Interval.Duration}
	deps := upgraders.Deps{
		Client: env.Client, Live: env.Live, Notifier: events, Sources: w.sources, Config: w.config,
		Hooks: w.runner,
	}
	w.holders = &lock.Holders{Live: env.Live, Mapper: env.Client.RESTMapper(), Clock: env.Clock}
	r := &upgradejob.Reconciler{
		Clock: env.Clock, Namespace: namespace, WatchNamespaces: namespaces, Holders: w.holders,
		Config: func() upgradejob.Snapshot {
			return upgradejob.Snapshot{Upgrader: upgraders.Job{Deps: deps}, Config: w.config}
		},
		Watches:  []manager.Kind{facts.HookJobs(namespaces, maintenance.JobOwners()), facts.UpgradeJobHooks(namespaces)},
		Notifier: notify.MultiPublisher{Events: events}, Metrics: upgradeMetrics,
	}
	hookMetrics, err := metrics.NewHooks(w.Registry)
	if err != nil {
		return nil, err
	}
	hookJobs := &upgradejobhook.Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock, WatchNamespaces: namespaces, Runner: w.runner,
		Publisher: events, Metrics: hookMetrics,
	}
	poolMetrics, err := metrics.NewPools(w.Registry)
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

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/nodekeeper"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/externaldeps"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// Namespace is the operator's namespace.
const Namespace = "managed-upgrade-operator"

// Operator returns the operator as a program for a simulated cluster: its real controllers, the OSD
// and ARO runbooks, and the simulated monitoring.
func Operator(cluster *openshift.Cluster, cfg config.Config) *simulation.Program {
	return OperatorWithWebhook(cluster, cfg, nil)
}

// OperatorWithWebhook is Operator with a new webhook for each life. If newWebhook is nil, there is
// no webhook.
func OperatorWithWebhook(cluster *openshift.Cluster, cfg config.Config, newWebhook func(simulation.Env) notify.AsyncPublisher) *simulation.Program {
	return &simulation.Program{
		Name: "operator", Latency: 5 * time.Millisecond,
		Controllers: func(env simulation.Env) ([]manager.Controller, error) {
			var webhook notify.AsyncPublisher
			if newWebhook != nil {
				webhook = newWebhook(env)
			}
			return controllers(cluster, cfg, env, webhook)
		},
	}
}

func controllers(cluster *openshift.Cluster, cfg config.Config, env simulation.Env, webhook notify.AsyncPublisher) ([]manager.Controller, error) {
	registry := prometheus.NewRegistry()
	upgrades, err := metrics.NewUpgrades(registry)
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	drains, err := metrics.NewDrains(registry, clusterstate.HoldReasons()...)
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	external, err := externaldeps.New(externaldeps.Options{URLs: cfg.ExternalDependencies.URLs, Timeout: cfg.ExternalDependencies.Timeout.Duration, Interval: 30 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("external dependencies: %w", err)
	}
	events := &notify.Events{Client: env.Client, Clock: env.Clock, OnFailure: upgrades.IncEventFailures}
	deps := upgraders.Deps{
		Drains: &checks.DrainExplanations{},
		Client: env.Client, Live: env.Live, Notifier: events,
		Sources:      &checks.Sources{Prometheus: cluster.Alerts, Clock: env.Clock, Interval: cfg.Alerts.Interval.Duration},
		Dependencies: external,
		Silencer:     &silence.Silencer{Alertmanager: cluster.Alertmanager},
		ExtraNodes:   &capacity.ExtraNodes{Client: env.Client, Live: env.Live},
		Config:       cfg,
	}
	snapshot := upgradeconfig.ConfigSnapshot{
		Upgraders: map[string]upgraders.ClusterUpgrader{"OSD": upgraders.OSD{Deps: deps}, "ARO": upgraders.ARO{Deps: deps}},
		Config:    cfg,
	}
	reconciler := &upgradeconfig.Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock, Namespace: Namespace,
		Config:   func() upgradeconfig.ConfigSnapshot { return snapshot },
		Notifier: notify.MultiPublisher{Events: events, Webhook: webhook}, Metrics: upgrades,
	}
	keeper := &nodekeeper.Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock,
		Config:  func() config.NodeDrain { return cfg.NodeDrain },
		Sources: []nodekeeper.AttemptSource{operator.UpgradeConfigSource(reconciler.Kind(), env.Clock, runbookOf(snapshot))},
		Events:  events, Metrics: drains,
	}
	return []manager.Controller{reconciler.Controller(), keeper.Controller()}, nil
}

// wholeOperator returns the operator with all controllers, wired as in Run, and the simulated
// monitoring. Each life has a new webhook and a new metrics registry.
func wholeOperator(
	cluster *openshift.Cluster, cfg config.Config, newWebhook func(simulation.Env) notify.AsyncPublisher, newRegistry func() *prometheus.Registry,
) *simulation.Program {
	register := func(deps upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
		return map[string]upgraders.ClusterUpgrader{"OSD": upgraders.OSD{Deps: deps}, "ARO": upgraders.ARO{Deps: deps}}, nil
	}
	return &simulation.Program{
		Name: "operator", Latency: 5 * time.Millisecond,
		Controllers: func(env simulation.Env) ([]manager.Controller, error) {
			return operator.NewControllers(
				manager.Options{Namespace: Namespace}, cfg, manager.Clients{Client: env.Client, Live: env.Live}, env.Clock, register,
				operator.Externals{Prometheus: cluster.Alerts, Alertmanager: cluster.Alertmanager, Webhook: newWebhook(env), Registry: newRegistry()},
			)
		},
	}
}

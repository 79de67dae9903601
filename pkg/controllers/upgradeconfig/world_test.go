// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/externaldeps"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
)

const (
	operatorNamespace = "managed-upgrade-operator" // the namespace of the lock
	installed         = "4.4.5"
	desired           = "4.4.6"
	channel           = "fast-4.4"
)

var (
	noon    = simulation.Start
	upgrade = client.ObjectKey{Namespace: "team-a", Name: "upgrade"}
	// tenPast is when most upgrades start; their window ends at 12:40.
	tenPast = noon.Truncate(time.Minute).Add(10 * time.Minute)
)

// world is a scripted cluster with the operator, the only upgrader of which is OSD.
type world struct {
	*simulation.World
	t       testing.TB
	cluster *openshift.Script
	client  client.Client

	program    simulation.Program
	process    *simulation.Process
	reconciler *Reconciler // of this life of the process
	registry   *prometheus.Registry
	snapshot   Snapshot
	lives      int

	plan      simulation.Plan         // of the writes; nil serves all
	readError func(kind string) error // of cached reads; nil serves all
	requests  []string                // of the operator to the API server
	writes    []string                // those of them that are writes
	invariants
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	return newWorldWith(t, nil, objects...)
}

// newWorldWith returns a world whose API server validates objects by the definitions.
func newWorldWith(t *testing.T, definitions []*simulation.Definition, objects ...client.Object) *world {
	t.Helper()
	w := &world{World: simulation.New(simulation.Options{Definitions: definitions, MaxBurst: 60}), t: t}
	w.client = w.Client("test")
	var err error
	if w.cluster, err = openshift.NewScript(w.World, installed, channel, desired, "4.4.7", "4.5.1"); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		w.create(object)
	}
	w.invariants = invariants{t: t, completions: map[string]int{}}
	w.Observe(w.observe)
	w.program = simulation.Program{Name: "operator", Controllers: w.controllers, Plan: w.decide, OnCrash: w.start}
	w.start()
	return w
}

// start begins a life of the operator.
func (w *world) start() {
	w.lives++
	process, err := w.Start(&w.program)
	if err != nil {
		w.t.Fatal(err)
	}
	w.process = process
}

// restart ends the life of the operator and begins another one.
func (w *world) restart() {
	w.process.Kill()
	w.start()
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	w.registry = prometheus.NewPedanticRegistry()
	upgradeMetrics, err := metrics.NewUpgrades(w.registry)
	if err != nil {
		return nil, err
	}
	external, err := externaldeps.New(externaldeps.Options{Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	events := &notify.Events{Client: env.Client, Clock: env.Clock, OnFailure: upgradeMetrics.IncEventFailures}
	deps := runbooks.Deps{
		Client: env.Client, Live: env.Live, Notifier: events, Sources: &checks.Sources{AlertsDisabled: true}, Dependencies: external,
		Silencer: &silence.Silencer{}, ExtraNodes: &capacity.ExtraNodes{Client: env.Client, Live: env.Live}, Config: config.Default(),
	}
	w.snapshot = Snapshot{Upgraders: map[string]ClusterUpgrader{"OSD": watched{w: w, upgrader: runbooks.OSD{Deps: deps}}}, Config: config.Default()}
	w.reconciler = &Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock, Namespace: operatorNamespace,
		Config: func() Snapshot { return w.snapshot }, Notifier: notify.MultiPublisher{Events: events}, Metrics: upgradeMetrics,
	}
	controller := w.reconciler.Controller()
	controller.Reconciler = reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		result, err := w.reconciler.Reconcile(ctx, request)
		w.reconciled(result, err)
		return result, err
	})
	return []manager.Controller{controller}, nil
}

// decide records each request and applies the plans.
func (w *world) decide(r simulation.Request) simulation.Fault {
	switch {
	case r.IsWrite():
		w.requests, w.writes = append(w.requests, nameOf(r)), append(w.writes, nameOf(r))
		if w.plan != nil {
			return w.plan(r)
		}
	case !r.Cached:
		w.requests = append(w.requests, nameOf(r))
	case w.readError != nil:
		if err := w.readError(r.Kind); err != nil {
			return simulation.Fault{Outcome: simulation.Refuse, Err: err}
		}
	}
	return simulation.Fault{}
}

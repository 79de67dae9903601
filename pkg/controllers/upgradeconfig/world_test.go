// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/externaldeps"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
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

// world is a scripted cluster with the operator. The types OSD and Other have the same upgrader.
type world struct {
	*simulation.Harness
	cluster *openshift.Script

	reconciler *Reconciler // of this life of the process
	snapshot   ConfigSnapshot

	readError func(kind string) error // of cached reads; nil serves all
	invariants
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	return newWorldWith(t, nil, objects...)
}

// newWorldWith returns a world whose API server validates objects by the definitions.
func newWorldWith(t *testing.T, definitions []*simulation.Definition, objects ...client.Object) *world {
	t.Helper()
	w := &world{Harness: simulation.NewHarness(t, simulation.WorldOptions{Definitions: definitions, MaxBurst: 60})}
	var err error
	if w.cluster, err = openshift.NewScript(w.World, installed, channel, desired, "4.4.7", "4.5.1"); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		w.create(object)
	}
	w.invariants = invariants{t: t, completions: map[string]int{}}
	w.Observe(w.observe)
	w.Describe, w.Plan, w.Program.Reconciled = nameOf, w.read, w.reconciled
	w.Run(w.controllers)
	return w
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	upgradeMetrics, err := metrics.NewUpgrades(w.Registry)
	if err != nil {
		return nil, err
	}
	external, err := externaldeps.New(externaldeps.Options{Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	events := &notify.Events{Client: env.Client, Clock: env.Clock, OnFailure: upgradeMetrics.IncEventFailures}
	deps := upgraders.Deps{
		Client: env.Client, Live: env.Live, Notifier: events, Sources: &checks.Sources{AlertsDisabled: true}, Dependencies: external,
		Silencer: &silence.Silencer{}, ExtraNodes: &capacity.ExtraNodes{Client: env.Client, Live: env.Live}, Config: config.Default(),
	}
	upgrader := watched{w: w, upgrader: upgraders.OSD{Deps: deps}}
	w.snapshot = ConfigSnapshot{Upgraders: map[string]upgraders.ClusterUpgrader{"OSD": upgrader, "Other": upgrader}, Config: config.Default()}
	own := w.snapshot // a test changes the one of the newest life
	reconciler := &Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock, Namespace: operatorNamespace,
		Notifier: notify.MultiPublisher{Events: events}, Metrics: upgradeMetrics,
	}
	reconciler.Config = func() ConfigSnapshot {
		if w.reconciler == reconciler {
			return w.snapshot
		}
		return own
	}
	w.reconciler = reconciler
	return []manager.Controller{reconciler.Controller()}, nil
}

// read fails the cached reads that a test refuses.
func (w *world) read(r simulation.Request) simulation.Fault {
	if r.Cached && !r.IsWrite() && w.readError != nil {
		if err := w.readError(r.Kind); err != nil {
			return simulation.Fault{Outcome: simulation.Refuse, Err: err}
		}
	}
	return simulation.Fault{}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"context"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/poolrelease"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

const (
	from    = "4.4.5"
	to      = "4.4.6"
	channel = "fast-4.4"
)

var requestOfJob = reconcile.Request{NamespacedName: jobKey}

var jobKey = client.ObjectKey{Namespace: "managed-upgrade-operator", Name: "job"}

// world is a scripted cluster with pool night, controller poolrelease, and a controller that runs
// one UpgradeJob: its steps for pools, and the commit. The record is in the status of the
// UpgradeJob.
type world struct {
	*simulation.Harness
	cluster *openshift.Script

	to      string    // the target version of the UpgradeJob
	start   time.Time // of the UpgradeJob
	delays  []pools.Delay
	onFail  *metav1.LabelSelector
	timeout time.Duration
	cancel  string
	hooks   map[string]func(engine.Run) engine.Result // by event and pool; nil if there are none
	holds   bool                                      // holds the upgrade before the commit
	live    bool                                      // asks the API server whether the upgrade has commenced

	commitWithin time.Duration // relative to the start

	log    []string // changes of pools
	writes int      // the operator's writes to pools
	status map[string]string
}

func night(names ...string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{"name": append(names, "night")[0]})
}

func newWorld(t *testing.T, changes ...func(*world)) *world {
	t.Helper()
	w := emptyWorld(t, simulation.WorldOptions{MaxBurst: 100})
	var err error
	w.cluster, err = openshift.NewScript(w.World, from, channel, to, "4.4.7")
	w.Must(err)
	w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) { v.Spec.Channel = channel })
	w.addPool("night", "night")
	for _, change := range changes {
		change(w)
	}
	w.begin()
	return w
}

// newClusterWorld is like newWorld, but uses the simulators of the dev cluster instead of a script.
// All pools, including pool night, have two nodes.
func newClusterWorld(t *testing.T) *world {
	t.Helper()
	definitions, err := openshift.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	w := emptyWorld(t, simulation.WorldOptions{Definitions: definitions})
	spec := openshiftsim.ClusterSpec{Masters: 2, Workers: 2, Pools: []machineconfig.Pool{{Name: "night", Nodes: 2}}}
	_, err = openshift.New(w.World, spec)
	w.Must(err)
	w.to, w.start = "4.20.6", w.Now().Truncate(time.Second).Add(time.Second)
	pool := w.pool("night")
	pool.Labels["name"] = "night"
	w.Update(pool)
	w.RunFor(time.Minute)
	w.begin()
	return w
}

func emptyWorld(t *testing.T, options simulation.WorldOptions) *world {
	t.Helper()
	w := &world{
		Harness: simulation.NewHarness(t, options), timeout: 12 * time.Hour, to: to,
		delays: []pools.Delay{{Selector: night(), Min: time.Hour, Max: 2 * time.Hour}}, commitWithin: time.Hour,
		hooks: map[string]func(engine.Run) engine.Result{},
	}
	w.start, w.User = w.Now().Truncate(time.Second), w.Client("user")
	return w
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	poolMetrics, err := metrics.NewPools(w.Registry)
	if err != nil {
		return nil, err
	}
	releaser := &poolrelease.Reconciler{Clock: env.Clock, Events: &notify.Events{Client: env.Client, Clock: env.Clock}, Metrics: poolMetrics}
	request := func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: jobKey}}
	}
	reads := append(facts.Watches(), facts.UpgradeJobs(nil))
	for i := range reads {
		reads[i].Requests = request
	}
	return []manager.Controller{releaser.Controller(), {
		Name: "job", AddToScheme: facts.AddToScheme(), Reads: reads,
		Reconciler: reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) { return w.reconcile(ctx, env) }),
	}}, nil
}

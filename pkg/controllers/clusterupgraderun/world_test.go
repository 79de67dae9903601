// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/clusterupgraderun"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/spoke"
)

const (
	cluster   = "store-0001"
	installed = "4.20.5"
	target    = "4.20.6"
	hubImage  = "quay.io/example/operator@sha256:0000000000000000000000000000000000000000000000000000000000000002"
)

// upgradeWork is the work of the platform.
var (
	upgradeWork = delivery.UpgradeName(cluster)
	clusterKey  = client.ObjectKey{Name: cluster}
	leaseKey    = client.ObjectKey{Namespace: cluster, Name: "cluster-upgrade"}
)

var definitions = sync.OnceValues(func() ([]*simulation.Definition, error) {
	return simulation.Definitions(os.DirFS("../../../deploy/hub/crds"))
})

// world is a hub with the controller of runs, and one managed cluster whose agent answers each work
// after ten seconds.
type world struct {
	*simulation.World
	t       testing.TB
	client  client.Client
	spoke   *spoke.Cluster
	program simulation.Program
	process *simulation.Process

	plan     simulation.Plan // of the writes; nil serves all
	reads    int             // of the hub, from its cache and from the API server
	failing  int             // the read that fails, from 1; 0 means none
	requests []string        // of the hub to the API server
	offline  bool            // the agent answers nothing
	held     string          // the agent does not apply this work; empty means that it applies all
	mute     bool            // the agent applies works, and reports nothing
	refuses  bool            // the cluster version operator does not begin to install what is requested
	takes    time.Duration   // how long the cluster takes to install a release; 0 means for ever
	seen     map[string]int  // how often each work was written, by name, attempt, and form
	pending  bool            // the agent is about to act
	bySets   bool            // the hub delivers actions by ManifestWorkReplicaSets
	manager  *workManagers
	states   []string // of the run, in their order
	stalled  int      // how often the run was stored as stalled

	invariants invariants.Fleet

	jobs  map[string]string // what becomes of a Job a minute after it began, by the beginning of its name: Complete or Failed
	begun []string          // the beginnings of the names of Jobs, in the order in which they began
}

func newWorld(tb testing.TB, edits ...func(*fleetv1beta1.ManagedClustersUpgrade)) *world {
	tb.Helper()
	hub, err := definitions()
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{
		World: simulation.New(simulation.Options{Definitions: hub}), t: tb, takes: 40 * time.Minute, seen: map[string]int{},
	}
	w.client = w.Client("test")
	w.spoke = spoke.New(cluster, installed, w.Now())
	w.EnableGarbageCollection()
	w.Observe(w.observe)
	w.manager = &workManagers{World: w.World, t: tb}
	w.Observe(w.manager.observe)
	w.must(w.client.Create(tb.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}}))
	managed := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	w.must(w.client.Create(tb.Context(), managed))
	w.claim(installed)
	w.setAvailable(true)
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "stores"}}
	upgrade.Spec.Placement = []fleetv1beta1.PlacementReference{{Name: "all"}}
	upgrade.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: target, Channel: "stable-4.20"}
	for _, edit := range edits {
		edit(upgrade)
	}
	w.must(w.client.Create(tb.Context(), upgrade))
	w.bySets = upgrade.Annotations[byReplicaSetsAnnotation] != ""
	w.program = simulation.Program{Name: "hub", Controllers: w.controllers, Plan: w.decide, OnCrash: w.start}
	w.start()
	return w
}

func (w *world) start() {
	process, err := w.Start(&w.program)
	w.must(err)
	w.process = process
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	r := &clusterupgraderun.Reconciler{Clock: env.Clock, Image: hubImage, ReplicaSets: w.bySets}
	return []manager.Controller{r.Controller()}, nil
}

func (w *world) decide(r simulation.Request) simulation.Fault {
	if !r.Cached || r.IsWrite() {
		w.requests = append(w.requests, strings.TrimSuffix(r.Verb+" "+r.Kind+"/"+r.Subresource, "/"))
	}
	switch {
	case r.IsWrite() && w.plan != nil:
		return w.plan(r)
	case !r.IsWrite():
		if w.reads++; w.reads == w.failing {
			return simulation.Fault{Outcome: simulation.Refuse}
		}
	}
	return simulation.Fault{}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// restart ends the process and starts another one.
func (w *world) restart() {
	w.process.Kill()
	w.start()
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/clusterupgraderun"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

const (
	cluster      = "store-0001"
	installed    = "4.20.5"
	target       = "4.20.6"
	hubNamespace = "managed-upgrade-operator"
	hubImage     = "quay.io/example/operator@sha256:0000000000000000000000000000000000000000000000000000000000000002"
)

// upgradeWork is the work of the platform.
var (
	upgradeWork = delivery.UpgradeName(cluster)
	clusterKey  = client.ObjectKey{Name: cluster}
	leaseKey    = client.ObjectKey{Namespace: hubNamespace, Name: "cluster-upgrade-" + cluster}
)

// world is a hub with the controller of runs, and one managed cluster whose agent answers each work
// after ten seconds.
type world struct {
	*simulation.Harness
	spoke *spoke.Cluster

	reads   int            // of the hub, from its cache and from the API server
	failing int            // the read that fails, from 1; 0 for none
	offline bool           // the agent answers nothing
	held    string         // the agent does not apply this work; empty means that it applies all
	refuses bool           // the cluster version operator does not begin to install what is requested
	takes   time.Duration  // how long the cluster takes to install a release; 0 for ever
	seen    map[string]int // how often each work was written, by name, attempt, and form
	pending bool           // the agent is about to act
	bySets  bool           // the hub delivers actions by ManifestWorkReplicaSets
	manager *workManagers
	states  []string // of the run, in their order
	stalled int      // how often the run was stored as stalled

	invariants invariants.Fleet

	jobs  map[string]string // what becomes of a Job a minute after it began, by the beginning of its name: Complete or Failed
	begun []string          // the beginnings of the names of Jobs, in the order of their start
}

func newWorld(tb testing.TB, edits ...func(*fleetv1beta1.ManagedClustersUpgrade)) *world {
	tb.Helper()
	w := &world{
		Harness: simulation.NewHarness(tb, simulation.WorldOptions{Definitions: simulation.DefinitionsIn(tb, "../../../deploy/hub/crds")}),
		takes:   40 * time.Minute, seen: map[string]int{},
	}
	w.spoke = spoke.New(cluster, installed, w.Now())
	w.EnableGarbageCollection()
	w.Observe(w.observe)
	w.manager = &workManagers{World: w.World, t: tb}
	w.Observe(w.manager.observe)
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
	managed := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	w.Create(managed)
	w.claim(installed)
	w.setAvailable(true)
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "stores"}}
	upgrade.Spec.Placement = []fleetv1beta1.PlacementReference{{Name: "all"}}
	upgrade.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: target, Channel: "stable-4.20"}
	for _, edit := range edits {
		edit(upgrade)
	}
	w.Create(upgrade)
	w.bySets = upgrade.Annotations[byReplicaSetsAnnotation] != ""
	w.Program.Name, w.Describe, w.Plan = "hub", simulation.Request.Operation, w.read
	w.Run(w.controllers)
	return w
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	r := &clusterupgraderun.Reconciler{Clock: env.Clock, Namespace: hubNamespace, Image: hubImage, ReplicaSets: w.bySets}
	return []manager.Controller{r.Controller()}, nil
}

// read fails one read.
func (w *world) read(r simulation.Request) simulation.Fault {
	if r.IsWrite() {
		return simulation.Fault{}
	}
	if w.reads++; w.reads == w.failing {
		return simulation.Fault{Outcome: simulation.Refuse}
	}
	return simulation.Fault{}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/clusterupgraderun"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/managedclustersupgrade"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// ManagedClustersUpgrades is the kind of fleet histories.
const ManagedClustersUpgrades Kind = "ManagedClustersUpgrade"

const (
	// hubActor is the actor of the hub's requests.
	hubActor = "hub"
	// fleetNamespace is the namespace of the fleet's upgrades.
	fleetNamespace = "fleet"
	// fleetLabel marks the clusters that upgrades select, and canaryLabel marks canaries.
	fleetLabel, canaryLabel = "fleet", "canary"
	// hubImage is the image of the Jobs that approve operators.
	hubImage = "quay.io/example/operator@sha256:0000000000000000000000000000000000000000000000000000000000000002"
)

// Limits for the number of clusters in a fleet.
const (
	minMembers = 3
	maxMembers = 6
)

// fleet is a running history of the clusters of a hub.
type fleet struct {
	*driver
	members    []*member
	leftovers  *rand.Rand // draws what earlier updates have left on the clusters
	byRelease  bool       // the Placement of the upgrades selects only clusters at the previous release
	placements *placements
	checker    *fleetChecker
}

// newFleet returns the history of a hub with several clusters.
func newFleet(d *driver) (*fleet, error) {
	definitions, err := hubDefinitions()
	if err != nil {
		return nil, err
	}
	f := &fleet{driver: d, leftovers: rand.New(rand.NewPCG(d.report.Seed, 2))} //nolint:gosec // a history, not a secret
	f.world = simulation.New(simulation.WorldOptions{
		Definitions: definitions, Log: func(line string) { d.report.Log = append(d.report.Log, line) },
	})
	f.people = f.world.Client("people")
	f.world.EnableGarbageCollection()
	f.placements = &placements{fleet: f, client: f.world.Client("placement")}
	f.checker = newFleetChecker(f)
	f.world.Observe(f.observe)
	for i := range minMembers + f.random.IntN(maxMembers-minMembers+1) {
		if err := f.addMember("c"+strconv.Itoa(i+1), i == 0 || f.random.IntN(5) == 0); err != nil {
			return nil, err
		}
	}
	if err := f.addPlacement(); err != nil {
		return nil, err
	}
	f.program = &simulation.Program{
		Name: hubActor, Latency: 5 * time.Millisecond, Controllers: f.controllers, Plan: f.plan,
		OnCrash: func() { f.restartAfter(f.upTo(30 * time.Second)) },
	}
	return f, f.startLeader()
}

// observe passes a change to the simulators and checks it.
func (f *fleet) observe(change simulation.Change) {
	f.placements.observe(change)
	for _, m := range f.members {
		if change.Object().GetNamespace() == m.name {
			m.observe(change)
		}
	}
	f.checker.observe(change)
}

// lockPrefix is the name prefix of the Leases that lock clusters, in the namespace of the hub.
const lockPrefix = "cluster-upgrade-"

// controllers returns the controllers of the hub.
func (f *fleet) controllers(env simulation.Env) ([]manager.Controller, error) {
	upgrades := &managedclustersupgrade.Reconciler{Clock: env.Clock, Image: hubImage}
	runs := &clusterupgraderun.Reconciler{Clock: env.Clock, Namespace: Namespace, Image: hubImage}
	return []manager.Controller{upgrades.Controller(), runs.Controller()}, nil
}

// plan determines the outcome of a hub request.
func (f *fleet) plan(r simulation.Request) simulation.Fault {
	f.pull(r)
	return f.fault(r, hubKinds())
}

// hubKinds returns the kinds whose caches may lag.
func hubKinds() []string {
	return []string{"ManagedClustersUpgrade", "ClusterUpgradeRun", "ManifestWork", "ManagedCluster", "Placement", "PlacementDecision", "Lease"}
}

// run runs the history.
func (f *fleet) run(actions int) {
	if play(f.driver, f, "create an upgrade", f.createUpgrade, firstOf(slices.Concat(fleetActions(), strangerActions(), laterActions()), actions)) {
		f.act("calm down", f.calmDown)
		f.settle(restTimeout, f.checker.unrest)
		f.checker.quiet()
	}
}

// addMember adds a cluster for the upgrades to select.
func (f *fleet) addMember(name string, canary bool) error {
	labels := map[string]string{fleetLabel: "stores"}
	if canary {
		labels[canaryLabel] = "true"
	}
	ctx, m := context.Background(), newMember(f, name)
	if err := f.people.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return err
	}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	if err := f.people.Create(ctx, cluster); err != nil {
		return err
	}
	f.members = append(f.members, m)
	m.inherit(f.leftovers)
	return m.publish()
}

// addPlacement adds the Placement that the upgrades use.
func (f *fleet) addPlacement() error {
	p := &ocmv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: "all"}}
	selector := ocmv1beta1.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{fleetLabel: "stores"}}}
	p.Spec.Tolerations = []ocmv1beta1.Toleration{{Key: clusterv1.ManagedClusterTaintUnreachable, Operator: ocmv1beta1.TolerationOpExists}}
	p.Spec.Predicates = []ocmv1beta1.ClusterPredicate{{RequiredClusterSelector: selector}}
	return f.people.Create(context.Background(), p)
}

// member returns the cluster with a name, or nil.
func (f *fleet) member(name string) *member {
	i := slices.IndexFunc(f.members, func(m *member) bool { return m.name == name })
	if i < 0 {
		return nil
	}
	return f.members[i]
}

// hubDefinitions returns the definitions of the hub's kinds, compiled only once.
var hubDefinitions = sync.OnceValues(func() ([]*simulation.Definition, error) {
	return simulation.Definitions(os.DirFS(filepath.Join(openshift.Root(), "deploy", "hub", "crds")))
})

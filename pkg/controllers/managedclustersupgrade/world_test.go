// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

var stores = client.ObjectKey{Namespace: "fleet", Name: "stores"}

// unreadFor is how long reads fail: longer than an empty selection takes to be believed.
const unreadFor = 3 * time.Minute

// world is a hub with the controller. Clusters are selected by the label selected; a simulated agent
// moves each run on.
type world struct {
	*simulation.Harness

	unread     time.Time             // when reads of the hub begin to fail, for unreadFor
	refusals   int                   // reads that failed
	webhook    notify.AsyncPublisher // may be nil
	metrics    *metrics.Fleets       // nil if they are not exported
	unstable   string
	unreadable error           // why the clusters cannot be selected
	placements bool            // clusters are selected by Placements, not by their label
	fails      map[string]int  // how often the upgrade of a cluster fails
	image      string          // of the Jobs that approve operators
	cleaning   map[string]bool // clusters whose run keeps its finalizers after its end
	slow       map[string]bool
	detachable bool           // runs and clusters may disappear
	admissions map[string]int // by cluster and attempt
	order      []string       // clusters in the order of their admission
	written    []string       // Events in the order of their writes, as "Type Reason"
	reconciles int
	maxFlight  int32 // the most that any status reported
	published  []time.Time
	invariants invariants.Fleet
}

func newWorld(tb testing.TB, clusters int, edits ...func(*fleetv1beta1.ManagedClustersUpgrade)) *world {
	tb.Helper()
	w := &world{
		Harness:  simulation.NewHarness(tb, simulation.WorldOptions{Definitions: simulation.DefinitionsIn(tb, "../../../deploy/hub/crds")}),
		cleaning: map[string]bool{}, fails: map[string]int{}, slow: map[string]bool{}, admissions: map[string]int{},
	}
	for i := range clusters {
		w.addCluster(fmt.Sprintf("c%04d", i))
	}
	w.Observe(w.observe)
	w.Program.Name, w.Describe, w.Plan = "hub", simulation.Request.Operation, w.read
	w.Program.Reconciled = func(request reconcile.Request, _ reconcile.Result, _ error) {
		if request.NamespacedName == stores {
			w.reconciles++
		}
	}
	w.Run(w.controllers)
	w.Create(w.upgrade(stores.Name, edits...))
	return w
}

func (w *world) upgrade(name string, edits ...func(*fleetv1beta1.ManagedClustersUpgrade)) *fleetv1beta1.ManagedClustersUpgrade {
	u := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: stores.Namespace, Name: name}}
	u.Spec.Placement = []fleetv1beta1.PlacementReference{{Name: "all"}}
	u.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6"}
	for _, edit := range edits {
		edit(u)
	}
	return u
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	r := &Reconciler{Clock: env.Clock, Metrics: w.metrics, Image: w.image, Webhook: w.webhook}
	if !w.placements {
		r.selectMembers = w.selectClusters
	}
	c := r.Controller()
	for i := range c.Reads {
		if _, is := c.Reads[i].Object.(*clusterv1.ManagedCluster); is && !w.placements {
			c.Reads[i].Requests = func(ctx context.Context, _ client.Object) []reconcile.Request { return r.requests(ctx, nil) }
		}
	}
	return []manager.Controller{c}, nil
}

// read fails the reads of an outage.
func (w *world) read(r simulation.Request) simulation.Fault {
	if outage := r.Time.Sub(w.unread); r.IsWrite() || w.unread.IsZero() || outage < 0 || outage >= unreadFor {
		return simulation.Fault{}
	}
	w.refusals++
	return simulation.Fault{Outcome: simulation.Refuse}
}

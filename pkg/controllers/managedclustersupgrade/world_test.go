// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

var stores = client.ObjectKey{Namespace: "fleet", Name: "stores"}

// definitions are those of the hub, compiled once.
var definitions = sync.OnceValues(func() ([]*simulation.Definition, error) {
	return simulation.Definitions(os.DirFS("../../../deploy/hub/crds"))
})

// unreadFor is how long reads fail: longer than a selection that is empty takes to be believed.
const unreadFor = 3 * time.Minute

// world is a hub with the controller. Clusters are selected by the label selected; a simulated agent
// moves each run on.
type world struct {
	*simulation.World
	t       testing.TB
	client  client.Client
	program simulation.Program
	process *simulation.Process

	plan       simulation.Plan // of the writes; nil serves all
	unread     time.Time       // when reads of the hub begin to fail, for unreadFor; zero means never
	refusals   int             // reads that failed
	metrics    *metrics.Fleets // nil means that they are not exported
	requests   []string        // of the hub to the API server
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
	written    []string       // Events in the order in which they were written, as "Type Reason"
	reconciles int
	maxFlight  int32 // the most that any status reported
	published  []time.Time
	invariants invariants.Fleet
}

func newWorld(tb testing.TB, clusters int, edits ...func(*fleetv1beta1.ManagedClustersUpgrade)) *world {
	tb.Helper()
	hub, err := definitions()
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{
		World: simulation.New(simulation.Options{Definitions: hub}), t: tb,
		cleaning: map[string]bool{}, fails: map[string]int{}, slow: map[string]bool{}, admissions: map[string]int{},
	}
	w.client = w.Client("test")
	for i := range clusters {
		w.addCluster(fmt.Sprintf("c%04d", i))
	}
	w.Observe(w.observe)
	w.program = simulation.Program{Name: "hub", Controllers: w.controllers, Plan: w.decide, OnCrash: w.start}
	w.start()
	w.must(w.client.Create(tb.Context(), w.upgrade(stores.Name, edits...)))
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

func (w *world) start() {
	process, err := w.Start(&w.program)
	w.must(err)
	w.process = process
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	r := &Reconciler{Clock: env.Clock, Metrics: w.metrics, Image: w.image}
	if !w.placements {
		r.selectMembers = w.selectClusters
	}
	c := r.Controller()
	for i := range c.Reads {
		if _, is := c.Reads[i].Object.(*clusterv1.ManagedCluster); is && !w.placements {
			c.Reads[i].Requests = func(ctx context.Context, _ client.Object) []reconcile.Request { return r.requests(ctx, nil) }
		}
	}
	c.Reconciler = reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if request.NamespacedName == stores {
			w.reconciles++
		}
		return r.Reconcile(ctx, request)
	})
	return []manager.Controller{c}, nil
}

func (w *world) decide(r simulation.Request) simulation.Fault {
	if !r.Cached || r.IsWrite() {
		w.requests = append(w.requests, strings.TrimSuffix(r.Verb+" "+r.Kind+"/"+r.Subresource, "/"))
	}
	switch outage := r.Time.Sub(w.unread); {
	case r.IsWrite() && w.plan != nil:
		return w.plan(r)
	case !r.IsWrite() && !w.unread.IsZero() && outage >= 0 && outage < unreadFor:
		w.refusals++
		return simulation.Fault{Outcome: simulation.Refuse}
	}
	return simulation.Fault{}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
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
	reconciles int
	maxFlight  int32 // the most that any status reported
	published  []time.Time
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

func concurrency(n int32) func(*fleetv1beta1.ManagedClustersUpgrade) {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.MaxConcurrency = new(intstr.FromInt32(n))
	}
}

func maxFailures(n int32) func(*fleetv1beta1.ManagedClustersUpgrade) {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.MaxFailures = new(intstr.FromInt32(n))
	}
}

// canary selects the cluster by its label name.
func canary(u *fleetv1beta1.ManagedClustersUpgrade) {
	u.Spec.UpgradeStrategy.CanaryClusters = &fleetv1beta1.CanaryClusters{
		ClusterSelector: fleetv1beta1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}},
	}
}

func (w *world) addCluster(name string) {
	w.must(w.client.Create(w.t.Context(), &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"selected": "yes"}}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}))
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

// selectClusters selects the clusters with the label selected, in groups by the label group.
func (w *world) selectClusters(ctx context.Context, cache client.Reader, upgrade *fleetv1beta1.ManagedClustersUpgrade, _ map[string]*clusterv1.ManagedCluster, _ selection.Options) (selection.Selection, error) {
	var list clusterv1.ManagedClusterList
	if err := cache.List(ctx, &list); err != nil {
		return selection.Selection{}, err
	}
	if w.unreadable != nil {
		return selection.Selection{}, w.unreadable
	}
	if w.unstable != "" {
		return selection.Selection{Unstable: w.unstable}, nil
	}
	selected := selection.Selection{}
	for i := range list.Items {
		labels := list.Items[i].Labels
		if labels["selected"] == "" {
			continue
		}
		selected.Members = append(selected.Members, selection.Member{
			Name: list.Items[i].Name, Group: len(labels["group"]),
			Canary: upgrade.Spec.UpgradeStrategy.CanaryClusters != nil && labels["canary"] != "",
		})
	}
	return selected, nil
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

// observe checks the invariants of each stored object, and has the agent answer each run.
func (w *world) observe(change simulation.Change) {
	switch object := change.New.(type) {
	case *fleetv1alpha1.ClusterUpgradeRun:
		before, _ := change.Old.(*fleetv1alpha1.ClusterUpgradeRun)
		if before == nil || before.Spec.Attempt != object.Spec.Attempt {
			w.observeAdmission(object)
		}
		if !object.DeletionTimestamp.IsZero() {
			w.After(0, func() { w.release(object) })
		}
	case *fleetv1beta1.ManagedClustersUpgrade:
		w.observeStatus(change, object)
	}
}

// observeAdmission checks that a cluster begins once in an attempt, and starts its upgrade.
func (w *world) observeAdmission(run *fleetv1alpha1.ClusterUpgradeRun) {
	key := fmt.Sprintf("%s/%s/%d", run.Spec.ManagedClustersUpgrade.UID, run.Namespace, run.Spec.Attempt)
	if w.admissions[key]++; w.admissions[key] > 1 && !w.detachable {
		w.Fail(fmt.Errorf("%s was admitted %d times", key, w.admissions[key]))
	}
	w.order = append(w.order, run.Namespace)
	if ref := run.Spec.ManagedClustersUpgrade; ref.Name == stores.Name && ref.Namespace == stores.Namespace && w.get().Status.StartTime == nil {
		w.Fail(fmt.Errorf("%s was admitted before the start was recorded", run.Namespace))
	}
	if run.Spec.Outcome != nil {
		w.After(time.Minute, func() { w.setState(run, run.Spec.Outcome.State, run.Spec.Outcome.Reason) })
		return
	}
	takes := 40 * time.Minute
	if w.slow[run.Namespace] {
		takes *= 4
	}
	w.After(time.Minute, func() { w.setState(run, fleetv1alpha1.StateInitialized, "Delivered") })
	w.After(5*time.Minute, func() { w.setState(run, fleetv1alpha1.StatePartialUpgrade, "Upgrading") })
	w.After(takes, func() {
		if w.fails[run.Namespace] > 0 {
			w.fails[run.Namespace]--
			w.setState(run, fleetv1alpha1.StateFailed, "ClusterVersionFailing")
			return
		}
		w.setState(run, fleetv1alpha1.StateComplete, "Upgraded")
	})
}

// setState writes the status of a run, as its controller does. A run that is gone or that has
// another attempt is left alone.
func (w *world) setState(admitted *fleetv1alpha1.ClusterUpgradeRun, state fleetv1alpha1.State, reason string) {
	run := &fleetv1alpha1.ClusterUpgradeRun{}
	err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(admitted), run)
	if apierrors.IsNotFound(err) || err == nil && (run.Spec.Attempt != admitted.Spec.Attempt || run.UID != admitted.UID) {
		return
	}
	w.must(err)
	run.Status.Attempt, run.Status.State, run.Status.Reason, run.Status.Applied = run.Spec.Attempt, state, reason, true
	started, ended := metav1.NewTime(w.Now().Add(-time.Minute)), metav1.NewTime(w.Now())
	run.Status.History = []history.Record{{Attempt: run.Spec.Attempt, Conditions: []history.StepCondition{{
		Type: fleetv1alpha1.StepUpgradeDelivered, Status: metav1.ConditionTrue, Reason: "Done", StartTime: &started, CompleteTime: &ended, LastTransitionTime: &ended,
	}}}}
	w.must(w.client.Status().Update(w.t.Context(), run))
	if state == fleetv1alpha1.StateComplete || state == fleetv1alpha1.StateFailed {
		w.release(run)
	}
}

// release removes the finalizers of a run, as its controller does once the run has ended.
func (w *world) release(ended *fleetv1alpha1.ClusterUpgradeRun) {
	run := &fleetv1alpha1.ClusterUpgradeRun{}
	err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(ended), run)
	if w.cleaning[ended.Namespace] || apierrors.IsNotFound(err) || err == nil && len(run.Finalizers) == 0 {
		return
	}
	w.must(err)
	run.Finalizers = nil
	w.must(w.client.Update(w.t.Context(), run))
}

// observeStatus checks the invariants of a status.
func (w *world) observeStatus(change simulation.Change, u *fleetv1beta1.ManagedClustersUpgrade) {
	before, _ := change.Old.(*fleetv1beta1.ManagedClustersUpgrade)
	if before == nil || change.Actor != "hub" || u.Status.ClustersSummery == nil {
		return
	}
	w.published = append(w.published, change.Time)
	s := u.Status.ClustersSummery
	w.maxFlight = max(w.maxFlight, s.Initialized+s.PartialUpgrade)
	conditions := u.Status.Conditions
	switch {
	case s.Initialized+s.PartialUpgrade+s.Complete+s.Failed+s.Pending != s.Total:
		w.Fail(fmt.Errorf("states do not sum up: %+v", s))
	case apimeta.IsStatusConditionTrue(conditions, "Complete") && apimeta.IsStatusConditionTrue(conditions, "Failed"):
		w.Fail(errors.New("both Complete and Failed"))
	}
	if before.Status.ClustersSummery != nil {
		w.observeProgress(before, u)
	}
}

// observeProgress checks the invariants of two statuses, one after the other: slots are not exceeded,
// and nothing is admitted after a stop.
func (w *world) observeProgress(before, u *fleetv1beta1.ManagedClustersUpgrade) {
	was, is := before.Status.ClustersSummery, u.Status.ClustersSummery
	limit := int32(1)
	if n := u.Spec.UpgradeStrategy.MaxConcurrency; n != nil && n.Type == intstr.Int {
		limit = n.IntVal
	}
	flight := is.Initialized + is.PartialUpgrade
	if flight > max(limit, was.Initialized+was.PartialUpgrade) {
		w.Fail(fmt.Errorf("%d clusters in flight, %d before, and %d slots", flight, was.Initialized+was.PartialUpgrade, limit))
	}
	for _, status := range []fleetv1beta1.ManagedClustersUpgradeStatus{before.Status, u.Status} {
		c := apimeta.FindStatusCondition(status.Conditions, fleetv1beta1.ConditionAdmitting)
		if c == nil || !slices.Contains(permanentStops, c.Reason) {
			return
		}
	}
	if before.Status.Attempt == u.Status.Attempt && is.Total >= was.Total && is.Pending < was.Pending {
		w.Fail(fmt.Errorf("%d clusters were pending when the rollout had stopped, and %d are now", was.Pending, is.Pending))
	}
}

// permanentStops are the reasons that stop a rollout until its next attempt.
var permanentStops = []string{
	fleetv1beta1.ReasonCanaryFailed, fleetv1beta1.ReasonMaxFailuresExceeded, fleetv1beta1.ReasonCancelled, fleetv1beta1.ReasonRecordsLost,
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	w.must(w.RunFor(d))
}

// runUntil lets time pass until the condition Admitting has the reason.
func (w *world) runUntil(limit time.Duration, reason string) {
	w.t.Helper()
	if err := w.RunUntil(limit, func() bool { return w.reason() == reason }); err != nil {
		w.t.Fatalf("waiting for %s: %v; %s", reason, err, w.describe())
	}
}

func (w *world) get() *fleetv1beta1.ManagedClustersUpgrade {
	w.t.Helper()
	var u fleetv1beta1.ManagedClustersUpgrade
	w.must(w.client.Get(w.t.Context(), stores, &u))
	return &u
}

// edit changes the upgrade as a user does.
func (w *world) edit(do func(*fleetv1beta1.ManagedClustersUpgrade)) {
	w.t.Helper()
	u := w.get()
	do(u)
	w.must(w.client.Update(w.t.Context(), u))
}

// editCluster changes a ManagedCluster.
func (w *world) editCluster(name string, do func(*clusterv1.ManagedCluster)) {
	w.t.Helper()
	var cluster clusterv1.ManagedCluster
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, &cluster))
	do(&cluster)
	w.must(w.client.Update(w.t.Context(), &cluster))
}

// claim sets the claims of a cluster.
func (w *world) claim(name, claim, value string) {
	w.t.Helper()
	var cluster clusterv1.ManagedCluster
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, &cluster))
	cluster.Status.ClusterClaims = append(cluster.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: claim, Value: value})
	w.must(w.client.Status().Update(w.t.Context(), &cluster))
}

func (w *world) condition(name string) metav1.Condition {
	if c := apimeta.FindStatusCondition(w.get().Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// reason returns the reason of the condition Admitting.
func (w *world) reason() string { return w.condition(fleetv1beta1.ConditionAdmitting).Reason }

// counters returns the counters as "total/initialized/partial/complete/failed/pending".
func (w *world) counters() string {
	s := w.get().Status.ClustersSummery
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d/%d/%d/%d/%d", s.Total, s.Initialized, s.PartialUpgrade, s.Complete, s.Failed, s.Pending)
}

func (w *world) describe() string {
	return fmt.Sprintf("%s, %s: %s", w.counters(), w.reason(), w.condition(fleetv1beta1.ConditionAdmitting).Message)
}

// expect compares the counters and the reason of Admitting.
func (w *world) expect(counters, reason string) {
	w.t.Helper()
	if w.counters() != counters || w.reason() != reason {
		w.t.Errorf("%s, want %s, %s", w.describe(), counters, reason)
	}
}

// run returns the run of a cluster; nil means none.
func (w *world) run(cluster string) *fleetv1alpha1.ClusterUpgradeRun {
	w.t.Helper()
	for _, run := range w.runs() {
		if run.Namespace == cluster {
			return &run
		}
	}
	return nil
}

func (w *world) runs() []fleetv1alpha1.ClusterUpgradeRun {
	w.t.Helper()
	var list fleetv1alpha1.ClusterUpgradeRunList
	w.must(w.client.List(w.t.Context(), &list))
	return list.Items
}

func (w *world) count(request string) int {
	return len(slices.DeleteFunc(slices.Clone(w.requests), func(r string) bool { return r != request }))
}

// inFlight counts the runs that have neither completed nor failed.
func (w *world) inFlight() int {
	n := 0
	for _, run := range w.runs() {
		ended := run.Status.Attempt == run.Spec.Attempt &&
			(run.Status.State == fleetv1alpha1.StateComplete || run.Status.State == fleetv1alpha1.StateFailed)
		if !ended {
			n++
		}
	}
	return n
}

func (w *world) makeCanary(name string) {
	w.t.Helper()
	w.editCluster(name, func(c *clusterv1.ManagedCluster) { c.Labels["canary"] = "yes" })
}

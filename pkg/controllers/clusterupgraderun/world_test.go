// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/clusterupgraderun"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
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
	states   []string        // of the run, in their order
	stalled  int             // how often the run was stored as stalled

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
	w.program = simulation.Program{Name: "hub", Controllers: w.controllers, Plan: w.decide, OnCrash: w.start}
	w.start()
	return w
}

func (w *world) start() {
	process, err := w.Start(&w.program)
	w.must(err)
	w.process = process
}

func (*world) controllers(env simulation.Env) ([]manager.Controller, error) {
	r := &clusterupgraderun.Reconciler{Clock: env.Clock, Image: hubImage}
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

// observe checks the invariants of each stored object, and lets the agent answer works.
func (w *world) observe(change simulation.Change) {
	if work, ok := change.Old.(*workv1.ManifestWork); ok && change.New == nil {
		w.spoke.Delete(work)
	}
	switch object := change.New.(type) {
	case *workv1.ManifestWork:
		before, _ := change.Old.(*workv1.ManifestWork)
		if change.Actor == "hub" && object.DeletionTimestamp.IsZero() && (before == nil || before.Generation != object.Generation) {
			w.seen[object.Name+" "+object.Annotations[delivery.Annotation]]++
		}
		if change.Actor != "agent" {
			w.wakeAgent(10 * time.Second)
		}
	case *fleetv1alpha1.ClusterUpgradeRun:
		w.observeRun(object)
	}
}

func (w *world) observeRun(run *fleetv1alpha1.ClusterUpgradeRun) {
	if s := string(run.Status.State); s != "" && (len(w.states) == 0 || w.states[len(w.states)-1] != s) {
		w.states = append(w.states, s)
	}
	if run.Status.Reason == fleetv1alpha1.ReasonStalled {
		w.stalled++
	}
	c := run.Status.Conditions
	if run.Status.State == fleetv1alpha1.StateComplete && apimeta.IsStatusConditionFalse(c, fleetv1alpha1.ConditionSucceeded) {
		w.Fail(errors.New("the run is Complete, and Succeeded is False"))
	}
	if run.Status.State == fleetv1alpha1.StateFailed && apimeta.IsStatusConditionTrue(c, fleetv1alpha1.ConditionSucceeded) {
		w.Fail(errors.New("the run is Failed, and Succeeded is True"))
	}
}

// wakeAgent lets the agent act later.
func (w *world) wakeAgent(d time.Duration) {
	if !w.pending {
		w.pending = true
		w.After(d, func() { w.pending = false; w.sync() })
	}
}

// change lets something happen on the cluster, which the agent reports.
func (w *world) change(d time.Duration, do func()) {
	w.After(d, func() { do(); w.wakeAgent(10 * time.Second) })
}

// sync lets the agent answer each work.
func (w *world) sync() {
	if w.offline {
		return
	}
	agent := w.Client("agent")
	var works workv1.ManifestWorkList
	w.must(agent.List(w.t.Context(), &works, client.InNamespace(cluster)))
	for i := range works.Items {
		work := &works.Items[i]
		if !work.DeletionTimestamp.IsZero() {
			w.spoke.Delete(work)
			controllerutil.RemoveFinalizer(work, spoke.Finalizer)
			w.must(agent.Update(w.t.Context(), work))
			continue
		}
		if work.Name == w.held {
			continue
		}
		if controllerutil.AddFinalizer(work, spoke.Finalizer) {
			w.must(agent.Update(w.t.Context(), work))
		}
		desired := w.spoke.Desired()
		status := w.spoke.Apply(work, w.Now())
		if now := w.spoke.Desired(); now != desired && now != "" && !w.refuses {
			w.install(now)
		}
		w.runJobs()
		if !w.mute {
			work.Status = status
			w.must(agent.Status().Update(w.t.Context(), work))
		}
	}
}

// runJobs begins and finishes the Jobs of the cluster.
func (w *world) runJobs() {
	for _, job := range w.spoke.Objects("Job") {
		name, _, _ := strings.Cut(job.GetName(), "-")
		if !slices.Contains(w.begun, name) {
			w.begun = append(w.begun, name)
		}
		if end := w.jobs[name]; end != "" {
			delete(w.jobs, name)
			w.change(time.Minute, func() { w.spoke.SetCondition(job, end, "True", end, "the Job is "+end, w.Now()) })
		}
	}
}

// install lets the cluster version operator install a release.
func (w *world) install(release string) {
	w.change(time.Minute, func() {
		if w.spoke.Desired() != release || w.spoke.History()[0] == release+" Partial" || w.spoke.History()[0] == release+" Completed" {
			w.spoke.Observe()
			return
		}
		w.spoke.Accept(release, w.Now())
		if w.takes > 0 {
			w.change(w.takes, func() { w.spoke.Complete(w.Now()) })
		}
	})
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

// admit creates the run as the hub does.
func (w *world) admit(edits ...func(*fleetv1alpha1.ClusterUpgradeRunSpec)) {
	w.t.Helper()
	upgrade := w.upgrade()
	run := &fleetv1alpha1.ClusterUpgradeRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: "stores-1a2b3c4d", Labels: map[string]string{fleetv1beta1.UpgradeLabel: string(upgrade.UID)},
		},
		Spec: fleetv1alpha1.ClusterUpgradeRunSpec{
			ManagedClustersUpgrade: fleetv1alpha1.UpgradeReference{Namespace: upgrade.Namespace, Name: upgrade.Name, UID: string(upgrade.UID)},
			Attempt:                1, AdmissionTime: metav1.NewTime(w.Now().Truncate(time.Second)), ClusterVersion: upgrade.Spec.ClusterVersion,
		},
	}
	for _, edit := range edits {
		edit(&run.Spec)
	}
	if run.Spec.Outcome == nil {
		run.Finalizers = []string{fleetv1alpha1.Finalizer, fleetv1alpha1.WorksFinalizer}
	}
	w.must(w.client.Create(w.t.Context(), run))
}

// retry raises the attempt as the hub does.
func (w *world) retry() {
	w.t.Helper()
	run := w.run()
	run.Spec.Attempt++
	run.Spec.AdmissionTime = metav1.NewTime(w.Now().Truncate(time.Second))
	w.must(w.client.Update(w.t.Context(), run))
}

func (w *world) upgrade() *fleetv1beta1.ManagedClustersUpgrade {
	w.t.Helper()
	var upgrade fleetv1beta1.ManagedClustersUpgrade
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "fleet", Name: "stores"}, &upgrade))
	return &upgrade
}

func (w *world) editUpgrade(edit func(*fleetv1beta1.ManagedClustersUpgradeSpec)) {
	w.t.Helper()
	upgrade := w.upgrade()
	edit(&upgrade.Spec)
	w.must(w.client.Update(w.t.Context(), upgrade))
}

func (w *world) claim(version string) { w.setClaim("version.openshift.io", version) }

// setClaim sets the only claim of the cluster; an empty value removes it.
func (w *world) setClaim(name, value string) {
	w.t.Helper()
	var managed clusterv1.ManagedCluster
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Name: cluster}, &managed))
	managed.Status.ClusterClaims = nil
	if value != "" {
		managed.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: name, Value: value}}
	}
	w.must(w.client.Status().Update(w.t.Context(), &managed))
}

func (w *world) setAvailable(available bool) {
	w.t.Helper()
	var managed clusterv1.ManagedCluster
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Name: cluster}, &managed))
	status := metav1.ConditionUnknown
	if available {
		status = metav1.ConditionTrue
	}
	apimeta.SetStatusCondition(&managed.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(w.Now()),
	})
	w.must(w.client.Status().Update(w.t.Context(), &managed))
}

// setOffline disconnects the cluster, or connects it again.
func (w *world) setOffline(offline bool) {
	w.t.Helper()
	w.offline = offline
	w.setAvailable(!offline)
	if !offline {
		w.wakeAgent(10 * time.Second)
	}
}

// run returns the run; nil means that there is none.
func (w *world) run() *fleetv1alpha1.ClusterUpgradeRun {
	w.t.Helper()
	var list fleetv1alpha1.ClusterUpgradeRunList
	w.must(w.client.List(w.t.Context(), &list, client.InNamespace(cluster)))
	for i := range list.Items {
		if list.Items[i].Name == "stores-1a2b3c4d" {
			return &list.Items[i]
		}
	}
	return nil
}

// work returns a work; nil means that there is none.
func (w *world) work(name string) *workv1.ManifestWork {
	w.t.Helper()
	var work workv1.ManifestWork
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: cluster, Name: name}, &work)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return &work
}

// form returns the attempt and the form of the work of the platform; empty means none.
func (w *world) form() string {
	w.t.Helper()
	if work := w.work(upgradeWork); work != nil {
		return work.Annotations[delivery.Annotation]
	}
	return ""
}

// runUntil lets time pass until the run has the state and the reason.
func (w *world) runUntil(limit time.Duration, state fleetv1alpha1.State, reason string) {
	w.t.Helper()
	err := w.RunUntil(limit, func() bool {
		run := w.run()
		return run != nil && run.Status.State == state && (reason == "" || run.Status.Reason == reason)
	})
	if err != nil {
		w.t.Fatalf("waiting for %s %s: %v; %s", state, reason, err, w.describe())
	}
}

// settle lets time pass until the attempt has ended.
func (w *world) settle(limit time.Duration) {
	w.t.Helper()
	err := w.RunUntil(limit, func() bool {
		run := w.run()
		return run == nil || !controllerutil.ContainsFinalizer(run, fleetv1alpha1.Finalizer) && isTerminal(run)
	})
	if err != nil {
		w.t.Fatalf("the run has not ended: %v; %s", err, w.describe())
	}
	w.runFor(time.Minute)
}

func isTerminal(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run.Status.Attempt == run.Spec.Attempt &&
		(run.Status.State == fleetv1alpha1.StateComplete || run.Status.State == fleetv1alpha1.StateFailed)
}

func (w *world) describe() string {
	run := w.run()
	if run == nil {
		return "no run"
	}
	var steps []string
	if len(run.Status.History) > 0 {
		for _, c := range run.Status.History[0].Conditions {
			steps = append(steps, fmt.Sprintf("%s=%s/%s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	return fmt.Sprintf("%s %s: %s\nwork %q, history %v\n%s", run.Status.State, run.Status.Reason, run.Status.Message, w.form(), w.spoke.History(), strings.Join(steps, "\n"))
}

// expect compares the state and its reason.
func (w *world) expect(state fleetv1alpha1.State, reason string) {
	w.t.Helper()
	if run := w.run(); run == nil || run.Status.State != state || run.Status.Reason != reason {
		w.t.Errorf("want %s %s, got %s", state, reason, w.describe())
	}
}

// expectReleased checks that nothing holds the cluster.
func (w *world) expectReleased() {
	w.t.Helper()
	var lease coordinationv1.Lease
	if err := w.client.Get(w.t.Context(), leaseKey, &lease); !apierrors.IsNotFound(err) {
		w.t.Errorf("the Lease exists: %v, %v", lease.Spec.HolderIdentity, err)
	}
}

// expectQuiet checks that an ended run makes no request, that nothing is locked, and that each work was
// written once in each form.
func (w *world) expectQuiet() {
	w.t.Helper()
	w.expectReleased()
	w.requests = nil
	w.runFor(24 * time.Hour)
	if len(w.requests) > 0 {
		w.t.Errorf("requests of a run that has ended: %v", w.requests)
	}
	for name, times := range w.seen {
		if times > 1 {
			w.t.Errorf("work %s was written %d times", name, times)
		}
	}
}

// holdAgent keeps the agent from applying a work, for as long as releaseAgent is not called.
func (w *world) holdAgent(work string) { w.held = work }

func (w *world) releaseAgent() {
	w.held = ""
	w.wakeAgent(0)
}

// expectUntouched checks that the platform of the cluster is not upgraded, and that no upgrade is
// requested.
func (w *world) expectUntouched() {
	w.t.Helper()
	if desired, history := w.spoke.Desired(), w.spoke.History(); desired != "" || len(history) != 1 {
		w.t.Errorf("%q is requested, history %v", desired, history)
	}
}

// expectNoWorks checks that no work is left.
func (w *world) expectNoWorks() {
	w.t.Helper()
	var works workv1.ManifestWorkList
	w.must(w.client.List(w.t.Context(), &works))
	for i := range works.Items {
		w.t.Errorf("work %s is left", works.Items[i].Name)
	}
}

// count returns the number of requests of a kind.
func (w *world) count(request string) int {
	n := 0
	for _, r := range w.requests {
		if r == request {
			n++
		}
	}
	return n
}

// restart ends the process and starts another one.
func (w *world) restart() {
	w.process.Kill()
	w.start()
}

// finishUpgrade publishes that all clusters of the upgrade are finished, as its controller does.
func (w *world) finishUpgrade() {
	w.t.Helper()
	upgrade := w.upgrade()
	upgrade.Status.ObservedGeneration = upgrade.Generation
	upgrade.Status.ClustersSummery = &fleetv1beta1.ClustersSummary{Total: 1, Complete: 1}
	w.must(w.client.Status().Update(w.t.Context(), upgrade))
}

func raw(manifest string) workv1.Manifest {
	return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}
}

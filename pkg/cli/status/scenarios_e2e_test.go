// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/virtual"
	"github.com/managed-upgrade/managed-upgrade-operator/test/e2e/scenarios"
)

// controlPlane is the name of the operators' section in an assessment.
const controlPlane = "control plane"

// screenInterval is the virtual time between two screens of a scenario. Most scenarios compress an hour of a
// real cluster into a minute.
const screenInterval = 20 * time.Second

// counters counts screens by verdict over all scenarios.
type counters struct {
	mu       sync.Mutex
	complete map[updatev1beta1.AssessmentState]int
	// missing counts screens without a required source.
	missing map[updatev1beta1.AssessmentState]int
	// compared counts the objects of insights in stuck sections, and lost those that no cause names. ends
	// counts the printed latest ends, and later those that moved to a later time without a reason.
	compared, lost, ends, later int
}

func (c *counters) add(to *int, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*to += n
}

func (c *counters) count(states map[updatev1beta1.AssessmentState]int, state updatev1beta1.AssessmentState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	states[state]++
}

// TestScreens_of_scenarios repeatedly prints the status of all scenarios that run in virtual time. While a
// required source is missing, no screen may report the update as progressing, idle, or waiting. Grouping must
// not lose objects, latest ends must not move to a later time without a reason, and screens must fit from 60
// to 200 columns.
func TestScreens_of_scenarios(t *testing.T) {
	t.Parallel()
	counted := newCounters()
	t.Cleanup(func() { // the scenarios have ended
		t.Logf("%+v", counted)
		counted.check(t)
	})
	for _, name := range scenarioNames(t) {
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			t.Parallel()
			if !watchScenario(t, name, counted) {
				t.Skip("needs the program of the operator")
			}
		})
	}
}

// BenchmarkScreensOfScenarios reports the counts of TestScreens_of_scenarios.
func BenchmarkScreensOfScenarios(b *testing.B) {
	b.Logf("Method: all scenarios in virtual time; a user without the Update Status Controller prints the status each %s: with all sources, and without "+
		"each of the four required ones, both with and without the screen before. The same limits are a test.", screenInterval)
	for b.Loop() {
		counted := newCounters()
		for _, name := range scenarioNames(b) {
			watchScenario(b, name, counted)
		}
		counted.check(b)
		b.ReportMetric(float64(sum(counted.complete)), "screens")
		b.ReportMetric(float64(sum(counted.missing)), "without_a_source")
		b.ReportMetric(float64(counted.missing[updatev1beta1.StateIdle]+counted.missing[updatev1beta1.StateProgressing]), "of_them_good")
		b.ReportMetric(float64(counted.compared), "objects")
		b.ReportMetric(float64(counted.lost), "of_them_lost")
		b.ReportMetric(float64(counted.ends), "ends")
		b.ReportMetric(float64(counted.later), "of_them_later")
		b.ReportMetric(0, "ns/op")
	}
}

func newCounters() *counters {
	return &counters{complete: map[updatev1beta1.AssessmentState]int{}, missing: map[updatev1beta1.AssessmentState]int{}}
}

func sum(states map[updatev1beta1.AssessmentState]int) (n int) {
	for _, count := range states {
		n += count
	}
	return n
}

// check reports which counts the scenarios leave at 0, because such a count proves nothing.
func (c *counters) check(tb testing.TB) {
	tb.Helper()
	for _, state := range []updatev1beta1.AssessmentState{
		updatev1beta1.StateIdle, updatev1beta1.StateProgressing, updatev1beta1.StateWaiting, updatev1beta1.StateStuck,
	} {
		if c.complete[state] == 0 {
			tb.Errorf("no screen of state %s", state)
		}
	}
	if c.compared == 0 || c.ends == 0 {
		tb.Errorf("%d objects and %d ends were compared", c.compared, c.ends)
	}
}

func scenarioNames(tb testing.TB) []string {
	tb.Helper()
	names, err := scenario.Names(scenarios.Files)
	if err != nil {
		tb.Fatal(err)
	}
	return names
}

// watchScenario runs a scenario and observes its cluster. It returns false if the scenario needs the real
// program.
func watchScenario(tb testing.TB, name string, counted *counters) bool {
	tb.Helper()
	story, err := scenario.Load(scenarios.Files, name)
	if err != nil {
		tb.Fatal(err)
	}
	if story.Binary {
		return false
	}
	world, err := virtual.New(story, session.SimulatedRun(root))
	if err != nil {
		tb.Fatal(err)
	}
	defer world.Stop()
	watched := &watchedWorld{World: world, watcher: watcher{t: tb, counted: counted, reader: world.Cluster.Client}}
	run, err := scenario.Start(tb.Context(), story, watched, scenario.RunOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	run.Wait(tb.Context()) // the tests of the operator check the outcome
	return true
}

// watchedWorld is a World whose cluster is observed after each step.
type watchedWorld struct {
	*virtual.World

	watcher watcher
	next    time.Time
}

// Step runs the simulation and observes the cluster at each interval.
func (w *watchedWorld) Step(ctx context.Context, d time.Duration) error {
	err := w.World.Step(ctx, d)
	if now := w.Now(); err == nil && !now.Before(w.next) {
		w.next = now.Add(screenInterval)
		w.watcher.observe(ctx, now)
	}
	return err
}

// watcher is a user who repeatedly prints the status.
type watcher struct {
	t        testing.TB
	counted  *counters
	reader   client.Reader
	previous *updatev1beta1.UpdateStatus
	// latest is the most recent latest end shown for the update to the release.
	release string
	latest  *metav1.Time
	started time.Time
}

func (w *watcher) observe(ctx context.Context, now time.Time) {
	w.t.Helper()
	if w.previous == nil {
		w.started, w.previous = now, w.pastUpdates(ctx, now)
	}
	got := w.status(ctx, now, "", w.previous)
	assessment := got.object.Status.Assessment
	w.counted.count(w.counted.complete, assessment.State)
	w.checkScreen(got)
	w.checkObjects(got.object.Status)
	w.checkEnd(assessment)
	// Most scenarios end before anything is stuck. In most of them, one object gets stuck here.
	stalled := w.statusOf(ctx, now.Add(stallsAfter), deniedReader{w.reader, "", w.started, true}, w.previous)
	w.counted.count(w.counted.complete, stalled.object.Status.Assessment.State)
	w.checkScreen(stalled)
	w.checkObjects(stalled.object.Status)
	for _, kind := range []string{"ClusterVersion", "ClusterOperator", "Node", "MachineConfigPool"} {
		for _, previous := range []*updatev1beta1.UpdateStatus{nil, w.previous} {
			state := w.status(ctx, now, kind, previous).object.Status.Assessment.State
			w.counted.count(w.counted.missing, state)
			if state != updatev1beta1.StateUnknown && state != updatev1beta1.StateStuck {
				w.t.Errorf("%s: %s without the %ss", now.Format(time.TimeOnly), state, kind)
			}
		}
	}
	w.previous = got.object
}

// status returns the status of the cluster without the Update Status Controller. The user may not read the
// forbidden kind, unless it is empty.
func (w *watcher) status(ctx context.Context, now time.Time, forbidden string, previous *updatev1beta1.UpdateStatus) snapshot {
	w.t.Helper()
	return w.statusOf(ctx, now, deniedReader{w.reader, forbidden, w.started, false}, previous)
}

// statusOf returns the status of the cluster as seen through a reader.
func (w *watcher) statusOf(ctx context.Context, now time.Time, reader deniedReader, previous *updatev1beta1.UpdateStatus) snapshot {
	w.t.Helper()
	cluster := &session.Cluster{Reader: reader, Clock: session.FixedClock(now)}
	got, err := readStatus(ctx, cluster, session.ControllerNamespace, previous)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// stallsAfter is the delay of an additional screen that shows the cluster as if nothing had changed since and
// no node responded.
const stallsAfter = 3 * time.Hour

// pastDurations holds the durations of two earlier control plane updates, at the speed of scenarios.
var pastDurations = []time.Duration{time.Minute, 90 * time.Second}

// pastUpdates returns the two earlier updates as observed by the Update Status Controller.
func (w *watcher) pastUpdates(ctx context.Context, now time.Time) *updatev1beta1.UpdateStatus {
	w.t.Helper()
	var pools mcfgv1.MachineConfigPoolList
	if err := w.reader.List(ctx, &pools); err != nil {
		w.t.Fatal(err)
	}
	status := &updatev1beta1.UpdateStatus{}
	for i, took := range pastDurations {
		start := now.Add(-time.Duration(i+2) * 24 * time.Hour)
		past := updatev1beta1.PastUpdate{ToRelease: pastRelease(i), StartedTime: metav1.NewTime(start), CompletionTime: metav1.NewTime(start.Add(took))}
		for _, pool := range pools.Items {
			past.Pools = append(past.Pools, updatev1beta1.PoolDurations{Name: pool.Name, Nodes: 3, LowerSeconds: 8, UpperSeconds: 14, LongestSeconds: 15})
		}
		status.Status.PastUpdates = append(status.Status.PastUpdates, past)
	}
	return status
}

// pastRelease returns the release of an earlier update, latest first.
func pastRelease(i int) string { return fmt.Sprintf("4.19.%d", 9-i) }

// addPastUpdates adds the earlier updates to the history of a ClusterVersion.
func addPastUpdates(version *unstructured.Unstructured, now time.Time) error {
	history, _, err := unstructured.NestedSlice(version.Object, "status", "history")
	if err != nil {
		return err
	}
	for i, took := range pastDurations {
		start := now.Add(-time.Duration(i+2) * 24 * time.Hour)
		history = append(history, map[string]any{
			"state": "Completed", "version": pastRelease(i), "image": pastRelease(i), "verified": true,
			"startedTime": start.UTC().Format(time.RFC3339), "completionTime": start.Add(took).UTC().Format(time.RFC3339),
		})
	}
	installed := now.Add(-30 * 24 * time.Hour).UTC().Format(time.RFC3339)
	history = append(history, map[string]any{
		"state": "Completed", "version": "4.19.1", "image": "4.19.1", "verified": true, "startedTime": installed, "completionTime": installed,
	})
	return unstructured.SetNestedSlice(version.Object, history, "status", "history")
}

// checkScreen prints the status at several widths.
func (w *watcher) checkScreen(s snapshot) {
	w.t.Helper()
	for _, width := range []int{60, 80, 133, 200} {
		for _, details := range []bool{false, true} {
			p := &session.Session{Environment: session.Environment{Terminal: &screen.Terminal{Width: width}}, Name: "oc update"}
			printed := newScreen(p, s, details).render()
			clitest.CheckWidth(w.t, printed, width)
			if word, _ := headWord(s.object.Status.Assessment.State); !strings.HasPrefix(printed, word+"  ") {
				w.t.Errorf("the screen begins with %q", printed)
			}
		}
	}
}

// checkObjects compares the objects of the causes with the objects of insights in stuck sections.
func (w *watcher) checkObjects(status updatev1beta1.UpdateStatusStatus) {
	w.t.Helper()
	named := map[string]bool{}
	for _, cause := range status.Assessment.Causes {
		for _, link := range cause.Chain {
			for _, group := range link.Objects {
				for _, name := range group.Names {
					named[group.Kind+" "+group.Namespace+"/"+name] = true
				}
			}
		}
	}
	stuck := map[string]bool{}
	for _, section := range status.Assessment.Sections {
		stuck[section.Name] = section.State == updatev1beta1.StateStuck
	}
	check := func(section string, all []updatev1beta1.InformerInsights) {
		for _, informer := range all {
			for _, of := range informer.Insights {
				name := section
				if section == controlPlane && informer.Name == checks.InformerNodes {
					name = clusterstate.PoolMaster // the section of the control plane nodes
				}
				if !stuck[name] || of.Impact.Level.Rank() < updatev1beta1.LevelWarning.Rank() {
					continue
				}
				w.counted.add(&w.counted.compared, len(of.Scope.Resources))
				for _, r := range of.Scope.Resources {
					if key := r.Kind + " " + r.Namespace + "/" + r.Name; !named[key] {
						w.counted.add(&w.counted.lost, 1)
						w.t.Errorf("%s of section %s is lost: the causes name %q", key, name, slices.Sorted(maps.Keys(named)))
					}
				}
			}
		}
	}
	check(controlPlane, status.ControlPlane.UpdateInformers)
	for i := range status.WorkerPools {
		check(status.WorkerPools[i].Name, status.WorkerPools[i].UpdateInformers)
	}
}

// checkEnd compares the latest end with the previous screen of the same update.
func (w *watcher) checkEnd(now *updatev1beta1.Assessment) {
	w.t.Helper()
	if now.Release != w.release {
		w.release, w.latest = now.Release, nil
	}
	if now.Estimate == nil || now.Estimate.Latest == nil {
		return
	}
	if before := w.latest; before != nil && now.Estimate.Latest.After(before.Time) && now.Estimate.Extended == "" {
		w.counted.add(&w.counted.later, 1)
		w.t.Errorf("the latest end moved from %s to %s without a reason", before, now.Estimate.Latest)
	}
	w.counted.add(&w.counted.ends, 1)
	w.latest = now.Estimate.Latest
}

// deniedReader denies reads of a kind and adds earlier updates to the history of the cluster.
type deniedReader struct {
	client.Reader

	kind string
	// started is when the scenario started. The earlier updates precede it.
	started time.Time
	// down makes all nodes unresponsive since then.
	down bool
}

// Get returns an object.
func (r deniedReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if r.denies(r.kindOf(object)) {
		return clitest.Forbidden()
	}
	if err := r.Reader.Get(ctx, key, object, opts...); err != nil {
		return err
	}
	if version, is := object.(*unstructured.Unstructured); is && version.GetKind() == "ClusterVersion" {
		return addPastUpdates(version, r.started)
	}
	return nil
}

// List returns objects.
func (r deniedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if r.denies(strings.TrimSuffix(r.kindOf(list), "List")) {
		return clitest.Forbidden()
	}
	if err := r.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	if nodes, is := list.(*corev1.NodeList); is && r.down {
		for i := range nodes.Items {
			nodes.Items[i].Status.Conditions = []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(r.started)},
			}
		}
	}
	return nil
}

func (r deniedReader) kindOf(object runtime.Object) string {
	if gvk, err := r.Reader.(client.Client).GroupVersionKindFor(object); err == nil {
		return gvk.Kind
	}
	return object.GetObjectKind().GroupVersionKind().Kind
}

func (r deniedReader) denies(kind string) bool {
	return kind == "UpdateStatus" || r.kind != "" && kind == r.kind
}

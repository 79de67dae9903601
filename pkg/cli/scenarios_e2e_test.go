// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/scenario/virtual"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/test/e2e/scenarios"
)

// screenInterval is the virtual time between two screens of a scenario. An hour of a real cluster takes a
// minute in most of them.
const screenInterval = 20 * time.Second

// counters counts screens by verdict, of all scenarios.
type counters struct {
	mu       sync.Mutex
	complete map[updatev1beta1.AssessmentState]int
	// missing are those without a required source.
	missing map[updatev1beta1.AssessmentState]int
	objects int
}

func (c *counters) count(states map[updatev1beta1.AssessmentState]int, state updatev1beta1.AssessmentState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	states[state]++
}

// TestScreens_of_scenarios prints the status of all scenarios that run in virtual time, again and again. No
// screen reports an update as progressing, idle, or waiting while a required source is missing, no object
// is lost by grouping, no latest end moves later without a reason, and each screen fits from 60 to 200
// columns.
func TestScreens_of_scenarios(t *testing.T) {
	t.Parallel()
	names, err := scenario.Names(scenarios.Files)
	if err != nil {
		t.Fatal(err)
	}
	counted := &counters{complete: map[updatev1beta1.AssessmentState]int{}, missing: map[updatev1beta1.AssessmentState]int{}}
	t.Cleanup(func() { // the scenarios have ended
		t.Logf("screens: %v; without a required source: %v; %d objects in causes", counted.complete, counted.missing, counted.objects)
		for _, state := range []updatev1beta1.AssessmentState{
			updatev1beta1.StateIdle, updatev1beta1.StateProgressing, updatev1beta1.StateWaiting, updatev1beta1.StateStuck,
		} {
			if counted.complete[state] == 0 {
				t.Errorf("no screen of state %s", state)
			}
		}
		if counted.objects == 0 {
			t.Error("no cause has an object")
		}
	})
	for _, name := range names {
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			t.Parallel()
			watchScenario(t, name, counted)
		})
	}
}

// watchScenario runs a scenario and observes its cluster.
func watchScenario(t *testing.T, name string, counted *counters) {
	t.Helper()
	story, err := scenario.Load(scenarios.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	if story.Binary {
		t.Skip("needs the program of the operator")
	}
	world, err := virtual.New(story, RunSimulated)
	if err != nil {
		t.Fatal(err)
	}
	defer world.Stop()
	watched := &watchedWorld{World: world, watcher: watcher{t: t, counted: counted, reader: world.Cluster.Client}}
	run, err := scenario.Start(t.Context(), story, watched, scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run.Wait(t.Context()) // whether it ends as expected is tested with the operator
}

// watchedWorld is a World whose cluster is observed after its steps.
type watchedWorld struct {
	*virtual.World

	watcher watcher
	next    time.Time
}

// Step runs the simulation, and observes the cluster once the interval has passed.
func (w *watchedWorld) Step(ctx context.Context, d time.Duration) error {
	err := w.World.Step(ctx, d)
	if now := w.Now(); err == nil && !now.Before(w.next) {
		w.next = now.Add(screenInterval)
		w.watcher.observe(ctx, now)
	}
	return err
}

// watcher is a user who prints the status again and again.
type watcher struct {
	t        *testing.T
	counted  *counters
	reader   client.Reader
	previous *updatev1beta1.UpdateStatus
}

func (w *watcher) observe(ctx context.Context, now time.Time) {
	w.t.Helper()
	got := w.status(ctx, now, "", w.previous)
	assessment := got.object.Status.Assessment
	w.counted.count(w.counted.complete, assessment.State)
	w.checkScreen(got)
	w.checkObjects(got.object.Status)
	w.checkEnd(assessment)
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

// status returns the status of the cluster without the Update Status Controller; a kind is forbidden,
// unless it is empty.
func (w *watcher) status(ctx context.Context, now time.Time, forbidden string, previous *updatev1beta1.UpdateStatus) snapshot {
	w.t.Helper()
	cluster := &Cluster{Reader: deniedReader{w.reader, forbidden}, Clock: fixedClock(now)}
	got, err := cluster.readStatus(ctx, controllerNamespace, previous)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// checkScreen prints the status at several widths.
func (w *watcher) checkScreen(s snapshot) {
	w.t.Helper()
	for _, width := range []int{60, 80, 133, 200} {
		for _, details := range []bool{false, true} {
			p := &Program{Environment: Environment{Terminal: &Terminal{Width: width}}, name: "oc update"}
			printed := p.newScreen(s, details).render()
			checkWidth(w.t, printed, width)
			if word, _ := headWord(s.object.Status.Assessment.State); !strings.HasPrefix(printed, word+"  ") {
				w.t.Errorf("the screen begins with %q", printed)
			}
		}
	}
}

// checkObjects compares the objects of the causes with those of the insights of the sections that are
// stuck.
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
	w.counted.mu.Lock()
	w.counted.objects += len(named)
	w.counted.mu.Unlock()
	stuck := map[string]bool{}
	for _, section := range status.Assessment.Sections {
		stuck[section.Name] = section.State == updatev1beta1.StateStuck
	}
	for i := range status.WorkerPools {
		pool := &status.WorkerPools[i]
		for _, informer := range pool.UpdateInformers {
			for _, of := range informer.Insights {
				if !stuck[pool.Name] || insight.Rank(of.Impact.Level) < insight.Rank(updatev1beta1.LevelWarning) {
					continue
				}
				for _, r := range of.Scope.Resources {
					if key := r.Kind + " " + r.Namespace + "/" + r.Name; !named[key] {
						w.t.Errorf("%s is lost: the causes name %q", key, slices.Sorted(maps.Keys(named)))
					}
				}
			}
		}
	}
}

// checkEnd compares the latest end with that of the screen before.
func (w *watcher) checkEnd(now *updatev1beta1.Assessment) {
	w.t.Helper()
	if w.previous == nil {
		return
	}
	before := w.previous.Status.Assessment
	if before.Release != now.Release || before.Estimate == nil || now.Estimate == nil || before.Estimate.Latest == nil || now.Estimate.Latest == nil {
		return
	}
	if now.Estimate.Latest.After(before.Estimate.Latest.Time) && now.Estimate.Extended == "" {
		w.t.Errorf("the latest end moved from %s to %s without a reason", before.Estimate.Latest, now.Estimate.Latest)
	}
}

// deniedReader refuses to read a kind.
type deniedReader struct {
	client.Reader

	kind string
}

// Get returns an object.
func (r deniedReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if r.denies(r.kindOf(object)) {
		return forbidden()
	}
	return r.Reader.Get(ctx, key, object, opts...)
}

// List returns objects.
func (r deniedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if r.denies(strings.TrimSuffix(r.kindOf(list), "List")) {
		return forbidden()
	}
	return r.Reader.List(ctx, list, opts...)
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

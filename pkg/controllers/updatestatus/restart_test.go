// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// story reports two insights, resolves one of them, and reports a third.
func (w *world) story() {
	w.TB.Helper()
	w.update()
	answers := [][]string{{"disk", "memory"}, {"disk", "memory"}, {"disk"}, {"disk", "network"}}
	for _, uids := range answers {
		for range 4 { // each answer is repeated, also for a new process
			w.answer(w.reports("shop", updatev1beta1.LevelError, uids...))
			w.RunFor(20 * time.Second)
		}
	}
	w.RunFor(2 * time.Minute)
}

// outcome holds the results of a story.
type outcome struct {
	Insights, Resolved []string
	// Events holds the sorted Events about insights, without duplicates. A new process may report
	// an insight again that it does not know yet.
	Events []string
	State  updatev1beta1.AssessmentState
}

func (w *world) outcome() outcome {
	w.TB.Helper()
	status := w.object().Status
	o := outcome{State: status.Assessment.State}
	for name := range insights(status) {
		o.Insights = append(o.Insights, name)
	}
	for _, r := range status.RecentlyResolved {
		o.Resolved = append(o.Resolved, r.Summary)
	}
	for _, e := range w.events {
		if strings.Contains(e, " Insight") {
			o.Events = append(o.Events, e)
		}
	}
	slices.Sort(o.Insights)
	slices.Sort(o.Events)
	o.Events = slices.Compact(o.Events)
	return o
}

// checkHistory compares each status with the previous one. An insight keeps its first observation
// time and only disappears if it is reported as resolved.
func (w *world) checkHistory() {
	w.TB.Helper()
	for n := range w.writes[1:] {
		before, after := insights(w.writes[n].status), insights(w.writes[n+1].status)
		var resolved []string
		for _, r := range w.writes[n+1].status.RecentlyResolved {
			resolved = append(resolved, r.UpdateInformer+" "+strings.TrimPrefix(r.Summary, "Summary of "))
		}
		for name, first := range before {
			again, still := after[name]
			switch {
			case !strings.HasPrefix(name, "shop "):
			case still && !again.Equal(first):
				w.TB.Errorf("%s was first observed at %s, and then at %s", name, first, again)
			case !still && !slices.Contains(resolved, name):
				w.TB.Errorf("%s has disappeared", name)
			}
		}
	}
}

// TestKilled_at_each_write kills the process before and after each write of a story. The result of
// the story is the same, and nothing is lost or observed twice.
func TestKilled_at_each_write(t *testing.T) {
	t.Parallel()
	whole := newWorld(t)
	whole.register("shop")
	whole.Begin()
	whole.story()
	whole.checkHistory()
	want := whole.outcome()
	if diff := cmp.Diff([]string{"Summary of memory"}, want.Resolved); diff != "" {
		t.Fatalf("resolved (-want +got):\n%s", diff)
	}
	for n := range len(whole.writes) + 1 { // including the creation
		for name, crash := range map[string]simulation.Outcome{"before": simulation.CrashBefore, "after": simulation.CrashAfter} {
			t.Run(fmt.Sprintf("%s_write_%d", name, n+1), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.register("shop")
				crashed := false
				w.Plan = func(r simulation.Request) simulation.Fault {
					if r.Write == n+1 && r.Life == 1 {
						crashed = true
						return simulation.Fault{Outcome: crash}
					}
					return simulation.Fault{}
				}
				w.Program.OnCrash = func() {
					w.answers = nil
					w.After(7*time.Second, w.Begin)
				}
				w.Begin()
				w.story()
				w.checkHistory()
				if !crashed {
					t.Error("the process was not killed")
				}
				if diff := cmp.Diff(want, w.outcome()); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestLeader_that_is_new starts a leader that has no answers for a while. It keeps what was
// published and marks it as stale.
func TestLeader_that_is_new(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("shop")
	w.Begin()
	w.update()
	w.answer(w.reports("shop", updatev1beta1.LevelError, "disk", "memory"))
	w.RunFor(time.Minute)
	before, past := insights(w.object().Status), w.object().Status.Assessment.StartedTime
	w.takeEvents()
	w.restart()
	w.RunFor(10 * time.Minute)
	status := w.object().Status
	if diff := cmp.Diff(before, insights(status)); diff != "" {
		t.Errorf("insights (-before +after):\n%s", diff)
	}
	if len(status.RecentlyResolved) > 0 {
		t.Errorf("resolved: %+v", status.RecentlyResolved)
	}
	if diff := cmp.Diff(past, status.Assessment.StartedTime); diff != "" {
		t.Errorf("start of the update (-before +after):\n%s", diff)
	}
	for _, of := range status.ControlPlane.UpdateInformers {
		for i := range of.Insights {
			if of.Name == "shop" && of.Insights[i].StaleSince == nil {
				t.Errorf("%s is not stale without an answer", of.Insights[i].UID)
			}
		}
	}
	if diff := cmp.Diff([]string(nil), w.takeEvents()); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
	w.answer(w.reports("shop", updatev1beta1.LevelError, "disk"))
	w.RunFor(2 * time.Minute)
	if diff := cmp.Diff([]string{"Normal InsightResolved: Summary of memory: resolved (informer shop)"}, w.takeEvents()); diff != "" {
		t.Errorf("Events once the informer has answered (-want +got):\n%s", diff)
	}
}

// TestLeader_with_a_stale_cache starts a leader whose cache lacks the last write of the previous
// leader.
func TestLeader_with_a_stale_cache(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("shop")
	w.Begin()
	w.update()
	w.RunFor(time.Minute)
	w.Process.Kill()
	w.Begin()
	w.Process.Lag("UpdateStatus", 20*time.Second)
	first := metav1.NewTime(w.Now().Add(-30 * time.Second).Truncate(time.Second))
	object := w.object()
	reported := insight.Clean("shop", w.reports("shop", updatev1beta1.LevelError, "disk").Insights[0], w.Now())
	reported.FirstObservedTime = first
	known := &object.Status.ControlPlane.UpdateInformers
	*known = append(*known, updatev1beta1.InformerInsights{Name: "shop", Insights: []updatev1beta1.Insight{reported}})
	w.UpdateStatus(object)
	w.RunFor(10 * time.Second)
	w.answer(w.reports("shop", updatev1beta1.LevelError, "disk"))
	w.RunFor(time.Minute)
	if got := insights(w.object().Status)["shop disk"]; !got.Equal(first.Time) {
		t.Errorf("first observed at %s, want %s", got, first.UTC())
	}
	w.restart()
	w.Process.Lag("UpdateStatus", 20*time.Second)
	object = w.object()
	reported = insight.Clean("shop", w.reports("shop", updatev1beta1.LevelError, "memory").Insights[0], w.Now())
	reported.FirstObservedTime = first
	known = &object.Status.ControlPlane.UpdateInformers
	*known = append(*known, updatev1beta1.InformerInsights{Name: "shop", Insights: []updatev1beta1.Insight{reported}})
	w.UpdateStatus(object)
	w.RunFor(5 * time.Minute)
	if got := insights(w.object().Status)["shop memory"]; !got.Equal(first.Time) {
		t.Errorf("without an answer, it was first observed at %s, want %s", got, first.UTC())
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package suspensionwindow

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const namespace = "maintenance"

// world is an API server with the controller.
type world struct {
	*simulation.World
	t        *testing.T
	client   client.Client
	requests []string // of the operator to the API server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	definitions, err := simulation.Definitions(os.DirFS("../../../deploy/crds"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{World: simulation.New(simulation.Options{Definitions: definitions, MaxBurst: 1000}), t: t}
	w.client = w.Client("test")
	_, err = w.Start(&simulation.Program{
		Name: "operator",
		Controllers: func(env simulation.Env) ([]manager.Controller, error) {
			r := &Reconciler{Clock: env.Clock, Events: &notify.Events{Client: env.Client, Clock: env.Clock}}
			return []manager.Controller{r.Controller()}, nil
		},
		Plan: func(r simulation.Request) simulation.Fault {
			if !r.Cached || r.IsWrite() {
				w.requests = append(w.requests, r.String())
			}
			return simulation.Fault{}
		},
	})
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, object := range objects {
		object.SetNamespace(namespace)
		w.must(w.client.Create(w.t.Context(), object))
	}
	w.must(w.RunFor(0))
}

func (w *world) status(name string) v1beta1.UpgradeSuspensionWindowStatus {
	w.t.Helper()
	w.must(w.RunFor(time.Second))
	var window v1beta1.UpgradeSuspensionWindow
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &window))
	return window.Status
}

func config(name, team string) *v1beta1.UpgradeConfig {
	return &v1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}},
		Spec:       v1beta1.UpgradeConfigSpec{Schedule: v1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2"}},
	}
}

func job(name, team string, start time.Time) *v1beta1.UpgradeJob {
	return &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}},
		Spec:       v1beta1.UpgradeJobSpec{StartAfter: maintenance.Timestamp(start), StartBefore: maintenance.Timestamp(start.Add(time.Hour))},
	}
}

func window(name string, start, end time.Time, configs, jobs *v1beta1.LabelSelector) *v1beta1.UpgradeSuspensionWindow {
	return &v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.UpgradeSuspensionWindowSpec{
			Start: maintenance.Timestamp(start), End: maintenance.Timestamp(end), ConfigSelector: configs, JobSelector: jobs,
		},
	}
}

func TestMatching(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC)
	ofA := &v1beta1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	w.create(window("freeze", start, start.Add(24*time.Hour), ofA, ofA),
		config("c", "a"), config("b", "b"), config("a", "a"),
		job("first", "a", start), job("last", "a", start.Add(24*time.Hour-time.Second)),
		job("before", "a", start.Add(-time.Second)), job("after", "a", start.Add(24*time.Hour)), job("of-b", "b", start))
	got := w.status("freeze")
	if diff := cmp.Diff([]string{"a", "c"}, got.MatchingConfigs); diff != "" {
		t.Errorf("configs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"first", "last"}, got.MatchingJobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if c := got.Conditions; len(c) != 1 || c[0].Type != "Accepted" || c[0].Status != "True" {
		t.Errorf("the conditions are %+v", c)
	}

	var cfg v1beta1.UpgradeConfig
	w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "b"}, &cfg))
	cfg.Labels["team"] = "a"
	w.must(w.client.Update(t.Context(), &cfg))
	w.must(w.client.Delete(t.Context(), &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "last"}}))
	got = w.status("freeze")
	if diff := cmp.Diff([]string{"a", "b", "c"}, got.MatchingConfigs); diff != "" {
		t.Errorf("configs after the label has changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"first"}, got.MatchingJobs); diff != "" {
		t.Errorf("jobs after one was deleted (-want +got):\n%s", diff)
	}
}

func TestMatchingJobs_attempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC)
	end := start.Add(time.Hour)
	w.create(job("ended", "a", start), job("retried-in", "a", start.Add(-24*time.Hour)), job("retried-after", "a", start),
		window("freeze", start, end, nil, &v1beta1.LabelSelector{}))
	if diff := cmp.Diff([]string{"ended", "retried-after"}, w.status("freeze").MatchingJobs); diff != "" {
		t.Errorf("first attempts (-want +got):\n%s", diff)
	}
	record := func(name string, phase history.Phase, attempt int32, at time.Time, complete *metav1.Time) {
		var changed v1beta1.UpgradeJob
		w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &changed))
		changed.Status.History = []history.Record{{Attempt: attempt, Phase: phase, UpgradeAt: new(metav1.NewTime(at)), CompleteTime: complete}}
		w.must(w.client.Status().Update(t.Context(), &changed))
	}
	record("ended", v1beta1.PhaseSkipped, 1, start, new(metav1.NewTime(start)))
	record("retried-in", history.PhaseNew, 2, end.Add(-time.Second), nil)
	record("retried-after", history.PhaseNew, 2, end, nil)
	if diff := cmp.Diff([]string{"retried-in"}, w.status("freeze").MatchingJobs); diff != "" {
		t.Errorf("later attempts (-want +got):\n%s", diff)
	}
}

func TestStatusOfAJobCausesNoReconcile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC)
	w.create(job("job", "a", start), window("freeze", start, start.Add(time.Hour), nil, &v1beta1.LabelSelector{}))
	w.status("freeze")
	w.requests = nil
	var changed v1beta1.UpgradeJob
	w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "job"}, &changed))
	changed.Status.NextTime = new(metav1.NewTime(start))
	w.must(w.client.Status().Update(t.Context(), &changed))
	w.must(w.RunFor(24 * time.Hour))
	if diff := cmp.Diff([]string(nil), w.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestInvalidSelector(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC)
	invalid := &v1beta1.LabelSelector{MatchLabels: map[string]string{"no key": "a"}}
	w.create(config("a", "a"), window("broken", start, start.Add(time.Hour), invalid, nil), window("sound", start, start.Add(time.Hour), &v1beta1.LabelSelector{}, nil))
	broken, sound := w.status("broken"), w.status("sound")
	if c := broken.Conditions[0]; c.Status != "False" || c.Reason != reasonInvalidSelector {
		t.Errorf("the condition is %+v", c)
	}
	if diff := cmp.Diff(broken.MatchingConfigs, sound.MatchingConfigs); diff != "" {
		t.Errorf("an invalid selector selects all (-broken +sound):\n%s", diff)
	}
	var events corev1.EventList
	w.must(w.client.List(t.Context(), &events))
	if len(events.Items) != 1 || events.Items[0].Reason != reasonInvalidSelector || events.Items[0].InvolvedObject.Name != "broken" {
		t.Errorf("the Events are %+v", events.Items)
	}
}

func TestManyMatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC)
	var want []string
	for i := range maxMatching + 10 {
		w.must(w.Add(func() client.Object {
			c := config(fmt.Sprintf("c%04d", i), "a")
			c.Namespace = namespace
			return c
		}()))
		want = append(want, fmt.Sprintf("c%04d", i))
	}
	w.create(window("freeze", start, start.Add(time.Hour), &v1beta1.LabelSelector{}, nil))
	if got := w.status("freeze").MatchingConfigs; !slices.Equal(got, want[:maxMatching]) {
		t.Errorf("%d names", len(got))
	}
}

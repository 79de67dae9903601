// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package suspensionwindow

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const namespace = "maintenance"

// world is a simulated API server with the controller.
type world struct {
	*simulation.Harness
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{simulation.NewHarness(t, simulation.WorldOptions{Definitions: simulation.DefinitionsIn(t, "../../../deploy/crds"), MaxBurst: 1000})}
	w.Run(func(env simulation.Env) ([]manager.Controller, error) {
		r := &Reconciler{Clock: env.Clock, Events: &notify.Events{Client: env.Client, Clock: env.Clock}}
		return []manager.Controller{r.Controller()}, nil
	})
	return w
}

func (w *world) create(objects ...client.Object) {
	w.TB.Helper()
	for _, object := range objects {
		object.SetNamespace(namespace)
	}
	w.Create(objects...)
	w.RunFor(0)
}

func (w *world) status(name string) maintenancev1beta1.UpgradeSuspensionWindowStatus {
	w.TB.Helper()
	w.RunFor(time.Second)
	return simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: name}, &maintenancev1beta1.UpgradeSuspensionWindow{}).Status
}

func config(name, team string) *maintenancev1beta1.UpgradeConfig {
	return &maintenancev1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}},
		Spec:       maintenancev1beta1.UpgradeConfigSpec{Schedule: maintenancev1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2"}},
	}
}

func job(name, team string, start time.Time) *maintenancev1beta1.UpgradeJob {
	return &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}},
		Spec:       maintenancev1beta1.UpgradeJobSpec{StartAfter: maintenance.Timestamp(start), StartBefore: maintenance.Timestamp(start.Add(time.Hour))},
	}
}

func window(name string, start, end time.Time, configs, jobs *maintenancev1beta1.LabelSelector) *maintenancev1beta1.UpgradeSuspensionWindow {
	return &maintenancev1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: maintenancev1beta1.UpgradeSuspensionWindowSpec{
			Start: maintenance.Timestamp(start), End: maintenance.Timestamp(end), ConfigSelector: configs, JobSelector: jobs,
		},
	}
}

func TestMatching(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC)
	ofA := &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
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
	if c := got.Conditions; len(c) != 2 || c[0].Type != "Accepted" || c[0].Status != "True" || c[1].Type != "Ready" || c[1].Status != "True" {
		t.Errorf("the conditions are %+v", c)
	}

	cfg := simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: "b"}, &maintenancev1beta1.UpgradeConfig{})
	cfg.Labels["team"] = "a"
	w.Update(cfg)
	w.Delete(&maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "last"}})
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
		window("freeze", start, end, nil, &maintenancev1beta1.LabelSelector{}))
	if diff := cmp.Diff([]string{"ended", "retried-after"}, w.status("freeze").MatchingJobs); diff != "" {
		t.Errorf("first attempts (-want +got):\n%s", diff)
	}
	record := func(name string, phase history.Phase, attempt int32, at time.Time, complete *metav1.Time) {
		changed := simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: name}, &maintenancev1beta1.UpgradeJob{})
		changed.Status.History = []history.Record{{Attempt: attempt, Phase: phase, UpgradeAt: new(metav1.NewTime(at)), CompleteTime: complete}}
		w.UpdateStatus(changed)
	}
	record("ended", maintenancev1beta1.PhaseSkipped, 1, start, new(metav1.NewTime(start)))
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
	w.create(job("job", "a", start), window("freeze", start, start.Add(time.Hour), nil, &maintenancev1beta1.LabelSelector{}))
	w.status("freeze")
	w.Requests = nil
	changed := simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: "job"}, &maintenancev1beta1.UpgradeJob{})
	changed.Status.NextTime = new(metav1.NewTime(start))
	w.UpdateStatus(changed)
	w.RunFor(24 * time.Hour)
	if diff := cmp.Diff([]string(nil), w.Requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestInvalidSelector(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC)
	invalid := &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"no key": "a"}}
	w.create(config("a", "a"), window("broken", start, start.Add(time.Hour), invalid, nil), window("sound", start, start.Add(time.Hour), &maintenancev1beta1.LabelSelector{}, nil))
	broken, sound := w.status("broken"), w.status("sound")
	if c := broken.Conditions[0]; c.Status != "False" || c.Reason != reasonInvalidSelector {
		t.Errorf("the condition is %+v", c)
	}
	if diff := cmp.Diff(broken.MatchingConfigs, sound.MatchingConfigs); diff != "" {
		t.Errorf("an invalid selector selects all (-broken +sound):\n%s", diff)
	}
	events := simulation.List(w.Harness, &corev1.EventList{})
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
		w.Must(w.Add(func() client.Object {
			c := config(fmt.Sprintf("c%04d", i), "a")
			c.Namespace = namespace
			return c
		}()))
		want = append(want, fmt.Sprintf("c%04d", i))
	}
	w.create(window("freeze", start, start.Add(time.Hour), &maintenancev1beta1.LabelSelector{}, nil))
	if got := w.status("freeze").MatchingConfigs; !slices.Equal(got, want[:maxMatching]) {
		t.Errorf("%d names", len(got))
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/updatestatus"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

const (
	oldRelease = "4.4.5"
	newRelease = "4.4.6"
	actor      = "update-status-controller"
)

// world is a scripted cluster in virtual time, on which the controller of the UpdateStatus runs.
// The answers of update informers are set by the test.
type world struct {
	*simulation.World
	t       testing.TB
	client  client.Client
	script  *openshift.Script
	program simulation.Program
	process *simulation.Process
	plan    simulation.Plan

	answers []insight.Answer
	changed chan event.GenericEvent
	events  []string // type, reason, and message
	// changes are the changes that were published, with the status before them.
	changes map[string]bool
	writes  []write // of the status, by the controller
}

// write is a write of the status that the API server has stored.
type write struct {
	at     time.Time
	bytes  int // of what it has changed
	size   int // of the object
	status v1beta1.UpdateStatusStatus
}

const definitionsFolder = "../../../deploy/update-status/crds"

func newWorld(tb testing.TB) *world {
	tb.Helper()
	return newWorldWith(tb, os.DirFS(definitionsFolder))
}

// newWorldWith returns a world with these CustomResourceDefinitions.
func newWorldWith(tb testing.TB, crds fs.FS) *world {
	tb.Helper()
	definitions, err := simulation.Definitions(crds)
	must(tb, err)
	w := &world{World: simulation.New(simulation.Options{MaxBurst: 500, Definitions: definitions}), t: tb, changed: make(chan event.GenericEvent, 1), changes: map[string]bool{}}
	w.client = w.Client("user")
	w.script, err = openshift.NewScript(w.World, oldRelease, "fast-4.4", newRelease)
	must(tb, err)
	w.script.ControlPlaneDuration = 24 * time.Hour
	w.script.ChangeVersion(func(version *configv1.ClusterVersion) {
		installed := metav1.NewTime(simulation.Start.Add(-24 * time.Hour))
		version.Status.History[0].StartedTime, version.Status.History[0].CompletionTime = installed, &installed
	})
	w.script.AssignNodes(oldRelease)
	w.Observe(w.observe)
	w.program = simulation.Program{Name: actor, Controllers: w.controllers, Plan: func(r simulation.Request) simulation.Fault {
		if w.plan == nil {
			return simulation.Fault{}
		}
		return w.plan(r)
	}}
	return w
}

// observe records the writes of the controller.
func (w *world) observe(change simulation.Change) {
	before, _ := change.Old.(*v1beta1.UpdateStatus)
	after, ok := change.New.(*v1beta1.UpdateStatus)
	if !ok || before == nil || change.Actor != actor {
		return
	}
	patch, err := client.MergeFrom(before).Data(after)
	must(w.t, err)
	w.writes = append(w.writes, write{w.Now(), len(patch), sizeOf(w.t, after), *after.Status.DeepCopy()})
}

// sizeOf returns the size of an object without its managed fields.
func sizeOf(tb testing.TB, object client.Object) int {
	tb.Helper()
	object, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		tb.Fatalf("%T is no object", object)
	}
	object.SetManagedFields(nil)
	encoded, err := json.Marshal(object)
	must(tb, err)
	return len(encoded)
}

// controllers returns the controllers of one life.
func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	r := &updatestatus.Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock, Answers: func() []insight.Answer { return slices.Clone(w.answers) },
		Changed: w.changed, Events: w, Metrics: ignored{},
	}
	controller := r.Controller()
	return []manager.Controller{controller}, controller.Bind(manager.Clients{Client: env.Client, Live: env.Live})
}

// PublishChange implements updatestatus.EventPublisher.
func (w *world) PublishChange(_ context.Context, _ client.Object, before any, eventType, reason, message string) {
	event := eventType + " " + reason + ": " + message
	status, err := json.Marshal(before)
	if change := string(status) + event; err == nil && !w.changes[change] {
		w.changes[change], w.events = true, append(w.events, event)
	}
}

// ignored observes nothing.
type ignored struct{}

func (ignored) SetStatus(v1beta1.UpdateStatusStatus, time.Time) {}
func (ignored) SetPlans([]metrics.Plan)                         {}
func (ignored) ObserveStatusWrite(int)                          {}

func (w *world) start() {
	w.t.Helper()
	process, err := w.Start(&w.program)
	must(w.t, err)
	w.process = process
}

// restart ends the process and starts another one, to which no informer has answered yet.
func (w *world) restart() {
	w.t.Helper()
	w.process.Kill()
	w.answers = nil
	w.start()
}

func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	must(w.t, w.RunFor(d))
}

// update requests an update, which makes no progress once it has begun.
func (w *world) update() {
	w.t.Helper()
	version := w.script.ClusterVersion()
	version.Spec.Channel = w.script.Channel
	version.Spec.DesiredUpdate = &configv1.Update{Version: newRelease}
	must(w.t, w.client.Update(w.t.Context(), version))
}

// register creates the UpdateInformers of these names.
func (w *world) register(names ...string) {
	w.t.Helper()
	for _, name := range names {
		must(w.t, w.client.Create(w.t.Context(), &v1beta1.UpdateInformer{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1beta1.UpdateInformerSpec{ClientConfig: v1beta1.InformerClientConfig{
				Service: v1beta1.InformerService{Namespace: "shop", Name: "informer"},
			}},
		}))
	}
}

// answer sets the latest answers of the informers. What they list was acquired now.
func (w *world) answer(answers ...insight.Answer) {
	for i := range answers {
		answers[i].At = w.Now()
	}
	w.answers = answers
	select {
	case w.changed <- event.GenericEvent{Object: &v1beta1.UpdateInformer{}}:
	default:
	}
}

// reports returns an answer of an informer with insights of a level about the control plane.
func (w *world) reports(informer string, level v1beta1.Level, uids ...string) insight.Answer {
	answer := insight.Answer{Informer: informer, Result: insight.Success}
	for _, uid := range uids {
		answer.Insights = append(answer.Insights, v1beta1.Insight{
			UID: uid, AcquisitionTime: metav1.NewTime(w.Now()), Scope: v1beta1.InsightScope{Type: v1beta1.ScopeControlPlane},
			Impact: v1beta1.InsightImpact{Level: level, Summary: "Summary of " + uid},
		})
	}
	return answer
}

// object returns the published UpdateStatus.
func (w *world) object() *v1beta1.UpdateStatus {
	w.t.Helper()
	var status v1beta1.UpdateStatus
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: v1beta1.UpdateStatusName}, &status))
	return &status
}

// insights returns the published insights by informer and uid, with the time of the first
// observation.
func insights(status v1beta1.UpdateStatusStatus) map[string]time.Time {
	all := map[string]time.Time{}
	add := func(section v1beta1.Section) {
		for _, of := range section.UpdateInformers {
			for i := range of.Insights {
				all[of.Name+" "+of.Insights[i].UID] = of.Insights[i].FirstObservedTime.UTC()
			}
		}
	}
	if status.ControlPlane != nil {
		add(status.ControlPlane.Section)
	}
	for i := range status.WorkerPools {
		add(status.WorkerPools[i].Section)
	}
	return all
}

// takeEvents returns the Events since the last call.
func (w *world) takeEvents() []string {
	events := w.events
	w.events = nil
	return events
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

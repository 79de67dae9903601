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

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/updatestatus"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

const (
	oldRelease = "4.4.5"
	newRelease = "4.4.6"
	actor      = "update-status-controller"
)

// world is a scripted cluster in virtual time with the controller of the UpdateStatus. The test
// sets the answers of update informers.
type world struct {
	*simulation.World
	notify.ObjectPublisher // for methods that this type does not implement
	t                      testing.TB
	client                 client.Client
	script                 *openshift.Script
	program                simulation.Program
	process                *simulation.Process
	plan                   simulation.Plan

	answers []insight.Answer
	changed chan event.GenericEvent
	events  []string // type, reason, and message
	// changes holds the published changes, with the status before each.
	changes map[string]bool
	writes  []write // of the status, by the controller
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

// controllers returns the controllers of one process.
func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	r := &updatestatus.Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock, Answers: func() []insight.Answer { return slices.Clone(w.answers) },
		Changed: w.changed, Events: w, Metrics: ignored{},
	}
	controller := r.Controller()
	return []manager.Controller{controller}, controller.Bind(manager.Clients{Client: env.Client, Live: env.Live})
}

// PublishChange implements notify.ObjectPublisher.
func (w *world) PublishChange(_ context.Context, _ client.Object, before any, eventType, reason, message string) {
	event := eventType + " " + reason + ": " + message
	status, err := json.Marshal(before)
	if change := string(status) + event; err == nil && !w.changes[change] {
		w.changes[change], w.events = true, append(w.events, event)
	}
}

// ignored discards all metrics.
type ignored struct{}

func (ignored) SetStatus(updatev1beta1.UpdateStatusStatus, time.Time) {}
func (ignored) SetPlans([]metrics.Plan)                               {}
func (ignored) ObserveStatusWrite(int)                                {}

func (w *world) start() {
	w.t.Helper()
	process, err := w.Start(&w.program)
	must(w.t, err)
	w.process = process
}

// restart kills the process and starts another one that has no answers of informers yet.
func (w *world) restart() {
	w.t.Helper()
	w.process.Kill()
	w.answers = nil
	w.start()
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

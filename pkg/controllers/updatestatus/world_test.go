// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"context"
	"slices"
	"testing"
	"time"

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
	*simulation.Harness
	notify.ObjectPublisher // what is not published here
	script                 *openshift.Script

	answers []insight.Answer
	changed chan event.GenericEvent
	events  []string // type, reason, and message
	// changes holds the published changes, with the status before each.
	changes map[string]bool
	writes  []write   // of the status, by the controller
	current time.Time // see metrics.UpdateStatus.SetStatusTime
}

const definitionsFolder = "../../../deploy/update-status/crds"

// newWorld returns a world whose API server has these definitions, or those of this release if there are none.
func newWorld(tb testing.TB, definitions ...*simulation.Definition) *world {
	tb.Helper()
	if definitions == nil {
		definitions = simulation.DefinitionsIn(tb, definitionsFolder)
	}
	w := &world{
		Harness: simulation.NewHarness(tb, simulation.WorldOptions{MaxBurst: 500, Definitions: definitions}),
		changed: make(chan event.GenericEvent, 1), changes: map[string]bool{},
	}
	var err error
	w.script, err = openshift.NewScript(w.World, oldRelease, "fast-4.4", newRelease)
	w.Must(err)
	w.script.ControlPlaneDuration = 24 * time.Hour
	w.script.Backdate(simulation.Start.Add(-24 * time.Hour))
	w.script.AssignNodes(oldRelease)
	w.Observe(w.observe)
	w.Program.Name, w.Program.Controllers = actor, w.controllers
	return w
}

// controllers returns the controllers of one process.
func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	r := &updatestatus.Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock, Answers: func() []insight.Answer { return slices.Clone(w.answers) },
		Changed: w.changed, Events: w, Metrics: ignored{&w.current},
	}
	controller := r.Controller()
	return []manager.Controller{controller}, controller.Bind(manager.Clients{Client: env.Client, Live: env.Live})
}

// PublishChange implements notify.ObjectPublisher.
func (w *world) PublishChange(_ context.Context, _ client.Object, before any, eventType, reason, message string) {
	event := eventType + " " + reason + ": " + message
	if change := simulation.JSON(w.TB, before) + event; !w.changes[change] {
		w.changes[change], w.events = true, append(w.events, event)
	}
}

// ignored discards all metrics except the time, if that is kept.
type ignored struct{ current *time.Time }

func (ignored) SetStatus(updatev1beta1.UpdateStatusStatus) {}
func (ignored) SetPlans([]metrics.PlanSnapshot)            {}
func (ignored) ObserveStatusWrite(int)                     {}

func (i ignored) SetStatusTime(at time.Time) {
	if i.current != nil {
		*i.current = at
	}
}

// restart ends the process and starts another one, to which no informer has answered yet.
func (w *world) restart() {
	w.TB.Helper()
	w.answers = nil
	w.Restart()
}

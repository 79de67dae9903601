// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller_test

import (
	"os"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/statuscontroller"
)

const home = "managed-upgrade-operator"

// world runs the Update Status Controller on a scripted cluster, in virtual time.
type world struct {
	*simulation.World
	t       testing.TB
	client  client.Client
	script  *openshift.Script
	program simulation.Program
	process *simulation.Process
	plan    simulation.Plan

	requests []string // from the program to the API server
	events   []string
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	definitions, err := simulation.Definitions(os.DirFS("../../deploy/update-status/crds"))
	must(tb, err)
	w := &world{World: simulation.New(simulation.Options{MaxBurst: 500, Definitions: definitions}), t: tb}
	w.client = w.Client("user")
	w.script, err = openshift.NewScript(w.World, "4.4.5", "fast-4.4", "4.4.6")
	must(tb, err)
	w.script.ChangeVersion(func(version *configv1.ClusterVersion) {
		installed := metav1.NewTime(simulation.Start.Add(-24 * time.Hour))
		version.Status.History[0].StartedTime, version.Status.History[0].CompletionTime = installed, &installed
	})
	w.script.AssignNodes("4.4.5")
	must(tb, w.Add(&corev1.ServiceAccount{ObjectMeta: objectMeta(home, "update-status-controller")}))
	w.Observe(func(change simulation.Change) {
		if event, ok := change.New.(*corev1.Event); ok {
			w.events = append(w.events, event.Type+" "+event.Reason+" "+event.InvolvedObject.Kind+"/"+event.InvolvedObject.Name)
		}
	})
	w.program = simulation.Program{Name: "update-status-controller", Controllers: controllers, Plan: w.decide}
	return w
}

func controllers(env simulation.Env) ([]manager.Controller, error) {
	o := statuscontroller.Options{ServiceAccount: "update-status-controller"}
	o.Namespace = home
	return statuscontroller.NewControllers(o, manager.Clients{Client: env.Client, Live: env.Live}, env.Clock, nil)
}

func (w *world) decide(r simulation.Request) simulation.Fault {
	if !r.Cached {
		w.requests = append(w.requests, r.String())
	}
	if w.plan == nil {
		return simulation.Fault{}
	}
	return w.plan(r)
}

func (w *world) start() {
	w.t.Helper()
	process, err := w.Start(&w.program)
	must(w.t, err)
	w.process = process
}

// restart kills the program and starts it again.
func (w *world) restart() {
	w.t.Helper()
	w.process.Kill()
	w.start()
}

func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	must(w.t, w.RunFor(d))
}

// status returns the published status.
func (w *world) status() updatev1beta1.UpdateStatus {
	w.t.Helper()
	var status updatev1beta1.UpdateStatus
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, &status))
	return status
}

// writes returns how many of the recorded requests write the UpdateStatus, and clears the record.
func (w *world) writes() int {
	n := 0
	for _, request := range w.requests {
		if request == "patch UpdateStatus/status /cluster" {
			n++
		}
	}
	w.requests = nil
	return n
}

// update requests an update that starts but makes no progress.
func (w *world) update() {
	w.t.Helper()
	w.script.ControlPlaneDuration = 24 * time.Hour
	version := w.script.ClusterVersion()
	version.Spec.Channel = w.script.Channel
	version.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.6"}
	must(w.t, w.client.Update(w.t.Context(), version))
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
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
	*simulation.Harness
	script *openshift.Script
	events []string
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	definitions := simulation.DefinitionsIn(tb, "../../deploy/update-status/crds")
	w := &world{Harness: simulation.NewHarness(tb, simulation.WorldOptions{MaxBurst: 500, Definitions: definitions})}
	var err error
	w.script, err = openshift.NewScript(w.World, "4.4.5", "fast-4.4", "4.4.6")
	w.Must(err)
	w.script.Backdate(simulation.Start.Add(-24 * time.Hour))
	w.script.AssignNodes("4.4.5")
	w.Must(w.Add(&corev1.ServiceAccount{ObjectMeta: objectMeta(home, "update-status-controller")}))
	w.Observe(func(change simulation.Change) {
		if event, ok := change.New.(*corev1.Event); ok {
			w.events = append(w.events, event.Type+" "+event.Reason+" "+event.InvolvedObject.Kind+"/"+event.InvolvedObject.Name)
		}
	})
	w.Program.Name, w.Program.Controllers = "update-status-controller", controllers
	return w
}

func controllers(env simulation.Env) ([]manager.Controller, error) {
	o := statuscontroller.Options{ServiceAccount: "update-status-controller"}
	o.Namespace = home
	return statuscontroller.NewControllers(o, manager.Clients{Client: env.Client, Live: env.Live}, env.Clock, nil)
}

// status returns the published status.
func (w *world) status() updatev1beta1.UpdateStatus {
	w.TB.Helper()
	return *simulation.Get(w.Harness, client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, &updatev1beta1.UpdateStatus{})
}

// writes returns how many of the recorded requests write the UpdateStatus, and clears the record.
func (w *world) writes() int {
	n := w.Count("patch UpdateStatus/status /cluster")
	w.Requests = nil
	return n
}

// update requests an update that starts but makes no progress.
func (w *world) update() {
	w.TB.Helper()
	w.script.ControlPlaneDuration = 24 * time.Hour
	version := w.script.ClusterVersion()
	version.Spec.Channel = w.script.Channel
	version.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.6"}
	w.Update(version)
}

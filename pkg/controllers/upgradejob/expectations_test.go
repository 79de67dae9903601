// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
)

// observe counts the requests of versions.
func (w *world) observe(change simulation.Change) {
	w.requested.Observe(change.Old, change.New, change.Actor == "operator")
	before, ok := change.Old.(*configv1.ClusterVersion)
	after, okAfter := change.New.(*configv1.ClusterVersion)
	if change.Actor == "operator" && ok && okAfter && after.Spec.DesiredUpdate != nil && before.Spec.DesiredUpdate == nil {
		w.commits++
	}
}

// job returns the UpgradeJob as it is stored.
func (w *world) job() *maintenancev1beta1.UpgradeJob {
	w.TB.Helper()
	return simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: "job"}, &maintenancev1beta1.UpgradeJob{})
}

// record returns the newest attempt; the zero Record if there is none.
func (w *world) record() history.Record {
	w.TB.Helper()
	if records := w.job().Status.History; len(records) > 0 {
		return records[0]
	}
	return history.Record{}
}

// expectReleased checks what holds after every end: nothing is left behind. Every test ends with it.
func (w *world) expectReleased() {
	w.TB.Helper()
	families, err := w.Registry.Gather()
	w.Must(err)
	scene := aftermath.Scene{Objects: w.User, Namespace: namespace, Now: w.Now(), Series: families, Requests: &w.requested}
	if err := scene.Check(context.WithoutCancel(w.TB.Context())); err != nil {
		w.TB.Error(err)
	}
}

// events returns the types and reasons of the Events.
func (w *world) events() []string {
	w.TB.Helper()
	var reasons []string
	for _, event := range w.Events() {
		reasons = append(reasons, event.Type+" "+event.Reason)
	}
	return reasons
}

// describe returns the UpgradeJobs, for messages.
func (w *world) describe() string { return w.Dump(&maintenancev1beta1.UpgradeJobList{}) }

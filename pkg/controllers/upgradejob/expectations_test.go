// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"context"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
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
	var job maintenancev1beta1.UpgradeJob
	if err := w.User.Get(w.TB.Context(), client.ObjectKey{Namespace: namespace, Name: "job"}, &job); err != nil {
		w.TB.Fatal(err)
	}
	return &job
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
	families, err := w.registry.Gather()
	if err != nil {
		w.TB.Fatal(err)
	}
	scene := aftermath.Scene{Objects: w.User, Namespace: namespace, Now: w.Now(), Series: families, Requests: &w.requested}
	if err := scene.Check(context.WithoutCancel(w.TB.Context())); err != nil {
		w.TB.Error(err)
	}
}

// events returns the reasons of the Events about UpgradeJobs in the order of creation.
func (w *world) events() []string {
	w.TB.Helper()
	var list corev1.EventList
	if err := w.User.List(w.TB.Context(), &list); err != nil {
		w.TB.Fatal(err)
	}
	var reasons []string
	for i := range list.Items {
		reasons = append(reasons, list.Items[i].Type+" "+list.Items[i].Reason)
	}
	return reasons
}

// describe returns the steps of the attempt, for messages.
func (w *world) describe() string {
	record := w.record()
	lines := []string{fmt.Sprintf("phase %s %s: %s", record.Phase, record.Reason, record.Message)}
	for _, c := range record.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	for _, c := range w.job().Status.Conditions {
		lines = append(lines, fmt.Sprintf("condition %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(lines, "\n  ")
}

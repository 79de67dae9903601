// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// noAlerts is the reason why a world without Prometheus has no alerts.
const noAlerts = "no source of alerts is configured"

// observe records the writes of the controller, and checks that it reads each source.
func (w *world) observe(change simulation.Change) {
	before, _ := change.Old.(*updatev1beta1.UpdateStatus)
	after, ok := change.New.(*updatev1beta1.UpdateStatus)
	if !ok || before == nil || change.Actor != actor {
		return
	}
	for _, source := range after.Status.Assessment.Sources {
		if checks.FactSource(source.Name).IsOptional() && w.Plan == nil && source.Message != noAlerts {
			w.TB.Errorf("%s, although no request fails, cannot be read: %s", source.Name, source.Message)
		}
	}
	patch, err := client.MergeFrom(before).Data(after)
	w.Must(err)
	w.writes = append(w.writes, write{w.Now(), len(patch), sizeOf(w.TB, after), *after.Status.DeepCopy()})
}

// sizeOf returns the size of an object without its managed fields.
func sizeOf(tb testing.TB, object client.Object) int {
	tb.Helper()
	object, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		tb.Fatalf("%T is no object", object)
	}
	object.SetManagedFields(nil)
	return len(simulation.JSON(tb, object))
}

// object returns the published UpdateStatus.
func (w *world) object() *updatev1beta1.UpdateStatus {
	w.TB.Helper()
	return simulation.Get(w.Harness, client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, &updatev1beta1.UpdateStatus{})
}

// insights returns the first observation times of the published insights, by informer and UID.
func insights(status updatev1beta1.UpdateStatusStatus) map[string]time.Time {
	all := map[string]time.Time{}
	add := func(section updatev1beta1.Section) {
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

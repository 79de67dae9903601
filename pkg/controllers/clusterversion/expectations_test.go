// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/kstatus"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// object returns the ClusterVersion.
func (w *world) object() *maintenancev1beta1.ClusterVersion {
	w.TB.Helper()
	return simulation.Get(w.Harness, client.ObjectKey{Namespace: home, Name: "version"}, &maintenancev1beta1.ClusterVersion{})
}

// condition returns the status and reason of a condition.
func (w *world) condition(name string) string {
	w.TB.Helper()
	c := apimeta.FindStatusCondition(w.object().Status.Conditions, name)
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

// expectHealth checks the kstatus result for the object.
func (w *world) expectHealth(want string) {
	w.TB.Helper()
	if health, err := kstatus.Of(w.object()); err != nil || health.Status != want {
		w.TB.Errorf("%+v, %v, want %s", health, err, want)
	}
}

func (w *world) message(name string) string {
	w.TB.Helper()
	if c := apimeta.FindStatusCondition(w.object().Status.Conditions, name); c != nil {
		return c.Message
	}
	return ""
}

// openShift returns OpenShift's object.
func (w *world) openShift() *configv1.ClusterVersion {
	w.TB.Helper()
	return simulation.Get(w.Harness, clusterstate.VersionKey, &configv1.ClusterVersion{})
}

// events returns the reasons and messages of the Events, in order.
func (w *world) events() []string {
	w.TB.Helper()
	var texts []string
	for _, event := range w.Events() {
		texts = append(texts, event.Reason+": "+event.Message)
	}
	return texts
}

// expectEvents checks the reasons of the Events, and compares their texts with the golden file.
func (w *world) expectEvents(want ...string) {
	w.TB.Helper()
	golden.Events(w.TB, "Events", want, w.events()...)
}

// drifts returns the number of corrections of all fields.
func (w *world) drifts() int { return w.metric("clusterversion_drift_total") }

// metric returns the sum of all series of a metric, or -1 if it has none.
func (w *world) metric(name string) int {
	sum := -1.0
	for _, s := range simulation.Gather(w.TB, w.registry) {
		if s.Name == name {
			sum = max(sum, 0) + s.Value
		}
	}
	return int(sum)
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/kstatus"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// object returns the ClusterVersion.
func (w *world) object() *maintenancev1beta1.ClusterVersion {
	w.TB.Helper()
	var object maintenancev1beta1.ClusterVersion
	w.Must(w.User.Get(w.TB.Context(), client.ObjectKey{Namespace: home, Name: "version"}, &object))
	return &object
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
	var version configv1.ClusterVersion
	w.Must(w.User.Get(w.TB.Context(), clusterstate.VersionKey, &version))
	return &version
}

// events returns the reasons and messages of the Events, in order of time.
func (w *world) events() []string {
	w.TB.Helper()
	var list corev1.EventList
	w.Must(w.User.List(w.TB.Context(), &list))
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var texts []string
	for i := range list.Items {
		texts = append(texts, list.Items[i].Reason+": "+list.Items[i].Message)
	}
	return texts
}

// expectEvents checks the reasons of the Events, and compares their texts with the golden file.
func (w *world) expectEvents(want ...string) {
	w.TB.Helper()
	golden.Events(w.TB, "Events", want, w.events()...)
}

// drifts returns the number of corrections in the metrics, over all fields.
func (w *world) drifts() int {
	w.TB.Helper()
	return w.metric("managed_upgrade_clusterversion_drift_total")
}

// metric returns the sum of all series of a metric, or -1 if it has none.
func (w *world) metric(name string) int {
	w.TB.Helper()
	families, err := w.registry.Gather()
	w.Must(err)
	sum := -1.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		sum = 0
		for _, m := range family.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return int(sum)
}

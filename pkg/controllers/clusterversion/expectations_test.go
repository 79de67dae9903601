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

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// object returns the ClusterVersion.
func (w *world) object() *v1beta1.ClusterVersion {
	w.t.Helper()
	var object v1beta1.ClusterVersion
	w.must(w.user.Get(w.t.Context(), client.ObjectKey{Namespace: home, Name: "version"}, &object))
	return &object
}

// condition returns status and reason of a condition.
func (w *world) condition(name string) string {
	w.t.Helper()
	c := apimeta.FindStatusCondition(w.object().Status.Conditions, name)
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

func (w *world) message(name string) string {
	w.t.Helper()
	if c := apimeta.FindStatusCondition(w.object().Status.Conditions, name); c != nil {
		return c.Message
	}
	return ""
}

// openShift returns OpenShift's object.
func (w *world) openShift() *configv1.ClusterVersion {
	w.t.Helper()
	var version configv1.ClusterVersion
	w.must(w.user.Get(w.t.Context(), clusterstate.VersionKey, &version))
	return &version
}

// events returns the reasons and messages of the Events, sorted by time.
func (w *world) events() []string {
	w.t.Helper()
	var list corev1.EventList
	w.must(w.user.List(w.t.Context(), &list))
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var texts []string
	for i := range list.Items {
		texts = append(texts, list.Items[i].Reason+": "+list.Items[i].Message)
	}
	return texts
}

// drifts returns the value of the counter of corrections of all fields.
func (w *world) drifts() int {
	w.t.Helper()
	return w.metric("managed_upgrade_clusterversion_drift_total")
}

// metric returns the sum of the series of a metric; -1 means that there are none.
func (w *world) metric(name string) int {
	w.t.Helper()
	families, err := w.registry.Gather()
	w.must(err)
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

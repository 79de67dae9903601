// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func (w *world) get() *fleetv1beta1.ManagedClustersUpgrade {
	w.TB.Helper()
	return simulation.Get(w.Harness, stores, &fleetv1beta1.ManagedClustersUpgrade{})
}

func (w *world) condition(name string) metav1.Condition {
	if c := apimeta.FindStatusCondition(w.get().Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// reason returns the reason of the condition Admitting.
func (w *world) reason() string { return w.condition(fleetv1beta1.ConditionAdmitting).Reason }

// counters returns the counters as "total/initialized/partial/complete/failed/pending".
func (w *world) counters() string {
	s := w.get().Status.ClustersSummery
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d/%d/%d/%d/%d", s.Total, s.Initialized, s.PartialUpgrade, s.Complete, s.Failed, s.Pending)
}

func (w *world) describe() string {
	return fmt.Sprintf("%s, %s: %s", w.counters(), w.reason(), w.condition(fleetv1beta1.ConditionAdmitting).Message)
}

// expect compares the counters and the reason of Admitting.
func (w *world) expect(counters, reason string) {
	w.TB.Helper()
	if w.counters() != counters || w.reason() != reason {
		w.TB.Errorf("%s, want %s, %s", w.describe(), counters, reason)
	}
}

// run returns the run of a cluster; nil if there is none.
func (w *world) run(cluster string) *fleetv1alpha1.ClusterUpgradeRun {
	w.TB.Helper()
	for _, run := range w.runs() {
		if run.Namespace == cluster {
			return &run
		}
	}
	return nil
}

func (w *world) runs() []fleetv1alpha1.ClusterUpgradeRun {
	w.TB.Helper()
	return simulation.List(w.Harness, &fleetv1alpha1.ClusterUpgradeRunList{}).Items
}

// inFlight counts the runs that have neither completed nor failed.
func (w *world) inFlight() int {
	n := 0
	for _, run := range w.runs() {
		ended := run.Status.Attempt == run.Spec.Attempt &&
			(run.Status.State == fleetv1alpha1.StateComplete || run.Status.State == fleetv1alpha1.StateFailed)
		if !ended {
			n++
		}
	}
	return n
}

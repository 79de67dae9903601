// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// A cluster that has failed is looked at in the retry, also if it was withdrawn and deselected in between.
func TestRetry_of_a_failed_cluster_that_was_withdrawn_and_deselected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.UpgradeStrategy.StallTimeout = "30s" })
	w.fails["c0000"] = 1
	w.RunFor(hours)
	w.claim("c0000", "version.openshift.io", "4.20.6") // upgraded, and failed afterwards
	w.slow["c0000"] = true
	w.raiseAttempt()
	w.RunFor(4 * time.Minute)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, upgradev1alpha1.HoldAnnotation, "audit")
	})
	run, now := w.run("c0000"), metav1.NewTime(w.Now())
	held := history.StepCondition{Type: fleetv1alpha1.StepPreUpgradeActionAvailable, Status: metav1.ConditionFalse, Reason: engine.ReasonPaused, StartTime: &now}
	run.Status.State, run.Status.Reason = fleetv1alpha1.StateInitialized, engine.ReasonPaused
	run.Status.History = []history.Record{{Attempt: 2, Conditions: []history.StepCondition{held}}, {Attempt: 1}}
	w.UpdateStatus(run)
	w.RunFor(2 * time.Minute)
	run = w.run("c0000")
	if run.Spec.Attempt != 2 || !run.Spec.AdmissionTime.IsZero() {
		t.Fatalf("not withdrawn: %+v", run.Spec)
	}
	run.Status.State, run.Status.Reason = fleetv1alpha1.StateNotStarted, fleetv1alpha1.ReasonAdmissionWithdrawn // as its controller does
	run.Status.History = []history.Record{{Attempt: 1}}
	w.UpdateStatus(run)
	run = w.run("c0000")
	run.Finalizers = nil
	w.Update(run)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") }) // by its release
	w.RunFor(10 * time.Minute)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) {
		c.Labels["selected"] = "yes"
		delete(c.Annotations, upgradev1alpha1.HoldAnnotation)
	})
	w.raiseAttempt() // it was at rest
	w.RunFor(5 * time.Minute)
	if run := w.run("c0000"); run == nil || run.Spec.Outcome != nil || run.Spec.Timeouts.Soak == "" {
		t.Errorf("no look and no soak: %+v", run)
	}
}

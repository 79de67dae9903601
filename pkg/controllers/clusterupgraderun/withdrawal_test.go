// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// A request that the cluster refuses is withdrawn although the hub was down for longer than a withdrawal may take.
func TestWithdraws_a_refused_request_after_the_hub_was_down(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refuse(w)
	w.Program.OnCrash = nil
	crashed := false
	w.Writes = func(r simulation.Request) simulation.Fault {
		if crashed || r.Kind != "ManifestWork" || w.run() == nil || w.run().Record().Step(fleetv1alpha1.StepTargetWithdrawn).StartTime == nil {
			return simulation.Fault{}
		}
		crashed = true
		return simulation.Fault{Outcome: simulation.CrashBefore}
	}
	w.admit()
	w.RunFor(15 * time.Minute)
	if !crashed || w.Process.Alive() {
		t.Fatal("the hub has not crashed;", w.describe())
	}
	w.RunFor(time.Hour)
	w.Begin()
	w.settle(4 * time.Hour)
	w.RunFor(time.Hour)
	if desired := w.spoke.Desired(); desired != "" {
		t.Errorf("%s is still requested; %s", desired, w.describe())
	}
	w.spoke.SetCondition(w.spoke.Version(), "ReleaseAccepted", "True", "Loaded", "", w.Now()) // the signature arrives
	w.refuses = false
	if w.spoke.Desired() != "" {
		w.install(w.spoke.Desired())
	}
	w.RunFor(2 * time.Hour)
	if history := w.spoke.History(); len(history) != 1 {
		t.Errorf("the cluster is upgraded after its run has failed: %v; %s", history, w.describe())
	}
}

// A request that the cluster refuses is withdrawn although works cannot be written for longer than a withdrawal may take.
func TestWithdraws_a_refused_request_after_an_outage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refuse(w)
	var since time.Time
	w.Writes = func(r simulation.Request) simulation.Fault {
		if r.Kind != "ManifestWork" || w.run() == nil || w.run().Record().Step(fleetv1alpha1.StepTargetWithdrawn).StartTime == nil {
			return simulation.Fault{}
		}
		if since.IsZero() {
			since = w.Now()
		}
		if w.Now().Sub(since) < 9*time.Minute+55*time.Second {
			return simulation.Fault{Outcome: simulation.Refuse}
		}
		return simulation.Fault{}
	}
	w.admit()
	w.settle(4 * time.Hour)
	w.RunFor(time.Hour)
	if desired := w.spoke.Desired(); desired != "" {
		t.Errorf("%s is still requested; %s", desired, w.describe())
	}
}

// A request that the cluster refuses is withdrawn although a person deletes the work that withdraws it before the agent has
// applied it: the request stays on the cluster.
func TestWithdraws_a_refused_request_whose_work_is_deleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refuse(w)
	w.admit()
	w.Await(time.Hour, func() bool { return w.form() == "1/Withdraw" })
	w.Delete(simulation.Get(w.Harness, client.ObjectKey{Namespace: cluster, Name: upgradeWork}, &workv1.ManifestWork{}))
	w.settle(4 * time.Hour)
	w.RunFor(time.Hour)
	w.expect(fleetv1alpha1.StateFailed, "TargetRefused")
	if desired := w.spoke.Desired(); desired != "" {
		t.Errorf("%s is still requested; %s", desired, w.describe())
	}
}

// Open Cluster Management deletes the works of a cluster that leaves the hub. No other work holds that up.
func TestWithdraws_nothing_from_a_cluster_that_leaves(t *testing.T) {
	t.Parallel()
	for name, isTaken := range map[string]bool{"its agent still has the work": true, "its work is gone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			refuse(w)
			w.admit()
			w.Await(time.Hour, func() bool { return w.run().Record().Step(fleetv1alpha1.StepUpgradeDelivered).CompleteTime != nil })
			w.offline = true
			w.Delete(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
			work := simulation.Get(w.Harness, client.ObjectKey{Namespace: cluster, Name: upgradeWork}, &workv1.ManifestWork{})
			if !isTaken {
				work.Finalizers = nil
				w.Update(work)
			}
			w.Delete(work)
			w.RunFor(2 * time.Minute)
			w.expect(fleetv1alpha1.StateFailed, "ClusterDetached")
			w.expectReleased()
			if left := simulation.Find(w.Harness, client.ObjectKeyFromObject(work), &workv1.ManifestWork{}); left != nil && left.UID != work.UID {
				t.Error("another work is delivered")
			}
		})
	}
}

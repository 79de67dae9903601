// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// disconnectOnceActing disconnects each of the clusters a minute after its pre-action has begun on it.
func (f *fleet) disconnectOnceActing(during time.Duration, names ...string) {
	f.TB.Helper()
	for end := f.Now().Add(during); f.Now().Before(end); f.RunFor(time.Minute) {
		for _, name := range names {
			if !f.silent[name] && slices.Contains(f.history, name+" backup") {
				f.silent[name] = true
				f.setAvailable(name, metav1.ConditionUnknown)
			}
		}
	}
}

// A pre-action that bricks each cluster that applies it must use up the budget, as a release does.
func TestSafety_pre_action_that_disconnects_clusters_exceeds_the_budget(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 8, actions, concurrency(2), maxFailures(1))
	f.disconnectOnceActing(12*time.Hour, "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8")
	f.expectStop(fleetv1beta1.ReasonMaxFailuresExceeded, "c1", "c2")
}

// A canary whose pre-action has disconnected it, and that a Placement then evicts, has begun.
func TestSafety_evicted_canary_whose_pre_action_has_disconnected_it(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 6, canaries("c1", "c2"), actions, concurrency(2))
	f.disconnectOnceActing(10*time.Minute, "c2")
	f.selectClusters("c1", "c3", "c4", "c5", "c6")
	f.RunFor(12 * time.Hour)
	f.expectStop(fleetv1beta1.ReasonCanaryFailed, "c1", "c2")
}

// A hub that starts looks whether the pre-action was applied before it withdraws an admission.
func TestSafety_evicted_canary_whose_pre_action_has_disconnected_it_while_no_hub_ran(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 6, canaries("c1", "c2"), actions, concurrency(2))
	f.silent["c2"] = true
	f.RunFor(5 * time.Minute)
	f.Process.Kill()
	f.silent["c2"] = false
	f.wake("c2")
	f.RunFor(time.Minute)
	f.silent["c2"] = true
	f.setAvailable("c2", metav1.ConditionUnknown)
	f.RunFor(2 * time.Hour)
	f.selectClusters("c1", "c3", "c4", "c5", "c6")
	f.start(release{image: hubImage})
	f.RunFor(12 * time.Hour)
	f.expectStop(fleetv1beta1.ReasonCanaryFailed, "c1", "c2")
}

// So must a pre-action that begins an upgrade to another release on each cluster.
func TestSafety_pre_action_that_upgrades_clusters_exceeds_the_budget(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 8, actions, concurrency(2), maxFailures(1))
	begun := map[string]bool{}
	for end := f.Now().Add(12 * time.Hour); f.Now().Before(end); f.RunFor(time.Minute) {
		for name, cluster := range f.spokes {
			if !begun[name] && slices.Contains(f.history, name+" backup") {
				begun[name] = true
				cluster.Accept("4.20.6-rc.1", f.Now())
				f.wake(name)
			}
		}
	}
	f.expectStop(fleetv1beta1.ReasonMaxFailuresExceeded, "c1", "c2")
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"testing"
	"time"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// hubDown stops the hub for longer than any step may take.
func (f *fleet) hubDown() {
	f.TB.Helper()
	f.Process.Kill()
	f.RunFor(4 * time.Hour)
	f.start(release{image: hubImage})
}

// A hub that was down says nothing about a healthy canary, whenever it comes back.
func TestSafety_hub_that_was_down_fails_no_canary(t *testing.T) {
	t.Parallel()
	for what, at := range map[string]time.Duration{"upgrades": 10 * time.Minute, "soaks": 50 * time.Minute} {
		t.Run("that "+what, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 3, canaries("c1"), concurrency(2))
			f.RunFor(at)
			f.hubDown()
			f.RunFor(4 * time.Hour)
			f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete", "c3": "Complete"})
		})
	}
}

// A hub that comes back to a busy API server counts no canary as failed before its run has looked at the cluster.
func TestSafety_hub_that_was_down_counts_no_canary_before_a_look(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canaries("c1"), concurrency(2))
	f.RunFor(10 * time.Minute)
	back := f.Now().Add(4 * time.Hour)
	f.Writes = func(r simulation.Request) simulation.Fault {
		if since := r.Time.Sub(back); since >= 0 && since < 2*time.Second && (r.Kind == "ClusterUpgradeRun" || r.Kind == "Lease") {
			return simulation.Fault{Outcome: simulation.Refuse}
		}
		return simulation.Fault{}
	}
	f.hubDown()
	f.RunFor(4 * time.Hour)
	f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete", "c3": "Complete"})
}

// hubLost stops the hub with its API server. The agents report again a minute after it is back.
func (f *fleet) hubLost() {
	f.TB.Helper()
	f.offline = true
	f.hubDown()
	f.RunFor(time.Minute)
	f.offline = false
	for name := range f.spokes {
		f.wake(name)
	}
}

// What the agents reported before the API server of the hub was lost says nothing about the time since.
func TestSafety_reports_from_before_the_hub_was_lost_fail_no_cluster(t *testing.T) {
	t.Parallel()
	failing := func(status string) func(*fleet) {
		return func(f *fleet) {
			c1 := f.spokes["c1"]
			c1.SetCondition(c1.Version(), "Failing", status, "Test", "etcd is degraded", f.Now())
			f.wake("c1")
		}
	}
	for what, tc := range map[string]struct {
		at             time.Duration
		before, during func(*fleet)
	}{
		"runs its pre-action":  {at: time.Minute},
		"applies its request":  {at: 7 * time.Minute},
		"upgrades":             {at: 15 * time.Minute},
		"is failing":           {at: 15 * time.Minute, before: failing("True"), during: failing("False")},
		"runs its post-action": {at: 49 * time.Minute},
		"soaks":                {at: 60 * time.Minute},
	} {
		t.Run("that "+what, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 3, canaries("c1"), concurrency(2), actions)
			f.RunFor(tc.at)
			if tc.before != nil {
				tc.before(f)
				f.RunFor(time.Minute)
				f.After(time.Hour, func() { tc.during(f) })
			}
			f.hubLost()
			f.RunFor(4 * time.Hour)
			f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete", "c3": "Complete"})
			if stop := f.upgrade().Status.Stop; stop != nil {
				t.Errorf("stopped: %+v", stop)
			}
		})
	}
}

// A cluster that is failing when the hub is back fails once its agent could have reported anything else.
func TestSafety_failure_is_found_after_the_hub_was_down(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canaries("c1"), concurrency(2))
	f.stuck["c1"] = true
	f.RunFor(10 * time.Minute)
	f.hubDown()
	f.RunFor(3 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonCanaryFailed, "c1")
	f.expectStates(map[string]string{"c1": "ClusterUpgradeTimedOut"})
}

// A canary that is silent when the hub is back ends its soak in bounded time: after minSuccessTime and stallTimeout.
func TestSafety_silent_canary_ends_its_soak_after_the_hub_was_down(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canaries("c1"), concurrency(2))
	f.RunFor(50 * time.Minute) // it soaks
	f.silent["c1"] = true      // and stays available
	f.hubDown()
	f.RunFor(74 * time.Minute)
	f.expectStates(map[string]string{"c1": "PartialUpgrade"})
	f.RunFor(2 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonCanaryFailed, "c1")
	f.expectStates(map[string]string{"c1": "SoakTimedOut"})
}

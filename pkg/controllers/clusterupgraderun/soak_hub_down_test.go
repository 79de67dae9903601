// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"testing"
	"time"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
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

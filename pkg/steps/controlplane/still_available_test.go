// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
)

func TestFailUnlessAvailable(t *testing.T) {
	t.Parallel()
	retrieved := condition("RetrievedUpdates", "True", "", "")
	for name, tc := range map[string]struct {
		cached, live *configv1.ClusterVersion // if live is nil, it is the same as cached
		pinned       controlplane.Pinned
		passed       bool
		failed       bool
		reason       string
	}{
		"offered":                        {cached: at(retrieved), passed: true, reason: "Done"},
		"not offered":                    {cached: at(retrieved, noUpdates), failed: true, reason: "UpgradeWithdrawn"},
		"not offered by the cache only":  {cached: at(retrieved, noUpdates), live: at(retrieved), passed: true, reason: "Done"},
		"offered with risks":             {cached: at(retrieved, updateWithRisks("SlowBoot")), failed: true, reason: "UpgradeWithdrawn"},
		"offered with unknown risks":     {cached: at(retrieved, updateWithRisks("SlowBoot"), risksUnknown), reason: "RisksUnknown"},
		"updates not retrieved":          {cached: at(), reason: "UpdatesNotRetrieved"},
		"updates not retrieved any more": {cached: at(condition("RetrievedUpdates", "False", "RemoteFailed", "")), reason: "UpdatesNotRetrieved"},
		"other image": {
			cached: at(retrieved), pinned: controlplane.Pinned{Target: clusterstate.Target{Version: "4.4.6", Image: other446}}, failed: true, reason: "UpgradeWithdrawn",
		},
		"availability not checked":           {cached: at(noUpdates), pinned: controlplane.Pinned{CheckAvailability: true}, passed: true, reason: "Done"},
		"installed":                          {cached: at(retrieved, noUpdates, installed("4.4.6")), failed: true, reason: "AlreadyAtVersion"},
		"being installed by another client":  {cached: at(retrieved, noUpdates, updating("4.4.6")), reason: "AnotherUpdateInProgress"},
		"being installed by this attempt":    {cached: at(retrieved, noUpdates, updating("4.4.6")), pinned: controlplane.Pinned{Requested: true}, passed: true, reason: "Done"},
		"another release is being installed": {cached: at(retrieved, noUpdates, updating("4.4.7")), reason: "AnotherUpdateInProgress"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.live == nil {
				tc.live = tc.cached
			}
			pinned := tc.pinned
			pinned.CheckAvailability = !pinned.CheckAvailability // the zero case checks it
			if pinned.Target.Version == "" {
				pinned.Target = clusterstate.Target{Version: "4.4.6"}
			}
			cached, live := simulation.NewFakeClient(t, tc.cached), simulation.NewFakeClient(t, tc.live)
			got, err := controlplane.FailUnlessAvailable(cached, live, pinned)(t.Context(), engine.Run{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Passed() != tc.passed || got.Failed() != tc.failed || got.Reason() != tc.reason {
				t.Errorf("passed %t, failed %t, %s: %s; want passed %t, failed %t, %s",
					got.Passed(), got.Failed(), got.Reason(), got.Message(), tc.passed, tc.failed, tc.reason)
			}
			decided, err := pinned.Precondition(clusterstate.VersionOf(tc.cached), pinned.Target)
			if err != nil || decided.Failed() {
				t.Errorf("the precondition on the patched object fails the upgrade: %s, %v", decided.Message(), err)
			}
		})
	}
}

func TestUpgradedAndAvailable(t *testing.T) {
	t.Parallel()
	available := condition("Available", "True", "", "")
	for name, tc := range map[string]struct {
		version *configv1.ClusterVersion
		want    bool
	}{
		"installed and available": {at(available, installed("4.4.6")), true},
		"installed only":          {at(installed("4.4.6")), false},
		"unavailable":             {at(condition("Available", "False", "Down", ""), installed("4.4.6")), false},
		"being installed":         {at(available, updating("4.4.6")), false},
		"superseded":              {at(available, installed("4.4.6"), updating("4.4.7")), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := simulation.NewFakeClient(t, tc.version)
			got, err := controlplane.IsUpgradedAndAvailable(c, c, clusterstate.Target{Version: "4.4.6"})(t.Context())
			if err != nil || got != tc.want {
				t.Errorf("got %t, %v, want %t", got, err, tc.want)
			}
			result, err := controlplane.WaitUntilAvailable(c)(t.Context(), engine.Run{})
			if wantPassed := tc.version.Status.Conditions != nil && tc.version.Status.Conditions[0].Status == "True"; err != nil || result.Passed() != wantPassed {
				t.Errorf("WaitUntilAvailable: %s, %v", result.Reason(), err)
			}
		})
	}
}

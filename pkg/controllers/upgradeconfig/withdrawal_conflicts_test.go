// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// A conflict of the withdrawal itself is no attempt: the cluster version operator writes the ClusterVersion all the time.
func TestDeletionRepeatsAWithdrawalThatConflicts(t *testing.T) {
	t.Parallel()
	for _, write := range []string{"patch ClusterVersion", "patch UpgradeConfig", "patch Lease"} {
		t.Run(write, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 6 * time.Hour
			w.runUntilRequested()
			w.Process.Kill()
			w.remove(upgrade)
			w.RunFor(3 * time.Hour)
			w.Writes = onlyFirst(write, simulation.Fault{Outcome: simulation.Conflict})
			w.Begin()
			w.runUntil(func() bool { return !w.exists(upgrade) })
			spec := w.cluster.ClusterVersion().Spec
			if spec.DesiredUpdate != nil || spec.Channel != "stable-4.4" {
				t.Errorf("desiredUpdate is %+v, the channel is %q", spec.DesiredUpdate, spec.Channel)
			}
			if cancelled, abandoned := w.events("UpgradeCancelled"), w.events("CancellationAbandoned"); cancelled != 1 || abandoned != 0 {
				t.Errorf("%d Events UpgradeCancelled, %d CancellationAbandoned", cancelled, abandoned)
			}
		})
	}
}

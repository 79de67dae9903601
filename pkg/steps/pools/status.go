// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// The states of a pool in the status of an UpgradeJob.
const (
	StatePaused          = "Paused"          // until its release window
	StateReleasing       = "Releasing"       // its hooks run, or it is about to be unpaused
	StateUpdating        = "Updating"        // its nodes are being updated
	StateDegraded        = "Degraded"        // the machine config operator cannot update it
	StateCompleted       = "Completed"       // nothing is to be updated
	StatePausedByUser    = "PausedByUser"    // a user paused it
	StateLeftPaused      = "LeftPaused"      // it could not be unpaused in its release window
	StatePausedOnFailure = "PausedOnFailure" // it was paused because the upgrade or a hook failed
)

// maxStatus is the number of pools that the status of an UpgradeJob lists.
const maxStatus = 64

// Status returns the state of the pools that the attempt delays or has paused, sorted by name. It is
// meant for the time from the step of Pause on: before, a pool counts as completed.
func (d Delayed) Status(ctx context.Context, now time.Time) ([]v1beta1.MachineConfigPoolStatus, error) {
	s, err := d.survey(ctx, d.Client)
	if err != nil {
		return nil, err
	}
	var list []v1beta1.MachineConfigPoolStatus
	for _, pool := range s.pools {
		if len(list) == maxStatus {
			break
		}
		release := checks.ReleaseOf(pool.Pool, pool.upToDate, now)
		status := v1beta1.MachineConfigPoolStatus{Name: pool.Name, State: pool.state(release)}
		if pool.Delayed() {
			status.ReleaseAfter = &metav1.Time{Time: pool.Mark.ReleaseAfter}
		}
		list = append(list, status)
	}
	return list, nil
}

func (p delayedPool) state(release checks.Release) string {
	switch release.State {
	case checks.ReleaseLater:
		return StatePaused
	case checks.ReleaseNow:
		return StateReleasing
	case checks.ReleaseMissed:
		return StateLeftPaused
	case checks.ReleaseKept:
		return StatePausedOnFailure
	case checks.ReleaseNotOurs:
	}
	switch {
	case p.upToDate:
		return StateCompleted
	case p.Paused:
		return StatePausedByUser
	case p.Degraded.IsTrue():
		return StateDegraded
	}
	return StateUpdating
}

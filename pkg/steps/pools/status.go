// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// States of a pool in the status of an UpgradeJob.
const (
	StatePaused          = "Paused"          // until its release window
	StateReleasing       = "Releasing"       // its hooks run, or it is about to be unpaused
	StateUpdating        = "Updating"        // its nodes are being updated
	StateDegraded        = "Degraded"        // the machine config operator cannot update it
	StateCompleted       = "Completed"       // there is nothing to update
	StatePausedByUser    = "PausedByUser"    // a user paused it
	StateLeftPaused      = "LeftPaused"      // it could not be unpaused in its release window
	StatePausedOnFailure = "PausedOnFailure" // it was paused because the upgrade or a hook failed
)

// maxStatus limits the pools in the status of an UpgradeJob.
const maxStatus = 64

// KnownPools returns the names of the pools that an attempt delays, according to the status of its
// UpgradeJob. It omits pools that a mark keeps paused until a user unpauses them: the attempt does
// not release them, and the mark may belong to another UpgradeJob.
func KnownPools(status []maintenancev1beta1.MachineConfigPoolStatus) []string {
	var known []string
	for i := range status {
		if status[i].State != StatePausedOnFailure {
			known = append(known, status[i].Name)
		}
	}
	return known
}

// Status returns the state of the pools that the attempt delays or has paused, sorted by name. It
// is meaningful from the step of Pause on. Before that, a pool counts as completed.
func (d Delayed) Status(ctx context.Context, now time.Time) ([]maintenancev1beta1.MachineConfigPoolStatus, error) {
	list, _, err := d.status(ctx, now)
	return list, err
}

// status is like Status, but also returns when the next release window begins or ends, if that
// depends on the time alone; zero if there is none.
func (d Delayed) status(ctx context.Context, now time.Time) (list []maintenancev1beta1.MachineConfigPoolStatus, next time.Time, err error) {
	s, err := d.survey(ctx, d.Client)
	if err != nil {
		return nil, time.Time{}, err
	}
	for _, pool := range s.pools {
		if len(list) == maxStatus {
			break
		}
		release := clusterstate.ReleaseOf(pool.Pool, pool.upToDate, now)
		if release.At.After(now) && (next.IsZero() || release.At.Before(next)) {
			next = release.At
		}
		status := maintenancev1beta1.MachineConfigPoolStatus{Name: pool.Name, State: pool.state(release)}
		if pool.Delayed() {
			status.ReleaseAfter = &metav1.Time{Time: pool.Mark.ReleaseAfter}
		}
		list = append(list, status)
	}
	return list, next, nil
}

// StatusAfterEnd returns the state of the pools of an ended attempt, given the previously published
// state. It shows pools that the UpgradeJob still has paused in their current state, omits pools
// that the UpgradeJob no longer has paused, and shows the others as they were at the end. It also
// returns when the state may next change without a change of a pool; zero if it does not.
func (d Delayed) StatusAfterEnd(
	ctx context.Context, before []maintenancev1beta1.MachineConfigPoolStatus, now time.Time,
) (list []maintenancev1beta1.MachineConfigPoolStatus, next time.Time, err error) {
	d.over = true
	current, next, err := d.status(ctx, now)
	if err != nil {
		return nil, time.Time{}, err
	}
	all, err := clusterstate.ListPools(ctx, d.Client)
	if err != nil {
		return nil, time.Time{}, err
	}
	paused := map[string]bool{}
	for _, pool := range all {
		paused[pool.Name] = pool.PausedByMark() && pool.Mark.OwnerUID == string(d.Owner.UID)
	}
	list = slices.DeleteFunc(current, func(s maintenancev1beta1.MachineConfigPoolStatus) bool { return !paused[s.Name] })
	for _, status := range before {
		if !paused[status.Name] && !isPaused(status.State) && len(list) < maxStatus {
			list = append(list, status)
		}
	}
	slices.SortFunc(list, func(a, b maintenancev1beta1.MachineConfigPoolStatus) int { return cmp.Compare(a.Name, b.Name) })
	return list, next, nil
}

// isPaused reports whether a pool in this state was paused by the operator.
func isPaused(state string) bool {
	return slices.Contains([]string{StatePaused, StateReleasing, StateLeftPaused, StatePausedOnFailure}, state)
}

func (p delayedPool) state(release clusterstate.PoolRelease) string {
	switch release.State {
	case clusterstate.ReleaseLater:
		return StatePaused
	case clusterstate.ReleaseNow:
		return StateReleasing
	case clusterstate.ReleaseMissed:
		return StateLeftPaused
	case clusterstate.ReleaseKept:
		return StatePausedOnFailure
	case clusterstate.ReleaseNotOurs:
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

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"cmp"
	"slices"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// The limits beyond which plans are pruned.
const (
	// MaxPlans is the number of plans that are kept.
	MaxPlans = 20
	// MaxNotOffered is how long a plan is kept whose release is not offered.
	MaxNotOffered = 7 * 24 * time.Hour
	// MaxUnrequested is how long a plan is kept after its analysis was last requested.
	MaxUnrequested = 30 * 24 * time.Hour
)

// PruneReason is why a plan is pruned; empty if it is kept.
type PruneReason string

// The reasons.
const (
	PruneInstalled    PruneReason = "Installed"
	PruneNotOffered   PruneReason = "NotOffered"
	PruneNotRequested PruneReason = "NotRequested"
	PruneTooMany      PruneReason = "TooManyPlans"
)

// Age decides whether a plan is pruned.
type Age struct {
	Now time.Time
	// Installed reports that the release of the plan is installed completely.
	Installed bool
	// UnderWay reports that the update of the plan is in progress or requested, or being analyzed.
	UnderWay bool
	// NotOfferedSince is since when the release is not offered; zero if it is, or this is unknown.
	NotOfferedSince time.Time
}

// Prune returns whether a plan is pruned now, and otherwise when it will be if nothing changes; zero
// means never.
func Prune(plan *updatev1beta1.UpdatePlan, a Age) (PruneReason, time.Time) {
	if _, keep := plan.Annotations[updatev1beta1.KeepAnnotation]; keep || a.UnderWay {
		return "", time.Time{}
	}
	if a.Installed {
		return PruneInstalled, time.Time{}
	}
	next := LastRequested(plan).Add(MaxUnrequested)
	if !a.Now.Before(next) {
		return PruneNotRequested, time.Time{}
	}
	if a.NotOfferedSince.IsZero() {
		return "", next
	}
	gone := a.NotOfferedSince.Add(MaxNotOffered)
	if !a.Now.Before(gone) {
		return PruneNotOffered, time.Time{}
	}
	if gone.Before(next) {
		next = gone
	}
	return "", next
}

// LastRequested returns when the analysis of a plan was last requested.
func LastRequested(plan *updatev1beta1.UpdatePlan) time.Time {
	if plan.Status.LastRequestedTime == nil {
		return plan.CreationTimestamp.Time
	}
	return plan.Status.LastRequestedTime.Time
}

// Surplus returns the names of the plans beyond the number that is kept: those that were requested the
// longest time ago. Plans that are annotated with keep, or under way, are neither pruned nor counted.
func Surplus(plans []updatev1beta1.UpdatePlan, underWay func(*updatev1beta1.UpdatePlan) bool) []string {
	var candidates []*updatev1beta1.UpdatePlan
	for i := range plans {
		if _, keep := plans[i].Annotations[updatev1beta1.KeepAnnotation]; !keep && plans[i].DeletionTimestamp == nil && !underWay(&plans[i]) {
			candidates = append(candidates, &plans[i])
		}
	}
	slices.SortFunc(candidates, func(a, b *updatev1beta1.UpdatePlan) int {
		return cmp.Or(LastRequested(b).Compare(LastRequested(a)), cmp.Compare(a.Name, b.Name))
	})
	var names []string
	for _, plan := range candidates[min(len(candidates), MaxPlans):] {
		names = append(names, plan.Name)
	}
	return names
}

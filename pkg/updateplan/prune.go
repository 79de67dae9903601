// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"cmp"
	"slices"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// Limits for pruning plans.
const (
	// MaxPlans is the number of plans to keep.
	MaxPlans = 20
	// MaxNotOffered is how long a plan is kept after its release is no longer offered.
	MaxNotOffered = 7 * 24 * time.Hour
	// MaxUnrequested is how long a plan is kept after the latest request for an analysis.
	MaxUnrequested = 30 * 24 * time.Hour
)

// PruneReason is the reason why a plan is pruned, or empty if it is kept.
type PruneReason string

// The reasons.
const (
	PruneInstalled    PruneReason = "Installed"
	PruneNotOffered   PruneReason = "NotOffered"
	PruneNotRequested PruneReason = "NotRequested"
	PruneTooMany      PruneReason = "TooManyPlans"
)

// Age holds the input for the decision whether to prune a plan.
type Age struct {
	Now time.Time
	// Installed is set if the plan's release is completely installed.
	Installed bool
	// UnderWay is set if the plan's update is requested or in progress, or if the plan is being analyzed.
	UnderWay bool
	// NotOfferedSince is when the release was withdrawn, or zero if it is offered or this is unknown.
	NotOfferedSince time.Time
}

// Prune decides whether to prune a plan now. If not, it returns when the plan will be pruned if nothing
// changes, or the zero time for never.
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

// LastRequested returns the time of the latest request for an analysis.
func LastRequested(plan *updatev1beta1.UpdatePlan) time.Time {
	if plan.Status.LastRequestedTime == nil {
		return plan.CreationTimestamp.Time
	}
	return plan.Status.LastRequestedTime.Time
}

// Surplus returns the names of the plans to remove to get down to MaxPlans: the ones whose latest request is
// oldest. Plans that are annotated with keep or under way are neither pruned nor counted.
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

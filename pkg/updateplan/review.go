// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Change is how an insight differs from what a person reviewed.
type Change struct {
	Reported

	// Before is the level that was reviewed; empty if the insight is new.
	Before updatev1beta1.Level
}

// String returns the insight and how it has changed.
func (c Change) String() string {
	name, level := text.Excerpt(c.Insight.UID), text.Excerpt(string(c.Insight.Impact.Level))
	if c.Before == "" {
		return fmt.Sprintf("%s is new (%s)", name, level)
	}
	return fmt.Sprintf("%s is of level %s instead of %s", name, level, text.Excerpt(string(c.Before)))
}

// Reviewed returns the value of the annotation that records which insights of a plan a person has reviewed:
// those that need acceptance, with their levels.
func Reviewed(plan *updatev1beta1.UpdatePlan) string {
	levels := map[string]string{}
	for _, of := range Insights(&plan.Status) {
		if NeedsAcceptance(of.Insight.Impact.Level) {
			levels[of.Insight.UUID] = string(of.Insight.Impact.Level)
		}
	}
	var entries []string
	for _, uuid := range slices.Sorted(maps.Keys(levels)) {
		entries = append(entries, uuid+"="+levels[uuid])
	}
	return strings.Join(entries, ",")
}

// ChangedSinceReview returns the insights of a plan that are new or more severe than when a person reviewed
// the plan, the most severe first. A plan without a review has no changes, and a resolved insight is not a
// change.
func ChangedSinceReview(plan *updatev1beta1.UpdatePlan) []Change {
	value, reviewed := plan.Annotations[updatev1beta1.ReviewedAnnotation]
	if !reviewed {
		return nil
	}
	levels := map[string]updatev1beta1.Level{}
	for entry := range strings.SplitSeq(value, ",") {
		if uuid, level, found := strings.Cut(entry, "="); found {
			levels[uuid] = updatev1beta1.Level(level)
		}
	}
	var changes []Change
	for _, of := range Insights(&plan.Status) {
		level := of.Insight.Impact.Level
		before, known := levels[of.Insight.UUID]
		if NeedsAcceptance(level) && (!known || level.Rank() > before.Rank()) {
			changes = append(changes, Change{of, before})
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		return b.Insight.Impact.Level.Rank() - a.Insight.Impact.Level.Rank()
	})
	return changes
}

// worsenedSinceReview describes the insights of a plan that are more severe than when a person reviewed the plan. New
// insights need an acceptance anyway.
func worsenedSinceReview(plan *updatev1beta1.UpdatePlan) []string {
	var worse []string
	for _, change := range ChangedSinceReview(plan) {
		if change.Before != "" {
			worse = append(worse, change.String())
		}
	}
	return worse
}

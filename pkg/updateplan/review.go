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

// Change describes how an insight differs from the reviewed one.
type Change struct {
	Reported

	// Before is the reviewed level, or empty if the insight is new.
	Before updatev1beta1.Level
}

// String describes the insight and its change.
func (c Change) String() string {
	name, level := text.Excerpt(c.Insight.UID), text.Excerpt(string(c.Insight.Impact.Level))
	if c.Before == "" {
		return fmt.Sprintf("%s is new (%s)", name, level)
	}
	return fmt.Sprintf("%s is of level %s instead of %s", name, level, text.Excerpt(string(c.Before)))
}

// Reviewed returns the value of the annotation that records a review: the insights of a plan that need
// acceptance, with their levels.
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

// ChangedSinceReview returns the insights that are new or more severe than at the time of the review, most
// severe first. It returns none for a plan that was never reviewed. Resolved insights do not count as
// changes.
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

// worsenedSinceReview describes the insights that have become more severe since the review. New insights need
// acceptance anyway.
func worsenedSinceReview(plan *updatev1beta1.UpdatePlan) []string {
	var worse []string
	for _, change := range ChangedSinceReview(plan) {
		if change.Before != "" {
			worse = append(worse, change.String())
		}
	}
	return worse
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// maxEvents limits the Events for one change.
const maxEvents = 10

// published is an Event.
type published struct{ eventType, reason, message string }

// publish publishes the Events for a write before the write itself. If the process is killed in
// between, both are repeated.
func (r *Reconciler) publish(ctx context.Context, before *updatev1beta1.UpdateStatus, after updatev1beta1.UpdateStatusStatus) {
	for _, e := range changes(before.Status, after) {
		r.Events.PublishChange(ctx, before, before.Status, e.eventType, e.reason, e.message)
	}
}

// changes returns the Events for the difference between two statuses: a new state of the
// assessment, and insights of level error or above that are new or resolved.
func changes(before, after updatev1beta1.UpdateStatusStatus) []published {
	var events []published
	if e, changed := stateChanged(before.Assessment, after.Assessment); changed {
		events = append(events, e)
	}
	old := severe(before)
	for _, i := range severe(after) {
		if !contains(old, i.uuid) {
			events = append(events, published{corev1.EventTypeWarning, "InsightReported", fmt.Sprintf("%s (%s of %s)", i.summary, i.level, i.informer)})
		}
	}
	for _, resolved := range after.RecentlyResolved {
		if contains(old, resolved.UUID) && !contains(severe(after), resolved.UUID) {
			events = append(events, published{corev1.EventTypeNormal, "InsightResolved", resolvedMessage(resolved)})
		}
	}
	return events[:min(len(events), maxEvents)]
}

func resolvedMessage(resolved updatev1beta1.ResolvedInsight) string {
	if resolved.Reason != updatev1beta1.ResolutionResolved {
		return fmt.Sprintf("%s: no longer reported, because informer %s was disabled or deleted", resolved.Summary, resolved.UpdateInformer)
	}
	return fmt.Sprintf("%s: resolved (informer %s)", resolved.Summary, resolved.UpdateInformer)
}

// stateChanged returns the Event for a change of the state.
func stateChanged(before, after *updatev1beta1.Assessment) (published, bool) {
	if after == nil || before != nil && before.State == after.State {
		return published{}, false
	}
	if before == nil && after.State == updatev1beta1.StateIdle {
		return published{}, false
	}
	eventType := corev1.EventTypeNormal
	if after.State == updatev1beta1.StateStuck || after.State == updatev1beta1.StateUnknown {
		eventType = corev1.EventTypeWarning
	}
	return published{eventType, "Update" + string(after.State), stateMessage(after)}, true
}

// stateMessage returns the summary of an assessment, or a description of its state if it has no
// summary.
func stateMessage(a *updatev1beta1.Assessment) string {
	update := "The update to " + a.Release
	if a.FromRelease != "" {
		update = "The update from " + a.FromRelease + " to " + a.Release
	}
	switch {
	case a.Summary != "":
		return a.Summary
	case a.State == updatev1beta1.StateIdle:
		return "No update is in progress."
	case a.State == updatev1beta1.StateProgressing:
		return update + " is progressing."
	}
	return update + " is " + strings.ToLower(string(a.State)) + "."
}

// severeInsight is an insight of level error or above.
type severeInsight struct {
	uuid, informer, summary string
	level                   updatev1beta1.Level
}

// severe returns the insights of level error or above, without duplicates.
func severe(status updatev1beta1.UpdateStatusStatus) []severeInsight {
	var all []severeInsight
	for _, section := range status.Sections() {
		for _, of := range section.UpdateInformers {
			for i := range of.Insights {
				found := &of.Insights[i]
				if found.Impact.Level.Rank() >= updatev1beta1.LevelError.Rank() && !contains(all, found.UUID) {
					all = append(all, severeInsight{found.UUID, of.Name, found.Impact.Summary, found.Impact.Level})
				}
			}
		}
	}
	return all
}

func contains(all []severeInsight, uuid string) bool {
	return slices.ContainsFunc(all, func(i severeInsight) bool { return i.uuid == uuid })
}

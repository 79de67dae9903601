// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// MaxBytes limits the size of the status as JSON.
	MaxBytes = 900 << 10
	// noteBytes is reserved for the insight that describes what was removed.
	noteBytes = 2 << 10
	// maxLevels is the number of insight levels.
	maxLevels = 5
)

// Fit shortens a status larger than MaxBytes. Starting with the lowest level, it removes descriptions, then
// merges the insights about the nodes of a pool, and finally drops insights. An insight with the reason
// Truncated reports the counts. If the published control plane has that insight, it keeps its times.
func Fit(status *updatev1beta1.UpdateStatusStatus, published *updatev1beta1.ControlPlaneStatus, now time.Time) {
	fit(status, published, now, (*fitting).dropDescriptions, (*fitting).rollUp, (*fitting).drop)
}

// FitPlan does the same for the status of a plan, but merges no insights, because each needs its own
// acceptance.
func FitPlan(status *updatev1beta1.UpdatePlanStatus, published *updatev1beta1.ControlPlaneStatus, now time.Time) {
	sized := updatev1beta1.UpdateStatusStatus{ControlPlane: status.ControlPlane, WorkerPools: status.WorkerPools, RecentlyResolved: status.RecentlyResolved}
	fit(&sized, published, now, (*fitting).dropDescriptions, (*fitting).drop)
	status.ControlPlane, status.WorkerPools = sized.ControlPlane, sized.WorkerPools
}

func fit(status *updatev1beta1.UpdateStatusStatus, published *updatev1beta1.ControlPlaneStatus, now time.Time, steps ...func(*fitting, int)) {
	if bound(status) <= MaxBytes {
		return
	}
	f := &fitting{status: status, left: statusSize(status) - MaxBytes}
	if f.left <= 0 {
		return
	}
	f.left += noteBytes
	for _, shorten := range steps {
		for level := 0; level < maxLevels && f.left > 0; level++ {
			shorten(f, level)
		}
	}
	f.note(published, now)
}

// fitting is the state of one call of Fit.
type fitting struct {
	status *updatev1beta1.UpdateStatusStatus
	// left is the number of bytes still to be removed.
	left int
	// descriptions, nodes, and dropped count what was removed or merged.
	descriptions, nodes, dropped int
}

func (f *fitting) dropDescriptions(level int) {
	eachInsight(f.status, func(i *updatev1beta1.Insight) {
		if f.left > 0 && i.Impact.Level.Rank() == level && i.Impact.Description != "" {
			f.left -= size(i.Impact.Description) + len(`,"description":`)
			i.Impact.Description = ""
			f.descriptions++
		}
	})
}

// rollUp replaces the insights about single nodes of a pool that share an informer, level, and reason with
// one insight of the controller.
func (f *fitting) rollUp(level int) {
	for _, section := range f.status.Sections() {
		var made []updatev1beta1.Insight
		for n := range section.UpdateInformers {
			of := &section.UpdateInformers[n]
			if of.Name == updatev1beta1.StatusControllerInformer || f.left <= 0 {
				continue
			}
			groups := map[string][]updatev1beta1.Insight{}
			for _, i := range of.Insights {
				if aboutNode(i) && i.Impact.Level.Rank() == level {
					groups[i.Impact.Reason] = append(groups[i.Impact.Reason], i)
				}
			}
			maps.DeleteFunc(groups, func(_ string, g []updatev1beta1.Insight) bool { return len(g) < 2 })
			of.Insights = slices.DeleteFunc(of.Insights, func(i updatev1beta1.Insight) bool {
				_, grouped := groups[i.Impact.Reason]
				return grouped && aboutNode(i) && i.Impact.Level.Rank() == level
			})
			for _, reason := range slices.Sorted(maps.Keys(groups)) {
				f.nodes += len(groups[reason])
				one := rolledUp(of.Name, groups[reason])
				f.left -= sizeOf(groups[reason]) - size(one)
				made = append(made, one)
			}
		}
		section.UpdateInformers = withOwn(section.UpdateInformers, made)
	}
}

func aboutNode(i updatev1beta1.Insight) bool {
	return len(i.Scope.Resources) == 1 && i.Scope.Resources[0].Kind == "Node"
}

// rolledUp returns one insight that replaces a group of insights about nodes.
func rolledUp(informer string, group []updatev1beta1.Insight) updatev1beta1.Insight {
	one := *group[0].DeepCopy()
	var names []string
	for i := range group {
		names = append(names, group[i].Scope.Resources[0].Name)
		one.Scope.Resources = append(one.Scope.Resources, group[i].Scope.Resources[0])
		if group[i].FirstObservedTime.Before(&one.FirstObservedTime) {
			one.FirstObservedTime = group[i].FirstObservedTime
		}
	}
	one.UID = text.Fit("rolled-up/"+informer+"/"+one.Impact.Reason, insight.MaxUID)
	one.Impact.Summary = fmt.Sprintf("%d nodes: %s", len(group), one.Impact.Summary)
	one.Impact.Description, one.CausedBy, one.Flaps = text.JoinNames(names), nil, 0
	made := insight.Clean(updatev1beta1.StatusControllerInformer, one, one.AcquisitionTime.Time)
	made.FirstObservedTime = one.FirstObservedTime
	return made
}

// withOwn adds the controller's own insights to a section and removes informers without insights.
func withOwn(informers []updatev1beta1.InformerInsights, own []updatev1beta1.Insight) []updatev1beta1.InformerInsights {
	informers = slices.DeleteFunc(informers, func(i updatev1beta1.InformerInsights) bool { return len(i.Insights) == 0 })
	return insight.Append(informers, own...)
}

// drop removes insights, newest first, and then the retained insights.
func (f *fitting) drop(level int) {
	for _, section := range f.status.Sections() {
		for n := range section.UpdateInformers {
			of := &section.UpdateInformers[n]
			newest := slices.SortedStableFunc(slices.Values(of.Insights), func(a, b updatev1beta1.Insight) int {
				return cmp.Or(b.FirstObservedTime.Compare(a.FirstObservedTime.Time), cmp.Compare(a.UUID, b.UUID))
			})
			gone := map[string]bool{}
			for _, i := range newest {
				if f.left > 0 && i.Impact.Level.Rank() == level {
					f.left -= size(i) + 1
					f.dropped++
					gone[i.UUID] = true
				}
			}
			of.Insights = slices.DeleteFunc(of.Insights, func(i updatev1beta1.Insight) bool { return gone[i.UUID] })
		}
		section.UpdateInformers = withOwn(section.UpdateInformers, nil)
	}
	f.status.AfterUpdate = slices.DeleteFunc(f.status.AfterUpdate, func(r updatev1beta1.RetainedInsight) bool {
		if f.left <= 0 || r.Insight.Impact.Level.Rank() != level {
			return false
		}
		f.left -= size(r) + 1
		f.dropped++
		return true
	})
}

// note adds the insight that describes what was removed.
func (f *fitting) note(published *updatev1beta1.ControlPlaneStatus, now time.Time) {
	summary := fmt.Sprintf("The status is too large: it lacks %d descriptions and %d insights, and shows %d insights about nodes together.", f.descriptions, f.dropped, f.nodes)
	made := insight.About("status", updatev1beta1.ReasonTruncated, updatev1beta1.LevelInfo, summary, "", now)
	if f.status.ControlPlane == nil {
		f.status.ControlPlane = &updatev1beta1.ControlPlaneStatus{}
	}
	f.status.ControlPlane.UpdateInformers = insight.AddOwn(f.status.ControlPlane.UpdateInformers, made, published)
}

// statusSize returns the length of a status encoded as JSON, or a few bytes more. It encodes one insight at a
// time, because informers that name many pools can make the whole status larger than the memory limit.
func statusSize(status *updatev1beta1.UpdateStatusStatus) int {
	sum := 0
	without := func(s updatev1beta1.Section) updatev1beta1.Section {
		informers := make([]updatev1beta1.InformerInsights, 0, len(s.UpdateInformers))
		for _, of := range s.UpdateInformers {
			sum += sizeOf(of.Insights) + len(`,"insights":[]`)
			informers = append(informers, updatev1beta1.InformerInsights{Name: of.Name})
		}
		s.UpdateInformers = informers
		return s
	}
	rest := *status
	if rest.ControlPlane != nil {
		rest.ControlPlane = &updatev1beta1.ControlPlaneStatus{Section: without(rest.ControlPlane.Section)}
	}
	rest.WorkerPools = slices.Clone(rest.WorkerPools)
	for i := range rest.WorkerPools {
		rest.WorkerPools[i].Section = without(rest.WorkerPools[i].Section)
	}
	return sum + size(&rest)
}

// size returns the length of a value encoded as JSON.
func size(value any) int {
	encoded, err := json.Marshal(value)
	if err != nil {
		return 0 // API values can always be encoded
	}
	return len(encoded)
}

func sizeOf(insights []updatev1beta1.Insight) int {
	sum := len(insights)
	for i := range insights {
		sum += size(insights[i])
	}
	return sum
}

// bound returns an upper bound for the JSON size of the status, unless the assessment is large. It is cheaper
// than encoding the status.
func bound(status *updatev1beta1.UpdateStatusStatus) int {
	const escaped, fixed = 6, 64 << 10
	sum := fixed
	eachInsight(status, func(i *updatev1beta1.Insight) {
		const keys, perRef = 900, 128
		sum += keys + escaped*(len(i.Impact.Summary)+len(i.Impact.Description)+len(i.UID)+len(i.Remediation.Reference)+len(i.Impact.ReportedLevel)+len(i.Impact.Type))
		for _, ref := range slices.Concat(i.Scope.WorkerPool, i.Scope.Resources) {
			sum += perRef + len(ref.APIVersion) + len(ref.Kind) + len(ref.Namespace) + len(ref.Name)
		}
		sum += 40 * len(i.CausedBy)
	})
	for _, section := range status.Sections() {
		sum += fixed/32 + 320*len(section.UpdateInformers)
	}
	sum += 2000*len(status.RecentlyResolved) + 48<<10*len(status.PastUpdates)
	if status.Assessment != nil {
		sum += size(status.Assessment)
	}
	return sum
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

const (
	// maxPast limits the number of past updates.
	maxPast = 5
	// maxRelease limits the length of a release name, as in the API.
	maxRelease = 128
)

// pastUpdates returns the past updates, latest first. It adds the update of the previous assessment once that
// has ended, because nothing is pending or another update has started. The durations are those observed
// during the update.
func pastUpdates(previous updatev1beta1.UpdateStatusStatus, facts checks.Facts, settled bool) []updatev1beta1.PastUpdate {
	past := previous.PastUpdates
	before := previous.Assessment
	if before == nil || before.StartedTime == nil || !facts.Complete() {
		return past
	}
	at := slices.IndexFunc(facts.Version.Updates, func(u clusterstate.Update) bool {
		return u.Start.Truncate(time.Second).Equal(before.StartedTime.Truncate(time.Second))
	})
	if at < 0 || !settled && at == 0 {
		return past
	}
	ended := facts.Version.Updates[at]
	known := slices.ContainsFunc(past, func(p updatev1beta1.PastUpdate) bool { return p.StartedTime.Time.Equal(ended.Start) })
	if known || !ended.Completed || ended.End.IsZero() || ended.Version == "" || len(ended.Version) > maxRelease || facts.Version.UpdateKind(at) == clusterstate.UpdateInstallation {
		return past
	}
	update := updatev1beta1.PastUpdate{
		FromRelease: before.FromRelease, ToRelease: ended.Version,
		StartedTime: metav1.NewTime(ended.Start), CompletionTime: metav1.NewTime(ended.End),
	}
	for i := range before.Sections {
		section := &before.Sections[i]
		update.Operators = append(update.Operators, section.Operators...)
		if seconds := nodeSeconds(section, facts); section.Pool != nil && len(seconds) > 0 {
			update.Pools = append(update.Pools, durationsOf(section.Name, seconds))
		}
	}
	past = append([]updatev1beta1.PastUpdate{update}, past...)
	return past[:min(len(past), maxPast)]
}

// nodeSeconds returns how long the nodes of a section took, in seconds. It includes nodes that were still
// updating at the time of the assessment and are updated now.
func nodeSeconds(section *updatev1beta1.SectionAssessment, facts checks.Facts) []int32 {
	seconds := slices.Clone(section.NodeSeconds)
	started := map[string]time.Time{}
	for _, part := range section.Parts {
		started[part.Name] = part.StartedTime.Time
	}
	for _, node := range facts.Nodes {
		start, known := started[node.Name]
		if took := facts.Now.Sub(start); known && !start.IsZero() && node.Ready && !node.Updating && node.CurrentConfig != "" && took > 0 {
			seconds = append(seconds, int32(min(took/time.Second, 1<<30)))
		}
	}
	return seconds
}

func durationsOf(name string, seconds []int32) updatev1beta1.PoolDurations {
	slices.Sort(seconds)
	last := len(seconds) - 1
	return updatev1beta1.PoolDurations{
		Name: name, Nodes: int32(min(len(seconds), 1<<30)),
		LowerSeconds: seconds[last/4], MedianSeconds: seconds[last/2], UpperSeconds: seconds[(3*last+3)/4], LongestSeconds: seconds[last],
	}
}

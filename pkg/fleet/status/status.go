// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// maxSize bounds the status as JSON, in bytes: the object stays below 10 kB.
const maxSize = 7000

// Fleet is what a status is computed from.
type Fleet struct {
	// Upgrade is the object, with the status that was published last.
	Upgrade *fleetv1beta1.ManagedClustersUpgrade
	// Members are the clusters of the fleet.
	Members []Member
	// Decision is what rollout.Decide decided about the members.
	Decision rollout.Decision
	// Unstable reports whether the selection may lack clusters.
	Unstable bool
	// Problem is why the selection lacks clusters; its zero value means that it does not.
	Problem rollout.Stop
	// Now is the time.
	Now time.Time
}

// Compute returns the status of the fleet.
func Compute(f Fleet) fleetv1beta1.ManagedClustersUpgradeStatus {
	before, spec := &f.Upgrade.Status, &f.Upgrade.Spec
	t := newTotals(&f)
	status := fleetv1beta1.ManagedClustersUpgradeStatus{
		ObservedGeneration:    f.Upgrade.Generation,
		Attempt:               max(1, spec.Attempt),
		StartTime:             before.StartTime,
		CanaryClustersSummery: &t.canaries,
		ClustersSummery:       &t.clusters,
		Groups:                t.groupStatuses(),
		Causes:                t.causes(),
	}
	if status.StartTime == nil && !t.started.IsZero() {
		status.StartTime = &metav1.Time{Time: t.started}
	}
	if spec.PreUpgradeAction != nil {
		status.PreUpgradeActionSummary = &t.pre
	}
	if spec.PostUpgradeAction != nil {
		status.PostUpgradeActionSummary = &t.post
	}
	if t.isComplete() {
		status.CompletionTime = completionTime(before, t.completed, f.Now)
	}
	if next := f.Decision.Next; !next.IsZero() {
		status.NextTime = &metav1.Time{Time: next.Add(time.Second - 1).Truncate(time.Second)}
	}
	status.Conditions = t.conditions(before.Conditions)
	fit(&status)
	return status
}

// completionTime returns when the last cluster was complete. A time that was published stays.
func completionTime(before *fleetv1beta1.ManagedClustersUpgradeStatus, last, now time.Time) *metav1.Time {
	switch {
	case before.CompletionTime != nil:
		return before.CompletionTime
	case last.IsZero():
		last = now
	}
	return &metav1.Time{Time: last.Truncate(time.Second)}
}

// fit shortens the status until it is below its limit: first the messages of causes, then the rarest
// causes, then the names of groups.
func fit(status *fleetv1beta1.ManagedClustersUpgradeStatus) {
	for _, limit := range []int{120, 60} {
		if size(status) <= maxSize {
			return
		}
		shortenMessages(status.Causes, limit)
	}
	for len(status.Causes) > 3 && size(status) > maxSize {
		status.Causes = status.Causes[:len(status.Causes)-1]
	}
	if size(status) > maxSize {
		for i := range status.Groups {
			status.Groups[i].Name = ""
		}
	}
}

func size(status *fleetv1beta1.ManagedClustersUpgradeStatus) int {
	encoded, err := json.Marshal(status)
	if err != nil {
		return 0 // times, numbers, and texts can be encoded
	}
	return len(encoded)
}

// totals are the sums over all members that count.
type totals struct {
	*Fleet
	clusters, canaries fleetv1beta1.ClustersSummary
	pre, post          fleetv1beta1.ActionSummary
	groups             map[int]*fleetv1beta1.GroupStatus
	sources            map[causeKey]*source
	applied            bool
	started, completed time.Time
	unchecked          int
	stalls             int
	obstacles          int
}

func newTotals(f *Fleet) *totals {
	t := &totals{Fleet: f, groups: map[int]*fleetv1beta1.GroupStatus{}, sources: map[causeKey]*source{}}
	gone := map[string]bool{}
	for _, names := range [][]string{f.Decision.Removed, f.Decision.Ignored} {
		for _, name := range names {
			gone[name] = true
		}
	}
	for i := range f.Members {
		if m := &f.Members[i]; !gone[m.Name] {
			t.add(m)
		}
	}
	return t
}

// add adds a member to all sums.
func (t *totals) add(m *Member) {
	count(&t.clusters, m.State)
	if m.IsCanary() {
		count(&t.canaries, m.State)
	} else {
		count(&t.group(m).ClustersSummary, m.State)
	}
	t.addRun(m)
	t.addCauses(m)
	if !m.Checked {
		t.unchecked++
	}
}

// count counts a cluster by its state. One of a state that is not known is in flight.
func count(s *fleetv1beta1.ClustersSummary, state rollout.State) {
	s.Total++
	switch state {
	case rollout.NotStarted:
		s.Pending++
	case rollout.Initialized:
		s.Initialized++
	case rollout.Complete:
		s.Complete++
	case rollout.Failed:
		s.Failed++
	default:
		s.PartialUpgrade++
	}
}

// addRun adds what the run reports, of whichever attempt.
func (t *totals) addRun(m *Member) {
	if m.Run == nil {
		return
	}
	run := &m.Run.Status
	t.applied = t.applied || run.Applied
	if at := m.Run.Spec.AdmissionTime.Time; m.Run.Spec.Outcome == nil && (t.started.IsZero() || at.Before(t.started)) {
		t.started = at
	}
	if at := timeOf(run.CompletionTime); at.After(t.completed) {
		t.completed = at
	}
	if !m.begun() {
		return
	}
	t.pre.Total++
	addAction(&t.pre, run.PreUpgradeAction)
	if post := run.PostUpgradeAction; post != nil && (post.Applied || post.State != "") {
		t.post.Total++
		addAction(&t.post, post)
	}
}

// addAction counts an action by its state. One that is applied and reports no state is in progress.
func addAction(s *fleetv1beta1.ActionSummary, action *fleetv1alpha1.ActionStatus) {
	if action == nil {
		return
	}
	if action.Applied {
		s.Applied++
	}
	switch {
	case action.State == fleetv1alpha1.ActionAvailable:
		s.Available++
	case action.State == fleetv1alpha1.ActionDegraded:
		s.Degraded++
	case action.State == fleetv1alpha1.ActionProgressing || action.Applied:
		s.Progressing++
	}
}

// isComplete reports whether all clusters are complete. A selection that may lack clusters confirms
// what was published of this generation, and completes nothing.
func (t *totals) isComplete() bool {
	if t.clusters.Total == 0 || t.clusters.Complete < t.clusters.Total {
		return false
	}
	published := apimeta.FindStatusCondition(t.Upgrade.Status.Conditions, fleetv1beta1.ConditionComplete)
	return !t.Unstable || published != nil && published.Status == metav1.ConditionTrue && published.ObservedGeneration == t.Upgrade.Generation
}

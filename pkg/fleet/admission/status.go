// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Limits in bytes.
const (
	maxStopMessage = 480
	maxSize        = 7000 // of the status as JSON: the object stays below 10 kB
)

// ComputeStatus returns the status of the fleet after a decision about its members. The same members lead to the same bytes, in
// whatever order they come: a status is written only if something has changed.
func ComputeStatus(f *Fleet, members []FleetMember, decision rollout.Decision) fleetv1beta1.ManagedClustersUpgradeStatus {
	before, spec := &f.Upgrade.Status, &f.Upgrade.Spec
	t := newTotals(f, members, decision)
	status := fleetv1beta1.ManagedClustersUpgradeStatus{
		ObservedGeneration:    f.Upgrade.Generation,
		Attempt:               Attempt(f.Upgrade),
		StartTime:             before.StartTime,
		CanaryClustersSummery: &t.canaries,
		ClustersSummery:       &t.clusters,
		Groups:                t.groupStatuses(),
		Canaries:              f.canariesStatus(),
		Stop:                  t.stopStatus(),
		ForgottenFailures:     t.forgotten(),
		Departed:              f.Departed,
		Begun:                 t.begun.encode(),
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
	if t.isComplete() { // a published time stays
		status.CompletionTime = cmp.Or(before.CompletionTime, &metav1.Time{Time: cmp.Or(t.completed, f.Now).Truncate(time.Second)})
	}
	if next := decision.Next; !next.IsZero() {
		status.NextTime = &metav1.Time{Time: next.Add(time.Second - 1).Truncate(time.Second)}
	}
	status.Conditions = t.conditions(before.Conditions)
	fit(&status)
	return status
}

// stopStatus returns what stops the rollout until the next attempt, if anything. A published stop keeps its time.
func (t *totals) stopStatus() *fleetv1beta1.StopStatus {
	stop := t.decision.UntilAttempt
	if stop.IsZero() {
		return nil
	}
	next := &fleetv1beta1.StopStatus{
		Reason: stop.Reason, Message: text.Truncate(stop.Message, maxStopMessage), Annotations: applied(t.members),
		Time: metav1.Time{Time: t.Now.Truncate(time.Second)},
	}
	if old := t.Upgrade.Status.Stop; old != nil && old.Reason == next.Reason && t.Upgrade.Status.Attempt == Attempt(t.Upgrade) {
		next.Time = old.Time
	}
	return next
}

func (t *totals) forgotten() []fleetv1beta1.ForgottenFailure {
	var list []fleetv1beta1.ForgottenFailure
	for i := range t.members {
		if m := &t.members[i]; m.Forgotten {
			list = append(list, fleetv1beta1.ForgottenFailure{Cluster: m.Name, Reason: text.Truncate(m.ForgottenFor, maxMessage)})
		}
	}
	slices.SortFunc(list, func(a, b fleetv1beta1.ForgottenFailure) int { return strings.Compare(a.Cluster, b.Cluster) })
	return list[:min(len(list), fleetv1beta1.MaxForgotten)]
}

// fit shortens the status below its limit: the messages of causes, then the rarest causes, then names of groups.
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

type totals struct {
	*Fleet
	members            []FleetMember
	decision           rollout.Decision
	clusters, canaries fleetv1beta1.ClustersSummary
	pre, post          fleetv1beta1.ActionSummary
	groups             map[int]*fleetv1beta1.GroupStatus
	sources            map[causeKey]*source
	begun              fingerprint
	applied            bool
	started, completed time.Time
	unchecked          int
	stalls             int
	obstacles          int
}

func newTotals(f *Fleet, members []FleetMember, decision rollout.Decision) *totals {
	t := &totals{Fleet: f, members: members, decision: decision, groups: map[int]*fleetv1beta1.GroupStatus{}, sources: map[causeKey]*source{}}
	gone := map[string]bool{}
	for _, name := range slices.Concat(decision.Removed, decision.Ignored) {
		gone[name] = true
	}
	for i := range members {
		if m := &members[i]; !gone[m.Name] {
			t.add(m)
		}
	}
	return t
}

func (t *totals) add(m *FleetMember) {
	summary := &t.canaries
	if !m.IsCanary() {
		summary = &t.group(m).ClustersSummary
	}
	if m.State != rollout.NotStarted {
		t.begun.add(m.Name)
	}
	for _, s := range []*fleetv1beta1.ClustersSummary{&t.clusters, summary} {
		count(s, m)
	}
	t.addRun(m)
	t.addCauses(m)
	if !m.Checked {
		t.unchecked++
	}
}

// count counts a cluster by its state. An unknown state is in flight.
func count(s *fleetv1beta1.ClustersSummary, m *FleetMember) {
	s.Total++
	switch m.State {
	case rollout.NotStarted:
		s.Pending++
	case rollout.Initialized:
		s.Initialized++
	case rollout.Complete:
		s.Complete++
	case rollout.Failed:
		s.Failed++
	default:
		if m.isUpgraded() {
			s.Complete++
			s.Finishing++
		} else {
			s.PartialUpgrade++
		}
	}
}

// addRun adds what the run reports, in any attempt.
func (t *totals) addRun(m *FleetMember) {
	if m.Run == nil || m.Run.Spec.AdmissionTime.IsZero() {
		return
	}
	run := &m.Run.Status
	t.applied = t.applied || run.Applied
	if at := m.Run.Spec.AdmissionTime.Time; m.Run.Spec.Outcome == nil && (t.started.IsZero() || at.Before(t.started)) {
		t.started = at
	}
	if at := text.TimeOf(run.CompletionTime); at.After(t.completed) {
		t.completed = at
	}
	if !m.begun() {
		return
	}
	t.pre.Total++
	addAction(&t.pre, run.PreUpgradeAction)
	if m.isUpgraded() {
		t.post.Total++
	}
	addAction(&t.post, run.PostUpgradeAction)
}

// addAction counts an action by its state. An applied action without a state is in progress.
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

// isComplete reports whether all clusters are complete, and none that has failed is gone. A selection that may lack clusters
// confirms what was published of this generation, and completes nothing.
func (t *totals) isComplete() bool {
	if !t.clusters.Ended() || t.clusters.Failed > 0 || len(t.Departed) > 0 {
		return false
	}
	published := apimeta.FindStatusCondition(t.Upgrade.Status.Conditions, fleetv1beta1.ConditionComplete)
	return t.Selection.Stable() || published != nil && published.Status == metav1.ConditionTrue && published.ObservedGeneration == t.Upgrade.Generation
}

const (
	buckets    = 128
	bucketSize = 5 // in bytes: a number of clusters modulo 256, and the exclusive or of the hashes of their names
)

// fingerprint identifies a set of clusters in a size that does not depend on their number.
type fingerprint [buckets]struct {
	count uint8
	sum   uint32
}

func hashOf(cluster string) (bucket int, hash uint32) {
	sum := sha256.Sum256([]byte(cluster))
	return int(sum[0]) % buckets, binary.BigEndian.Uint32(sum[1:])
}

func (f *fingerprint) add(cluster string) {
	bucket, hash := hashOf(cluster)
	f[bucket].count++
	f[bucket].sum ^= hash
}

// encode returns the fingerprint as a text; empty without clusters.
func (f *fingerprint) encode() string {
	if *f == (fingerprint{}) {
		return ""
	}
	encoded := make([]byte, 0, buckets*bucketSize)
	for _, b := range f {
		encoded = binary.BigEndian.AppendUint32(append(encoded, b.count), b.sum)
	}
	return base64.StdEncoding.EncodeToString(encoded)
}

// CountDeparted returns how many clusters of a published fingerprint are gone from the hub: neither present nor among the
// others that exist. It returns false if the record of one that exists may be lost.
func CountDeparted(published string, present, others []string) (int, bool) {
	encoded, err := base64.StdEncoding.DecodeString(published)
	if err != nil || len(encoded) != buckets*bucketSize {
		return 0, false // published by a release without it
	}
	var left fingerprint
	for i := range left {
		b := encoded[i*bucketSize:]
		left[i].count, left[i].sum = b[0], binary.BigEndian.Uint32(b[1:])
	}
	for _, name := range present {
		bucket, hash := hashOf(name)
		left[bucket].count--
		left[bucket].sum ^= hash
	}
	exists := map[[2]uint32]bool{}
	isOccupied := [buckets]bool{}
	for _, name := range others {
		bucket, hash := hashOf(name)
		exists[[2]uint32{uint32(bucket), hash}], isOccupied[bucket] = true, true
	}
	gone := 0
	for i, b := range left {
		switch {
		case b.count == 0 && b.sum == 0:
			continue
		case b.count == 0 || b.count > buckets: // a present cluster was not published
			return 0, false
		case b.count == 1 && exists[[2]uint32{uint32(i), b.sum}], b.count > 1 && isOccupied[i]: // of several, each may be the other one
			return 0, false
		}
		gone += int(b.count)
	}
	return gone, true
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// cache has what is kept between the passes over an upgrade. A restart loses it, and only delays removals.
type cache struct {
	uid        types.UID
	generation int64     // of the last pass
	started    time.Time // of the first pass
	newest     time.Time // of the last pass, with or without an error
	expected   int       // clusters that the status counted then
	decided    time.Time // of the last pass
	passed     time.Time // of the last pass without an error
	published  time.Time // when the status was written last
	closed     time.Time // of the last pass, if the window was closed and nothing else stopped the rollout

	replaced manager.Replaced                           // by the last write
	status   *fleetv1beta1.ManagedClustersUpgradeStatus // the last one that this process wrote, or whose runs it knows
	gone     map[types.UID]bool                         // runs that the cache may still hold

	selected []selection.SelectedCluster // the last consistent selection
	clusters map[string]*record          // by cluster
	events   []engine.Notification       // that could not be written
	exported metrics.Fleet               // what the metrics contain
	windows  admission.Windows

	preflight *preflights // of a dry run, if there is one
	repeated  bool        // the milestones that the status shows were sent to the webhook again
	swept     bool        // the works of an earlier process are known to be gone
	observed  bool        // the runs that had ended before this process are known
}

type record struct {
	admission.ClusterRecord
	refusedUntil time.Time
	waitingSince time.Time                      // since when its run waits before its request, as far as it is known
	written      *written                       // its run, until the cache holds it
	begun        *fleetv1beta1.DepartedClusters // what counts if the cluster disappears; nil if the published status does not count it as begun
	ignored      bool                           // the published status does not count its failure
	detached     bool                           // its run is gone with the cluster since the last status
	awaited      bool                           // the published status waits for it as a canary that has failed before
	ended        int32                          // the attempt of its run that has ended, or 0
}

type written struct {
	run    *fleetv1alpha1.ClusterUpgradeRun
	at     time.Time
	unsure bool // the answer was lost
}

func (m *cache) of(cluster string) *record {
	r := m.clusters[cluster]
	if r == nil {
		r = &record{}
		m.clusters[cluster] = r
	}
	return r
}

// names returns the clusters about whose records something is true, sorted.
func (m *cache) names(is func(*record) bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.clusters)), func(name string) bool { return !is(m.clusters[name]) })
}

func (m *cache) detached() []string { return m.names(func(r *record) bool { return r.detached }) }

// cacheOf returns the cache of an upgrade. Another object with the same name has its own. Once the clock is set back, what was
// noted before is in the future, and is lost as by a restart.
func (r *Reconciler) cacheOf(upgrade *fleetv1beta1.ManagedClustersUpgrade, now time.Time) *cache {
	key := client.ObjectKeyFromObject(upgrade)
	if m := r.caches[key]; m != nil && m.uid == upgrade.UID && !m.newest.After(now.Add(text.MaxClockSkew)) {
		m.newest = now
		return m
	}
	m := &cache{uid: upgrade.UID, started: now, newest: now, clusters: map[string]*record{}, gone: map[types.UID]bool{}, status: &upgrade.Status}
	if published := upgrade.Status.ClustersSummery; published != nil {
		m.expected = int(published.Total)
	}
	r.caches[key] = m
	return m
}

// observeDetached notes the clusters that have gone, or are going, with their runs while this process watched.
func (s *scope) observeDetached() {
	for name, r := range s.cache.clusters {
		cluster := s.Clusters[name]
		switch {
		case s.Runs[name] != nil:
			r.detached = false
		case r.begun != nil && hasLeft(cluster):
			r.detached = true
		}
	}
}

// hasLeft reports whether a cluster has left the hub, or is leaving it. The cluster may be nil.
func hasLeft(cluster *clusterv1.ManagedCluster) bool {
	return cluster == nil || cluster.DeletionTimestamp != nil
}

// canariesGone counts the canaries of earlier attempts that left the hub before they were complete, and those whose records are
// lost, with those that are not published yet. It starts again once a user changes canaryClusters.
func (s *scope) canariesGone() int {
	if !admission.AreCanariesFixed(s.Upgrade) {
		return 0
	}
	published := &s.Upgrade.Status
	gone, isRetry := int(published.Canaries.Departed), published.Attempt != s.attempt()
	var counted []fleetv1beta1.DepartedClusters
	if isRetry {
		counted = slices.Concat(published.Departed, s.unwatched)
	} else if s.RecordsLost != "" {
		counted = s.unwatched
	}
	for _, d := range counted {
		gone += int(d.Canaries)
	}
	for name, r := range s.cache.clusters {
		hasDeparted := isRetry && r.begun != nil && r.begun.Canaries > 0 && hasLeft(s.Clusters[name])
		if s.Runs[name] == nil && (r.awaited || hasDeparted) {
			gone++
		}
	}
	return gone
}

// haveDeparted reports whether all missing runs went with their clusters while no process watched, and counts the clusters of
// missing runs that were not complete.
func (s *scope) haveDeparted(missing int32) bool {
	left := leftOf(&s.Upgrade.Status)
	present, others := s.cache.detached(), []string{}
	for name, run := range s.Runs {
		if s.isCounted(run) {
			present = append(present, name)
			s.subtract(left, run)
		}
	}
	for name, cluster := range s.Clusters {
		if run := s.Runs[name]; (run == nil || !s.isCounted(run)) && !s.cache.of(name).detached && cluster.DeletionTimestamp == nil {
			others = append(others, name)
		}
	}
	gone, found := admission.CountDeparted(s.Upgrade.Status.Begun, present, others)
	if found {
		missing = int32(gone)
	}
	s.unwatched = unwatched(left, missing)
	return found
}

func leftOf(published *fleetv1beta1.ManagedClustersUpgradeStatus) map[int32]*fleetv1beta1.ClustersSummary {
	left := map[int32]*fleetv1beta1.ClustersSummary{0: {}}
	if c := published.CanaryClustersSummery; c != nil {
		*left[0] = *c
	}
	for i := range published.Groups {
		left[published.Groups[i].Index] = &published.Groups[i].DeepCopy().ClustersSummary
	}
	return left
}

func (s *scope) subtract(left map[int32]*fleetv1beta1.ClustersSummary, run *fleetv1alpha1.ClusterUpgradeRun) {
	group := min(run.Spec.Group, fleetv1beta1.MaxGroups) // the last one stands for all further groups
	if run.Spec.Canary {
		group = 0
	}
	c := left[group]
	if c == nil {
		return
	}
	c.Total--
	if admission.StateOf(run, s.Upgrade.Status.Attempt) == rollout.Complete {
		c.Complete--
	}
}

// unwatched returns the clusters among the gone ones that were not complete, by what is left of the counters.
func unwatched(left map[int32]*fleetv1beta1.ClustersSummary, gone int32) []fleetv1beta1.DepartedClusters {
	var list []fleetv1beta1.DepartedClusters
	for _, group := range slices.Sorted(maps.Keys(left)) {
		c := left[group]
		n := min(gone, max(0, c.Total-c.Pending-max(0, c.Complete-c.Finishing)))
		if gone -= n; n == 0 {
			continue
		}
		d := fleetv1beta1.DepartedClusters{Index: max(1, group), Failed: n}
		if group == 0 {
			d.Canaries = n
		}
		list = append(list, d)
	}
	return list
}

// begunOf returns what counts if the cluster disappears.
func begunOf(m *admission.FleetMember) *fleetv1beta1.DepartedClusters {
	gone := &fleetv1beta1.DepartedClusters{Index: int32(m.Group) + 1}
	failed := m.State != rollout.Complete && (m.State != rollout.Failed || !m.Exempt) || m.LateSuccess
	if failed && !m.Forgotten {
		if gone.Failed = 1; m.IsCanary() {
			gone.Canaries = 1
		}
	}
	return gone
}

// departed counts the clusters of this attempt that are gone and were not complete, with those that are not published yet.
func (s *scope) departed() []fleetv1beta1.DepartedClusters {
	list := slices.Clone(admission.Departed(s.Upgrade))
	if s.Upgrade.Status.Attempt != s.attempt() {
		return list
	}
	var gone []fleetv1beta1.DepartedClusters
	if s.RecordsLost == "" {
		gone = slices.Clone(s.unwatched)
	}
	for _, name := range s.cache.detached() {
		if d := s.cache.of(name).begun; d.Failed > 0 {
			gone = append(gone, *d)
		}
	}
	for _, d := range gone {
		at := slices.IndexFunc(list, func(known fleetv1beta1.DepartedClusters) bool { return known.Index == d.Index })
		switch {
		case at < 0 && len(list) == fleetv1beta1.MaxGroups:
			at = len(list) - 1 // it stands for all further groups
		case at < 0:
			at, list = len(list), append(list, fleetv1beta1.DepartedClusters{Index: d.Index})
		}
		list[at].Failed += d.Failed
		list[at].Canaries += d.Canaries
	}
	slices.SortFunc(list, func(a, b fleetv1beta1.DepartedClusters) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

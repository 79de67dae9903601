// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
)

// cache has what is kept between the passes over an upgrade. A restart loses it, which
// delays removals and costs nothing else.
type cache struct {
	uid        types.UID
	generation int64     // of the last pass
	started    time.Time // of the first pass
	expected   int       // clusters that the status counted then
	decided    time.Time // of the last pass
	passed     time.Time // of the last pass without an error; zero means none
	published  time.Time // when the status was written last

	replaced manager.Replaced // by the last write

	selected   []selection.Member    // the last consistent selection
	deselected map[string]time.Time  // since when consistent selections lack a member
	written    map[string]*written   // runs that the cache may not hold yet, by cluster
	refused    map[string]refusal    // clusters whose run could not be written
	begun      map[string]bool       // clusters that the published status counts as begun
	ignored    map[string]bool       // failed clusters that the published status does not count
	detached   map[string]bool       // clusters whose run is gone with the cluster since the last status
	ended      map[string]int32      // the attempt of each run that has ended; nil before the first pass
	events     []engine.Notification // that could not be written
	exported   metrics.Fleet         // what the metrics contain
	windows    admission.Windows
	preflight  *preflights // of a dry run; nil means none
	swept      bool        // the works of an earlier process are known to be gone
}

// written is a run that was written.
type written struct {
	run    *fleetv1alpha1.ClusterUpgradeRun
	at     time.Time
	unsure bool // the answer was lost
}

// refusal is why a run could not be written, and when it is tried again.
type refusal struct {
	reason string
	until  time.Time
}

// cacheOf returns what is known about the upgrade. Another object with the same name has its own.
func (r *Reconciler) cacheOf(upgrade *fleetv1beta1.ManagedClustersUpgrade, now time.Time) *cache {
	key := client.ObjectKeyFromObject(upgrade)
	if m := r.caches[key]; m != nil && m.uid == upgrade.UID {
		return m
	}
	m := &cache{
		uid: upgrade.UID, started: now, deselected: map[string]time.Time{}, written: map[string]*written{}, refused: map[string]refusal{},
		begun: map[string]bool{}, ignored: map[string]bool{}, detached: map[string]bool{},
	}
	if published := upgrade.Status.ClustersSummery; published != nil {
		m.expected = int(published.Total)
	}
	r.caches[key] = m
	return m
}

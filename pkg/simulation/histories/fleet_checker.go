// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

// fleetReaction is how long an undisturbed hub may take to react to a change: the placement controller
// takes some seconds.
const fleetReaction = 20 * time.Second

// fleetChecker checks each stored change of a hub. It knows the objects as the API server has them.
type fleetChecker struct {
	f          *fleet
	invariants invariants.Fleet // those of the tests of the hub

	upgrades map[string]*fleetv1beta1.ManagedClustersUpgrade // by UID
	clusters map[string]*clusterv1.ManagedCluster
	runs     map[client.ObjectKey]*fleetv1alpha1.ClusterUpgradeRun
	works    map[client.ObjectKey]*workv1.ManifestWork
	leases   map[string]*coordinationv1.Lease // by cluster

	limits      map[string]int32     // the highest limit of each upgrade, by UID
	blocked     map[string]time.Time // since when an upgrade is paused, cancelled, a dry run, or deleted, by UID
	everBlocked map[string]bool      // likewise, ever
	left        map[string]time.Time // since when a cluster is not selected, or held
	begun       map[string]int       // admissions, by upgrade, cluster, and attempt
	requests    map[string]int       // of a release from a cluster, likewise
	hubWrites   int
}

func newFleetChecker(f *fleet) *fleetChecker {
	return &fleetChecker{
		f: f, upgrades: map[string]*fleetv1beta1.ManagedClustersUpgrade{}, clusters: map[string]*clusterv1.ManagedCluster{},
		runs: map[client.ObjectKey]*fleetv1alpha1.ClusterUpgradeRun{}, works: map[client.ObjectKey]*workv1.ManifestWork{},
		leases: map[string]*coordinationv1.Lease{}, limits: map[string]int32{}, blocked: map[string]time.Time{}, everBlocked: map[string]bool{}, left: map[string]time.Time{},
		begun: map[string]int{}, requests: map[string]int{},
	}
}

// calm reports whether the hub has run undisturbed for a time.
func (c *fleetChecker) calm(now time.Time) bool {
	return now.After(c.f.disturbed.Add(reaction)) && !c.f.clockStepped && len(c.f.alive()) == 1
}

// long reports whether an undisturbed hub has had the time to react to what is since then; zero means
// that it is not.
func (c *fleetChecker) long(since, now time.Time) bool {
	return !since.IsZero() && now.Sub(since) > fleetReaction && c.calm(since) && c.calm(now)
}

// observe checks one change.
func (c *fleetChecker) observe(change simulation.Change) {
	c.f.report.Writes++
	if change.Actor == hubActor {
		c.hubWrites++
	}
	key, gone := client.ObjectKeyFromObject(change.Object()), change.New == nil
	switch object := change.Object().(type) {
	case *fleetv1beta1.ManagedClustersUpgrade:
		c.upgrade(change, object)
	case *fleetv1alpha1.ClusterUpgradeRun:
		if gone {
			c.invariants.RunDeleted(object)
		} else {
			c.run(change, object)
		}
		keepObject(c.runs, key, object, gone)
	case *workv1.ManifestWork:
		keepObject(c.works, key, object, gone)
	case *clusterv1.ManagedCluster:
		keepObject(c.clusters, object.Name, object, gone)
		mark(c.left, object.Name, object.Labels[fleetLabel] == "" || len(object.Annotations) > 0, change.Time)
	case *coordinationv1.Lease:
		keepObject(c.leases, object.Namespace, object, gone)
	}
	for _, m := range c.f.members {
		if m.spoke.Version() == nil {
			c.f.violate("cluster %s: its ClusterVersion is deleted", m.name)
		}
	}
}

func keepObject[K comparable, V any](all map[K]V, key K, object V, gone bool) {
	if all[key] = object; gone {
		delete(all, key)
	}
}

// mark notes since when something holds.
func mark(since map[string]time.Time, key string, holds bool, now time.Time) {
	switch {
	case !holds:
		delete(since, key)
	case since[key].IsZero():
		since[key] = now
	}
}

func (c *fleetChecker) upgrade(change simulation.Change, u *fleetv1beta1.ManagedClustersUpgrade) {
	uid := string(u.UID)
	keepObject(c.upgrades, uid, u, change.New == nil)
	c.everBlocked[uid] = c.everBlocked[uid] || u.Spec.Paused || u.Spec.Cancelled
	mark(c.blocked, uid, u.Spec.Paused || u.Spec.Cancelled || u.Spec.DryRun || u.DeletionTimestamp != nil, change.Time)
	c.limits[uid] = max(c.limits[uid], c.limit(u))
	if u.DeletionTimestamp != nil {
		c.f.report.Deletion = true
	}
	if change.New == nil {
		return
	}
	if err := c.invariants.Upgrade(u); err != nil {
		c.f.violate("status of %s: %v", u.Name, err)
	}
}

// limit returns how many clusters may be in flight at a time.
func (c *fleetChecker) limit(u *fleetv1beta1.ManagedClustersUpgrade) int32 {
	limit := u.Spec.UpgradeStrategy.MaxConcurrency
	switch {
	case limit == nil:
		return 1
	case limit.Type == intstr.Int:
		return limit.IntVal
	}
	percent, _ := strconv.Atoi(strings.TrimSuffix(limit.StrVal, "%"))
	return int32((percent*len(c.f.members) + 99) / 100)
}

// run checks a change of a run.
func (c *fleetChecker) run(change simulation.Change, run *fleetv1alpha1.ClusterUpgradeRun) {
	before, _ := change.Old.(*fleetv1alpha1.ClusterUpgradeRun)
	if err := c.invariants.Run(run); err != nil {
		c.f.violate("run of %s: %v", run.Namespace, err)
	}
	if change.Actor == hubActor && (before == nil || before.Spec.Attempt != run.Spec.Attempt) {
		c.runs[client.ObjectKeyFromObject(run)] = run
		c.admitted(change.Time, run)
	}
	ended := isEnded(run)
	if m := c.f.member(run.Namespace); ended && run.Status.State == fleetv1alpha1.StateComplete && !m.has(run.Spec.ClusterVersion.Version) {
		c.f.violate("outcome: %s is Complete at %s, but it has %v", run.Namespace, run.Spec.ClusterVersion.Version, m.spoke.History())
	}
	if before != nil && isEnded(before) && before.Spec.Attempt == run.Spec.Attempt && !ended {
		c.f.violate("outcome: %s has ended as %s and goes on", run.Namespace, before.Status.State)
	}
	if ended && run.Status.State == fleetv1alpha1.StateComplete {
		c.f.report.Workers = true
	}
	if before != nil && holdsFinalizer(before) && !holdsFinalizer(run) && run.DeletionTimestamp == nil { // after a deletion, what is delivered goes on
		c.released(run)
	}
}

// released checks that a run that is over has withdrawn what its cluster has not accepted.
func (c *fleetChecker) released(run *fleetv1alpha1.ClusterUpgradeRun) {
	m, release := c.f.member(run.Namespace), run.Spec.ClusterVersion.Version
	accepted := slices.ContainsFunc(m.spoke.History(), func(line string) bool { return strings.HasPrefix(line, release+" ") })
	if m.spoke.Desired() == release && !accepted && !m.everOffline && !m.tampered && !c.f.clockStepped {
		c.f.violate("withdrawal: the run of %s has ended (%s), and %s is requested, which the cluster has not accepted", run.Namespace, run.Status.Reason, release)
	}
}

func holdsFinalizer(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return slices.Contains(run.Finalizers, fleetv1alpha1.Finalizer)
}

// isEnded reports whether the attempt that the spec of a run names has ended.
func isEnded(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run.Status.Attempt == run.Spec.Attempt &&
		(run.Status.State == fleetv1alpha1.StateComplete || run.Status.State == fleetv1alpha1.StateFailed)
}

// holdsSlot reports whether a run is in flight or cleans up.
func holdsSlot(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run.Spec.Outcome == nil && (!isEnded(run) || holdsFinalizer(run))
}

// admitted checks that a cluster may begin now, once in an attempt.
func (c *fleetChecker) admitted(now time.Time, run *fleetv1alpha1.ClusterUpgradeRun) {
	ref, cluster := &run.Spec.ManagedClustersUpgrade, run.Namespace
	key := fmt.Sprintf("%s/%s/%d", ref.UID, cluster, run.Spec.Attempt)
	if c.begun[key]++; c.begun[key] > 1 && !c.f.member(cluster).tampered {
		c.f.violate("admission: %s begins %d times in attempt %d of %s", cluster, c.begun[key], run.Spec.Attempt, ref.Name)
	}
	u := c.upgrades[ref.UID]
	if u == nil {
		c.f.violate("admission: %s begins for %s, which does not exist", cluster, ref.Name)
		return
	}
	if since := c.blocked[ref.UID]; c.long(since, now) {
		c.f.violate("admission: %s begins although %s is paused, cancelled, a dry run, or deleted since %s", cluster, ref.Name, since.UTC().Format(time.TimeOnly))
	}
	if since := c.left[cluster]; c.long(since, now) {
		c.f.violate("admission: %s begins although it is held or not selected since %s", cluster, since.UTC().Format(time.TimeOnly))
	}
	flight := int32(0)
	for _, other := range c.runs {
		if other.Spec.ManagedClustersUpgrade.UID == ref.UID && holdsSlot(other) {
			flight++
		}
	}
	if flight > c.limits[ref.UID] {
		c.f.violate("admission: %s begins, and %d clusters are in flight with %d slots", cluster, flight, c.limits[ref.UID])
	}
	c.canariesFirst(u, run)
}

// canariesFirst checks that no other cluster begins before a canary is complete.
func (c *fleetChecker) canariesFirst(u *fleetv1beta1.ManagedClustersUpgrade, run *fleetv1alpha1.ClusterUpgradeRun) {
	if u.Spec.UpgradeStrategy.CanaryClusters == nil || c.clusters[run.Namespace].Labels[canaryLabel] != "" {
		return
	}
	for key, canary := range c.runs {
		if c.clusters[key.Namespace].Labels[canaryLabel] != "" && canary.Spec.ManagedClustersUpgrade.UID == string(u.UID) && isEnded(canary) &&
			canary.Status.State == fleetv1alpha1.StateComplete {
			return
		}
	}
	c.f.violate("admission: %s begins before a canary is complete", run.Namespace)
}

// requested checks that the agent of a cluster requests a release that it may, once in an attempt.
func (c *fleetChecker) requested(m *member, work *workv1.ManifestWork, release string) {
	if release == "" {
		return
	}
	c.f.report.Commit = true
	attempt := work.Annotations["upgrade.managed.openshift.io/delivery"]
	key := fmt.Sprintf("%s/%s/%s", work.Labels[fleetv1beta1.UpgradeLabel], m.name, attempt)
	if c.requests[key]++; c.requests[key] > 1 && !m.tampered {
		c.f.violate("request: %s is requested from %s %d times by %s", release, m.name, c.requests[key], attempt)
	}
	u := c.upgrades[work.Labels[fleetv1beta1.UpgradeLabel]]
	if u == nil {
		if !m.troubled {
			c.f.violate("request: %s is requested from %s by an upgrade that does not exist", release, m.name)
		}
		return
	}
	if u.Spec.PreUpgradeAction != nil && !m.tampered && !m.jobIsComplete("pre") {
		c.f.violate("request: %s is requested from %s before its pre-action is complete", release, m.name)
	}
}

// jobBegan checks that operators and post-actions come after the platform.
func (c *fleetChecker) jobBegan(m *member, name string) {
	if name == "pre" || m.tampered {
		return
	}
	if !m.has("4.20.6") && !m.has("4.20.7") {
		c.f.violate("order: Job %s runs on %s before its platform is upgraded: %v", name, m.name, m.spoke.History())
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	works "github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

// fleetReaction is the maximum reaction time of an undisturbed hub, including the few seconds that
// the placement controller takes.
const fleetReaction = 20 * time.Second

// fleetChecker checks each change stored on a hub. It knows the objects as stored by the API
// server.
type fleetChecker struct {
	f          *fleet
	invariants invariants.Fleet // shared with the tests of the hub

	upgrades map[string]*fleetv1beta1.ManagedClustersUpgrade // by UID
	clusters map[string]*clusterv1.ManagedCluster
	runs     map[client.ObjectKey]*fleetv1alpha1.ClusterUpgradeRun
	works    map[client.ObjectKey]*workv1.ManifestWork
	leases   map[string]*coordinationv1.Lease // by cluster

	limits      map[string]int32           // the maximum limit of each upgrade, by UID
	blocked     map[string]time.Time       // since when an upgrade is paused, canceled, a dry run, or deleted, by UID
	everBlocked map[string]bool            // whether that was ever the case, by UID
	answered    map[string]time.Time       // when the annotations of an upgrade last changed, by UID
	selected    map[string]time.Time       // since when a Placement selects a cluster
	left        map[string]time.Time       // since when a cluster lacks its label, is on hold, unreachable, or not accepted
	available   map[string]time.Time       // since when a cluster is available
	canaries    map[string]map[string]bool // canaries recorded when an upgrade started, by UID and selector
	chosen      map[string]choice          // canaries that a user has chosen for a retry, by UID of the upgrade
	releases    map[string]bool            // releases requested by any upgrade
	begun       map[string]int             // number of admissions, by upgrade, cluster, and attempt
	admissions  map[string]time.Time       // time of the first admission, by upgrade, cluster, and attempt
	late        map[string]bool            // admissions after the upgrade was deleted, by upgrade, cluster, and attempt
	requests    map[string]int             // number of requests of a release, by upgrade, cluster, and attempt
	reported    map[client.ObjectKey]bool  // runs that hold their slot for too long
	hubWrites   int
}

func newFleetChecker(f *fleet) *fleetChecker {
	return &fleetChecker{
		f: f, upgrades: map[string]*fleetv1beta1.ManagedClustersUpgrade{}, clusters: map[string]*clusterv1.ManagedCluster{},
		runs: map[client.ObjectKey]*fleetv1alpha1.ClusterUpgradeRun{}, works: map[client.ObjectKey]*workv1.ManifestWork{},
		leases: map[string]*coordinationv1.Lease{}, limits: map[string]int32{}, blocked: map[string]time.Time{}, everBlocked: map[string]bool{}, left: map[string]time.Time{},
		answered: map[string]time.Time{}, admissions: map[string]time.Time{}, selected: map[string]time.Time{},
		available: map[string]time.Time{}, releases: map[string]bool{}, canaries: map[string]map[string]bool{}, chosen: map[string]choice{},
		reported: map[client.ObjectKey]bool{}, begun: map[string]int{}, late: map[string]bool{}, requests: map[string]int{},
	}
}

// calm reports whether the hub has been undisturbed for a while.
func (c *fleetChecker) calm(now time.Time) bool {
	return now.After(c.f.disturbed.Add(reaction)) && !c.f.clockStepped && len(c.f.alive()) == 1
}

// long reports whether an undisturbed hub has had enough time to react to a condition that holds
// since the given time. It is false for the zero time.
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
		isAvailable := apimeta.IsStatusConditionTrue(object.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
		mark(c.available, object.Name, isAvailable, change.Time)
		mark(c.left, object.Name, object.Labels[fleetLabel] == "" || len(object.Annotations) > 0 || !isAvailable || !object.Spec.HubAcceptsClient, change.Time)
	case *ocmv1beta1.PlacementDecision:
		c.decided(object, change.Time)
	case *coordinationv1.Lease:
		if cluster, is := strings.CutPrefix(object.Name, lockPrefix); is {
			keepObject(c.leases, cluster, object, gone)
		}
	}
	c.others(change.Time)
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

// mark records since when a condition holds.
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
	if before := c.upgrades[uid]; before != nil && !maps.Equal(before.Annotations, u.Annotations) {
		c.answered[uid] = change.Time
	}
	keepObject(c.upgrades, uid, u, change.New == nil)
	c.releases[u.Spec.ClusterVersion.Version] = true
	c.everBlocked[uid] = c.everBlocked[uid] || u.Spec.Paused || u.Spec.Cancelled
	mark(c.blocked, uid, u.Spec.Paused || u.Spec.Cancelled || u.Spec.DryRun || u.DeletionTimestamp != nil, change.Time)
	c.limits[uid] = max(c.limits[uid], c.limit(u))
	if u.DeletionTimestamp != nil {
		c.f.report.Deletion = true
	}
	if change.New == nil {
		return
	}
	c.fixCanaries(u)
	if stop := u.Status.Stop; stop != nil && slices.ContainsFunc(u.Spec.DependsOn, func(d fleetv1beta1.Dependency) bool {
		return strings.Contains(stop.Message, fmt.Sprintf("ManagedClustersUpgrade %s ", d.Name)) || strings.Contains(stop.Message, fmt.Sprintf("ManagedClustersUpgrade %s/%s;", u.Namespace, d.Name))
	}) {
		c.f.violate("stop: %s is stopped by what it waits for: %s", u.Name, stop.Message)
	}
	c.invariants.Interleaved = c.isInterleaved(change.Time)
	if err := c.invariants.Upgrade(u); err != nil {
		c.f.violate("status of %s: %v", u.Name, err)
	}
}

// isInterleaved reports whether two leaders make requests, or a request of one of them may still be served.
func (c *fleetChecker) isInterleaved(now time.Time) bool {
	return len(c.f.alive()) > 1 || now.Before(c.f.interleavedUntil.Add(maxStall))
}

// limit returns the maximum number of clusters in flight.
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
	if change.Actor == hubActor && invariants.Begins(before, run) {
		c.begins(change.Time, before, run)
	}
	if before != nil && !before.Spec.AdmissionTime.IsZero() && run.Spec.AdmissionTime.IsZero() && before.Spec.Attempt == run.Spec.Attempt {
		c.withdrawn(change.Time, before, run)
	}
	ended := isEnded(run)
	if m := c.f.member(run.Namespace); ended && run.Status.State == fleetv1alpha1.StateComplete && !m.forges && !m.has(run.Spec.ClusterVersion.Version) {
		c.f.violate("outcome: %s is Complete at %s, but it has %v", run.Namespace, run.Spec.ClusterVersion.Version, m.spoke.History())
	}
	if before != nil && !isEnded(before) && ended {
		c.soaked(change.Time, run)
	}
	if before != nil && isEnded(before) && before.Spec.Attempt == run.Spec.Attempt && !ended {
		c.f.violate("outcome: %s has ended as %s and goes on", run.Namespace, before.Status.State)
	}
	if ended && run.Status.State == fleetv1alpha1.StateComplete {
		c.f.report.Workers = true
	}
	if before != nil && holdsFinalizer(before) && !holdsFinalizer(run) && run.DeletionTimestamp == nil { // after a deletion, delivered upgrades continue
		c.released(run)
	}
}

// begins checks a run that admits its cluster.
func (c *fleetChecker) begins(now time.Time, before, run *fleetv1alpha1.ClusterUpgradeRun) {
	c.runs[client.ObjectKeyFromObject(run)] = run
	c.admitted(now, run)
	c.looked(before, run)
	c.canaryFixed(before, run)
	u := c.upgrades[run.Spec.ManagedClustersUpgrade.UID]
	if u == nil || !c.calm(now) {
		return
	}
	if err := c.invariants.AfterStop(u, before, run); err != nil {
		c.f.violate("admission: %v", err)
	}
}

// withdrawn checks that an admission is withdrawn only while nothing is requested from the cluster
// and, unless a user holds the cluster, before a pre-action has begun on it.
func (c *fleetChecker) withdrawn(now time.Time, before, run *fleetv1alpha1.ClusterUpgradeRun) {
	acted := c.f.member(run.Namespace).actedAt
	if before.Status.Reason != engine.ReasonPaused && !acted.Before(before.Spec.AdmissionTime.Time) && c.long(acted, now) {
		c.f.violate("admission: that of %s is withdrawn (%s), and its pre-action has begun at %s", run.Namespace, before.Status.Reason, acted.UTC().Format(time.TimeOnly))
	}
	c.begun[admissionKey(run)]--
	work := c.works[client.ObjectKey{Namespace: run.Namespace, Name: works.UpgradeName(run.Namespace)}]
	uid := run.Spec.ManagedClustersUpgrade.UID
	if work != nil && work.Labels[fleetv1beta1.UpgradeLabel] == uid && work.Annotations[works.Annotation] == fmt.Sprintf("%d/%s", run.Spec.Attempt, works.FormApply) {
		c.f.violate("admission: that of %s is withdrawn although %s is requested", run.Namespace, run.Spec.ClusterVersion.Version)
	}
}

// admissionKey identifies an attempt at the upgrade of a cluster.
func admissionKey(run *fleetv1alpha1.ClusterUpgradeRun) string {
	return fmt.Sprintf("%s/%s/%d", run.Spec.ManagedClustersUpgrade.UID, run.Namespace, run.Spec.Attempt)
}

// soaked checks that a cluster is complete only after it has reported to the hub for the whole soak
// time.
func (c *fleetChecker) soaked(now time.Time, run *fleetv1alpha1.ClusterUpgradeRun) {
	soak, err := time.ParseDuration(string(run.Spec.Timeouts.Soak))
	if err != nil || run.Spec.Outcome != nil || run.Status.State != fleetv1alpha1.StateComplete || run.Status.Reason == fleetv1alpha1.ReasonLateSuccess || !c.calm(now) {
		return
	}
	if m := c.f.member(run.Namespace); m.offline && !m.forges && c.long(m.silent, now) {
		c.f.violate("soak: %s is Complete after a soak of %s, and its agent is silent since %s", run.Namespace, soak, m.silent.UTC().Format(time.TimeOnly))
	}
	if since := c.available[run.Namespace]; since.IsZero() || now.Sub(since) < soak-fleetReaction {
		c.f.violate("soak: %s is Complete after a soak of %s, and is available since %s", run.Namespace, soak, since.UTC().Format(time.TimeOnly))
	}
}

// looked checks that the hub observes clusters that others wait for and clusters that failed
// before.
func (c *fleetChecker) looked(before, run *fleetv1alpha1.ClusterUpgradeRun) {
	if outcome := run.Spec.Outcome; outcome != nil && outcome.State == fleetv1alpha1.StateComplete && (run.Spec.Canary || before != nil && !before.Spec.AdmissionTime.IsZero()) {
		c.f.violate("look: %s is %s without a look at it", run.Namespace, outcome.Reason)
	}
}

// released checks that a finished run has withdrawn a request that its cluster has not accepted.
func (c *fleetChecker) released(run *fleetv1alpha1.ClusterUpgradeRun) {
	m, release := c.f.member(run.Namespace), run.Spec.ClusterVersion.Version
	accepted := slices.ContainsFunc(m.spoke.History(), func(line string) bool { return strings.HasPrefix(line, release+" ") })
	if m.spoke.Desired() == release && !accepted && !m.everOffline && !c.f.clockStepped {
		c.f.violate("withdrawal: the run of %s has ended (%s), and %s is requested, which the cluster has not accepted", run.Namespace, run.Status.Reason, release)
	}
}

func holdsFinalizer(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return slices.Contains(run.Finalizers, fleetv1alpha1.Finalizer)
}

// isEnded reports whether the attempt in the spec of a run has ended.
func isEnded(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run.Status.Attempt == run.Spec.Attempt &&
		(run.Status.State == fleetv1alpha1.StateComplete || run.Status.State == fleetv1alpha1.StateFailed)
}

// holdsSlot reports whether a run is in flight or cleaning up.
func holdsSlot(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run.Spec.Outcome == nil && !run.Spec.AdmissionTime.IsZero() && (!isEnded(run) || holdsFinalizer(run))
}

// admitted checks that a cluster may start now, and starts only once per attempt.
func (c *fleetChecker) admitted(now time.Time, run *fleetv1alpha1.ClusterUpgradeRun) {
	ref, cluster := &run.Spec.ManagedClustersUpgrade, run.Namespace
	key := admissionKey(run)
	u := c.upgrades[ref.UID]
	if (u == nil || u.DeletionTimestamp != nil) && c.isInterleaved(now) {
		c.late[key] = true // by a request that was served late; nothing may be requested, and at rest the run must be gone
		return
	}
	if c.admissions[key].IsZero() {
		c.admissions[key] = now
	}
	if c.begun[key]++; c.begun[key] > 1 {
		c.f.violate("admission: %s begins %d times in attempt %d of %s", cluster, c.begun[key], run.Spec.Attempt, ref.Name)
	}
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
	for _, other := range c.runs {
		if other.Namespace == cluster && other.Spec.ManagedClustersUpgrade.UID != ref.UID && other.Spec.Outcome == nil && !other.Spec.AdmissionTime.IsZero() && !isEnded(other) &&
			other.DeletionTimestamp == nil && c.long(other.Spec.AdmissionTime.Time, now) {
			c.f.violate("admission: %s begins although %s upgrades it", cluster, other.Spec.ManagedClustersUpgrade.Name)
		}
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
	c.canariesFirst(now, u, run)
	c.chosenFirst(u, run)
}

// canariesFirst checks that no other cluster starts before all fixed canaries are complete. A user may
// forget the failure of a canary or continue without it for one attempt. A cluster that is not
// selected before it has started in the attempt is not a canary.
func (c *fleetChecker) canariesFirst(now time.Time, u *fleetv1beta1.ManagedClustersUpgrade, run *fleetv1alpha1.ClusterUpgradeRun) {
	if !admission.AreCanariesFixed(u) || run.Spec.Canary || now.Sub(c.answered[string(u.UID)]) < fleetReaction {
		return
	}
	for _, canary := range c.runs {
		of := canary.Spec.ManagedClustersUpgrade.UID == string(u.UID) && canary.Spec.Canary
		if !of || invariants.Names(u, fleetv1beta1.ContinueWithoutCanaryAnnotation, canary.Namespace, run.Spec.Attempt) {
			continue
		}
		hasBegun := !canary.Spec.AdmissionTime.IsZero() && canary.Spec.Attempt >= run.Spec.Attempt
		done := isComplete(canary)
		hasFailed := isEnded(canary) && !done || canary.Spec.Outcome != nil
		isForgotten := hasFailed && invariants.Names(u, fleetv1beta1.ForgetFailureAnnotation, canary.Namespace, run.Spec.Attempt)
		isSelected := c.long(c.selected[selectionKey(placementOf(u), canary.Namespace)], now)
		if !done && !isForgotten && (hasBegun || isSelected || isAwaited(u, canary)) {
			c.f.violate("admission: %s begins before the canary %s is complete: %s: %s", run.Namespace, canary.Namespace, canary.Status.State, canary.Status.Reason)
			return
		}
	}
}

// selectionKey identifies a cluster selected by a Placement.
func selectionKey(placement, cluster string) string { return placement + "/" + cluster }

// decided records since when the decisions of a Placement contain each cluster.
func (c *fleetChecker) decided(decision *ocmv1beta1.PlacementDecision, now time.Time) {
	for _, m := range c.f.members {
		isSelected := slices.ContainsFunc(decision.Status.Decisions, func(d ocmv1beta1.ClusterDecision) bool { return d.ClusterName == m.name })
		mark(c.selected, selectionKey(decision.Labels[ocmv1beta1.PlacementLabel], m.name), isSelected, now)
	}
}

// requested checks that the agent of a cluster requests only permitted releases, once per attempt.
func (c *fleetChecker) requested(m *member, work *workv1.ManifestWork, release string) {
	if release == "" {
		return
	}
	c.f.report.Commit = true
	attempt := work.Annotations["upgrade.managed.openshift.io/delivery"]
	key := fmt.Sprintf("%s/%s/%s", work.Labels[fleetv1beta1.UpgradeLabel], m.name, attempt)
	if c.requests[key]++; c.requests[key] > 1 {
		c.f.violate("request: %s is requested from %s %d times by %s", release, m.name, c.requests[key], attempt)
	}
	if c.late[strings.TrimSuffix(key, "/"+string(works.FormApply))] {
		c.f.violate("request: %s is requested from %s, which has begun after its upgrade was deleted", release, m.name)
	}
	u := c.upgrades[work.Labels[fleetv1beta1.UpgradeLabel]]
	if u == nil {
		if !m.troubled {
			c.f.violate("request: %s is requested from %s by an upgrade that does not exist", release, m.name)
		}
		return
	}
	if u.Spec.PreUpgradeAction != nil && !c.preActionSucceeded(m, u, attempt) {
		c.f.violate("request: %s is requested from %s by %s before a Job of its pre-action is complete", release, m.name, attempt)
	}
}

// preActionSucceeded reports whether a Job of the pre-upgrade action has succeeded that started
// after the cluster was first admitted in the attempt of a delivery. A Job left by an earlier
// upgrade does not count.
func (c *fleetChecker) preActionSucceeded(m *member, u *fleetv1beta1.ManagedClustersUpgrade, deliveredBy string) bool {
	attempt, _, _ := strings.Cut(deliveredBy, "/")
	admitted := c.admissions[fmt.Sprintf("%s/%s/%s", u.UID, m.name, attempt)]
	for name, began := range m.succeeded {
		if strings.HasPrefix(name, "pre") && !admitted.IsZero() && !began.Before(admitted) {
			return true
		}
	}
	return false
}

// mayBeginAgain allows the cluster of a run that a user has deleted to start once more in its
// attempt.
func (c *fleetChecker) mayBeginAgain(run *fleetv1alpha1.ClusterUpgradeRun) {
	delete(c.begun, admissionKey(run))
	c.mayRequestAgain(c.f.member(run.Namespace))
}

// mayRequestAgain allows the agent of a cluster to request a release once more in each attempt,
// because another client has deleted its work or changed its ClusterVersion.
func (c *fleetChecker) mayRequestAgain(m *member) {
	for key := range c.requests {
		if strings.Contains(key, "/"+m.name+"/") {
			delete(c.requests, key)
		}
	}
}

// jobBegan checks that operators and post-upgrade actions follow the platform.
func (c *fleetChecker) jobBegan(m *member, name string) {
	if strings.HasPrefix(name, "pre") || m.forges {
		return
	}
	upgraded := false
	for release := range c.releases {
		upgraded = upgraded || m.has(release)
	}
	if !upgraded {
		c.f.violate("order: Job %s runs on %s before its platform is upgraded: %v", name, m.name, m.spoke.History())
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

// endReasons lists the final reasons for which no cluster starts unless a user acts.
var endReasons = []string{
	fleetv1beta1.ReasonFinished, fleetv1beta1.ReasonCancelled, fleetv1beta1.ReasonCanaryFailed, fleetv1beta1.ReasonMaxFailuresExceeded,
	fleetv1beta1.ReasonCanaryNotAvailable, fleetv1beta1.ReasonNoCanary,
	fleetv1beta1.ReasonNoClustersSelected, fleetv1beta1.ReasonCanaryNotSelected, fleetv1beta1.ReasonRecordsLost,
}

// unrest describes something that has not finished, or returns an empty string.
func (c *fleetChecker) unrest() string {
	for _, m := range c.f.members {
		if m.pending || m.away || m.isBusy() {
			return fmt.Sprintf("cluster %s goes on: %v", m.name, m.spoke.History())
		}
	}
	if c.f.placements.pending { // a cluster that has returned is about to be selected again
		return "the placement controller is about to decide"
	}
	for _, uid := range slices.Sorted(maps.Keys(c.upgrades)) {
		if left := c.unrestOf(c.upgrades[uid]); left != "" {
			return left
		}
	}
	for _, key := range sortedKeys(c.runs) {
		run := c.runs[key]
		switch {
		case c.upgrades[run.Spec.ManagedClustersUpgrade.UID] == nil:
			return fmt.Sprintf("the run of %s is left, and its upgrade is gone", key)
		case run.Spec.AdmissionTime.IsZero() && run.DeletionTimestamp == nil: // a canary that has not started
		case run.DeletionTimestamp != nil || !isEnded(run) || holdsSlot(run):
			return fmt.Sprintf("the run of %s has not ended: %s %s: %s; deleted %t, finalizers %v", key, run.Status.State, run.Status.Reason, run.Status.Message, run.DeletionTimestamp != nil, run.Finalizers)
		}
	}
	for _, key := range sortedKeys(c.works) {
		if left := c.leftWork(key); left != "" {
			return left
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.leases)) {
		if holder := c.leases[name].Spec.HolderIdentity; holder != nil && *holder != "" {
			return fmt.Sprintf("the lock of %s is held by %s", name, *holder)
		}
	}
	return ""
}

func sortedKeys[V any](all map[client.ObjectKey]V) []client.ObjectKey {
	return slices.SortedFunc(maps.Keys(all), func(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) })
}

// unrestOf describes why an upgrade has not finished. A finished upgrade has a status that matches
// all runs and explains why no other cluster starts.
func (c *fleetChecker) unrestOf(u *fleetv1beta1.ManagedClustersUpgrade) string {
	admitting := apimeta.FindStatusCondition(u.Status.Conditions, fleetv1beta1.ConditionAdmitting)
	counters := u.Status.ClustersSummery
	switch {
	case u.DeletionTimestamp != nil:
		return fmt.Sprintf("%s is being deleted: %+v", u.Name, admitting)
	case admitting == nil || counters == nil || u.Status.ObservedGeneration != u.Generation:
		return fmt.Sprintf("the status of %s is not that of its spec", u.Name)
	case admitting.Reason == fleetv1beta1.ReasonHeld && (c.awaitsOnlyStrangers(u) || c.awaitsAnother(u)):
	case admitting.Reason == fleetv1beta1.ReasonDependencyMissing && c.awaitsAnother(u):
	case !slices.Contains(endReasons, admitting.Reason):
		return fmt.Sprintf("%s goes on: %s: %s; %+v", u.Name, admitting.Reason, admitting.Message, *counters)
	}
	if complete := apimeta.FindStatusCondition(u.Status.Conditions, fleetv1beta1.ConditionComplete); complete.Status == metav1.ConditionTrue {
		c.f.report.Cleanup = true
		return "" // it has finished
	}
	var want fleetv1beta1.ClustersSummary
	for _, m := range c.f.members {
		run := c.runOf(u, m.name)
		selected := c.f.placements.selects(u, m.name)
		current := run != nil && run.Spec.Attempt == u.Status.Attempt
		switch {
		case run != nil && run.Status.State == fleetv1alpha1.StateComplete && (current || run.Status.Reason != fleetv1alpha1.ReasonLateSuccess):
			want.Complete++
		case current && run.Status.State == fleetv1alpha1.StateFailed && (selected || run.Spec.Outcome == nil && !invariants.Names(u, fleetv1beta1.ForgetFailureAnnotation, m.name, run.Spec.Attempt)):
			want.Failed++
		case selected, isAwaited(u, run):
			want.Pending++
		}
	}
	if counters.Complete != want.Complete || counters.Failed != want.Failed || counters.Pending != want.Pending {
		return fmt.Sprintf("%s counts %+v, and the clusters are %+v", u.Name, *counters, want)
	}
	c.f.report.Cleanup = true
	return ""
}

// isAwaited reports whether a retry waits for a canary even if it is not selected, because it has
// failed in an earlier attempt. The run may be nil.
func isAwaited(u *fleetv1beta1.ManagedClustersUpgrade, run *fleetv1alpha1.ClusterUpgradeRun) bool {
	attempt := max(1, u.Status.Attempt)
	if run == nil || !run.Spec.Canary || run.Spec.Outcome != nil || !admission.AreCanariesFixed(u) ||
		invariants.Names(u, fleetv1beta1.ContinueWithoutCanaryAnnotation, run.Namespace, attempt) {
		return false
	}
	if run.Spec.AdmissionTime.IsZero() {
		return len(run.Status.History) > 0
	}
	isLate := run.Status.Reason == fleetv1alpha1.ReasonLateSuccess
	return run.Spec.Attempt < attempt && (run.Status.State != fleetv1alpha1.StateComplete || isLate)
}

// awaitsAnother reports whether an upgrade depends on one that does not exist or is not complete.
func (c *fleetChecker) awaitsAnother(u *fleetv1beta1.ManagedClustersUpgrade) bool {
	if len(u.Spec.DependsOn) == 0 {
		return false
	}
	for _, other := range c.upgrades {
		if other.Name == u.Spec.DependsOn[0].Name && apimeta.IsStatusConditionTrue(other.Status.Conditions, fleetv1beta1.ConditionComplete) {
			return false
		}
	}
	return true
}

// runOf returns the run of a cluster, or nil.
func (c *fleetChecker) runOf(u *fleetv1beta1.ManagedClustersUpgrade, cluster string) *fleetv1alpha1.ClusterUpgradeRun {
	for key, run := range c.runs {
		if key.Namespace == cluster && run.Spec.ManagedClustersUpgrade.UID == string(u.UID) {
			return run
		}
	}
	return nil
}

// leftWork returns the reason why a work must not be left behind, or an empty string.
func (c *fleetChecker) leftWork(key client.ObjectKey) string {
	work := c.works[key]
	u := c.upgrades[work.Labels[fleetv1beta1.UpgradeLabel]]
	if u == nil {
		return fmt.Sprintf("work %s is left, and its upgrade is gone", key)
	}
	run := c.runOf(u, key.Namespace)
	if run == nil || run.Status.State == fleetv1alpha1.StateComplete && key.Name == key.Namespace+"-cluster-upgrade" {
		return fmt.Sprintf("work %s is left, and its cluster is complete or has no run", key)
	}
	return ""
}

// quiet checks the final state of each cluster, and that the hub makes no more writes.
func (c *fleetChecker) quiet() {
	if len(c.f.report.Violations) > 0 {
		return
	}
	waits := c.f.clockStepped      // times in the future are replaced in a later reconcile
	for _, u := range c.upgrades { // after the stall timeout, the status reports that the upgrade is slow
		admitting := apimeta.FindStatusCondition(u.Status.Conditions, fleetv1beta1.ConditionAdmitting)
		waits = waits || admitting != nil && admitting.Reason == fleetv1beta1.ReasonHeld
	}
	if waits {
		c.f.wait(time.Hour)
	}
	c.canariesLeft()
	writes := c.hubWrites
	if c.f.wait(30*time.Minute) && c.hubWrites != writes {
		c.f.violate("quiet: the hub makes %d writes although nothing is left to do", c.hubWrites-writes)
	}
	for _, key := range sortedKeys(c.runs) {
		if run := c.runs[key]; run.Status.State == fleetv1alpha1.StateFailed && !c.mayFail(run) {
			c.f.violate("outcome: %s has failed without a cause: %s: %s", key, run.Status.Reason, run.Status.Message)
		}
	}
	for _, err := range c.f.world.Invalid(hubActor) {
		c.f.violate("invalid: %v", err)
	}
}

// canariesLeft checks that an upgrade is not without a canary while a cluster is selected that a user has chosen.
func (c *fleetChecker) canariesLeft() {
	for uid, chosen := range c.chosen {
		u := c.upgrades[uid]
		if u == nil {
			continue
		}
		admitting := apimeta.FindStatusCondition(u.Status.Conditions, fleetv1beta1.ConditionAdmitting)
		for _, name := range slices.Sorted(maps.Keys(chosen.clusters)) {
			since := c.selected[selectionKey(placementOf(u), name)]
			if admitting != nil && admitting.Reason == fleetv1beta1.ReasonNoCanary && !since.IsZero() && !since.After(chosen.at) {
				c.f.violate("chosen: %s has no canary, and %s was chosen", u.Name, name)
			}
		}
	}
}

// mayFail reports whether anything that has happened may explain the failure of a run.
func (c *fleetChecker) mayFail(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	m := c.f.member(run.Namespace)
	other := false // another client has upgraded the cluster
	for _, line := range m.spoke.History() {
		release, _, _ := strings.Cut(line, " ")
		other = other || release != run.Spec.ClusterVersion.Version && release != installed
	}
	return m.troubled || other || c.f.clockStepped || c.everBlocked[run.Spec.ManagedClustersUpgrade.UID]
}

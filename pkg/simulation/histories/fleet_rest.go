// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
)

// endReasons are the reasons for which no cluster begins in the end, unless a person acts.
var endReasons = []string{
	fleetv1beta1.ReasonFinished, fleetv1beta1.ReasonCancelled, fleetv1beta1.ReasonCanaryFailed, fleetv1beta1.ReasonMaxFailuresExceeded,
	fleetv1beta1.ReasonNoClustersSelected, fleetv1beta1.ReasonCanaryNotSelected, fleetv1beta1.ReasonRecordsLost,
}

// unrest returns what has not come to its end.
func (c *fleetChecker) unrest() string {
	for _, m := range c.f.members {
		if m.pending || m.isBusy() {
			return fmt.Sprintf("cluster %s goes on: %v", m.name, m.spoke.History())
		}
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

// unrestOf returns what of an upgrade has not come to its end: its status shows each cluster as its run
// is, and why no other begins.
func (c *fleetChecker) unrestOf(u *fleetv1beta1.ManagedClustersUpgrade) string {
	admitting := apimeta.FindStatusCondition(u.Status.Conditions, fleetv1beta1.ConditionAdmitting)
	counters := u.Status.ClustersSummery
	switch {
	case u.DeletionTimestamp != nil:
		return fmt.Sprintf("%s is being deleted: %+v", u.Name, admitting)
	case admitting == nil || counters == nil || u.Status.ObservedGeneration != u.Generation:
		return fmt.Sprintf("the status of %s is not that of its spec", u.Name)
	case !slices.Contains(endReasons, admitting.Reason):
		return fmt.Sprintf("%s goes on: %s: %s; %+v", u.Name, admitting.Reason, admitting.Message, *counters)
	}
	var want fleetv1beta1.ClustersSummary
	for _, m := range c.f.members {
		run := c.runOf(u, m.name)
		selected := c.clusters[m.name].Labels[fleetLabel] != ""
		current := run != nil && run.Spec.Attempt == u.Status.Attempt
		switch {
		case run != nil && run.Status.State == fleetv1alpha1.StateComplete:
			want.Complete++
		case current && run.Status.State == fleetv1alpha1.StateFailed && selected:
			want.Failed++
		case selected:
			want.Pending++
		}
	}
	if counters.Complete != want.Complete || counters.Failed != want.Failed || counters.Pending != want.Pending {
		return fmt.Sprintf("%s counts %+v, and the clusters are %+v", u.Name, *counters, want)
	}
	c.f.report.Cleanup = true
	return ""
}

// runOf returns the run of a cluster; nil means that there is none.
func (c *fleetChecker) runOf(u *fleetv1beta1.ManagedClustersUpgrade, cluster string) *fleetv1alpha1.ClusterUpgradeRun {
	for key, run := range c.runs {
		if key.Namespace == cluster && run.Spec.ManagedClustersUpgrade.UID == string(u.UID) {
			return run
		}
	}
	return nil
}

// leftWork returns why a work must not be left; empty means that it may.
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

// quiet checks the end of each cluster, and that the hub writes nothing any more.
func (c *fleetChecker) quiet() {
	if len(c.f.report.Violations) > 0 {
		return
	}
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

// mayFail reports whether anything that has happened may be why a run failed.
func (c *fleetChecker) mayFail(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	m := c.f.member(run.Namespace)
	other := map[string]string{"4.20.6": "4.20.7", "4.20.7": "4.20.6"}[run.Spec.ClusterVersion.Version] // of the other upgrade
	return m.troubled || m.tampered || m.has(other) || c.f.clockStepped || c.everBlocked[run.Spec.ManagedClustersUpgrade.UID]
}

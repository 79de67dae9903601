// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	works "github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

// maxSlot is the maximum time that a cluster may hold a slot: the sum of all its timeouts, plus the
// interruptions that extend them.
const maxSlot = 10 * time.Hour

// strangerActions are actions of a managed cluster with the permissions of its own agent on the
// hub. Claims that a cluster makes about itself must not affect others.
func strangerActions() []action[*fleet] {
	return []action[*fleet]{
		{"a cluster labels itself a canary", 2, func(f *fleet) {
			f.speak(func(c *clusterv1.ManagedCluster) { metav1.SetMetaDataLabel(&c.ObjectMeta, canaryLabel, "true") })
		}},
		{"a cluster is no canary by its labels any longer", 1, func(f *fleet) {
			f.speak(func(c *clusterv1.ManagedCluster) { delete(c.Labels, canaryLabel) })
		}},
		{"a cluster says that it is the cluster of the hub", 2, func(f *fleet) {
			f.speak(func(c *clusterv1.ManagedCluster) { metav1.SetMetaDataLabel(&c.ObjectMeta, "local-cluster", "true") })
		}},
		{"a cluster holds itself for ever", 3, func(f *fleet) {
			m := f.anyMember()
			f.world.Logf("cluster %s", m.name)
			m.holdItself()
		}},
		{"a cluster writes a Lease in its namespace", 2, (*fleet).forgeLease},
		{"a cluster reports that it is upgraded", 2, (*fleet).forgeReport},
	}
}

// speak makes a cluster change its own ManagedCluster.
func (f *fleet) speak(change func(*clusterv1.ManagedCluster)) {
	m := f.anyMember()
	f.world.Logf("cluster %s", m.name)
	m.speak(change)
}

func (m *member) speak(change func(*clusterv1.ManagedCluster)) {
	cluster := &clusterv1.ManagedCluster{}
	if err := m.client.Get(context.Background(), client.ObjectKey{Name: m.name}, cluster); err != nil {
		return
	}
	change(cluster)
	if err := m.client.Update(context.Background(), cluster); err != nil {
		m.fleet.world.Logf("rejected: %s", firstLine(err))
	}
}

func (m *member) holdItself() {
	m.holdsItself = true
	m.speak(func(c *clusterv1.ManagedCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, upgradev1alpha1.HoldAnnotation, "never")
	})
}

// holdBegun makes the cluster hold itself, if it should, between its admission and the request of its release.
func (m *member) holdBegun() {
	if m.holdsNext && m.fleet.checker.works[client.ObjectKey{Namespace: m.name, Name: works.PreflightName(m.name)}] != nil {
		m.holdsNext = false
		m.holdItself()
	}
}

// forgeLease writes the Lease that earlier releases used as the lock of a cluster, held by an
// upgrade that does not exist.
func (f *fleet) forgeLease() {
	m := f.anyMember()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: m.name, Name: "cluster-upgrade"}}
	lease.Spec.HolderIdentity = new(fleetv1alpha1.GroupVersion.Group + "/ClusterUpgradeRun/" + m.name + "/never/00000000")
	lease.Spec.RenewTime = &metav1.MicroTime{Time: f.world.Now()}
	if err := m.client.Create(context.Background(), lease); err != nil {
		f.world.Logf("rejected: %s", firstLine(err))
	}
}

// forgeReport makes a cluster's agent report in all works that the release is installed.
func (f *fleet) forgeReport() {
	m, list := f.anyMember(), &workv1.ManifestWorkList{}
	m.troubled, m.forges = true, true
	f.world.Logf("cluster %s", m.name)
	if err := m.client.List(context.Background(), list, client.InNamespace(m.name)); err != nil {
		return
	}
	for i := range list.Items {
		work := &list.Items[i]
		for j := range work.Status.ResourceStatus.Manifests {
			values := work.Status.ResourceStatus.Manifests[j].StatusFeedbacks.Values
			for k := range values {
				if v := &values[k]; (v.Name == "state" || v.Name == "targetState") && v.Value.String != nil {
					v.Value.String = new("Completed")
				}
			}
		}
		if err := m.client.Status().Update(context.Background(), work); err != nil {
			f.world.Logf("rejected: %s", firstLine(err))
		}
	}
}

// others checks that no cluster delays the upgrades of others for longer than its timeouts allow,
// and that the canaries have not changed since the start.
func (c *fleetChecker) others(now time.Time) {
	for key, run := range c.runs {
		began := run.Spec.AdmissionTime.Time
		u := c.upgrades[run.Spec.ManagedClustersUpgrade.UID]
		if holdsSlot(run) && u != nil && !c.everBlocked[string(u.UID)] && now.Sub(began) > maxSlot && c.calm(began) && c.calm(now) && !c.reported[key] {
			c.reported[key] = true
			c.f.violate("others: %s holds its slot since %s: %s: %s", key.Namespace, began.UTC().Format(time.TimeOnly), run.Status.Reason, run.Status.Message)
		}
	}
}

// fixCanaries records the canaries of an upgrade once its status identifies them: the clusters with
// a canary run. A user who changes the selector has them fixed again.
func (c *fleetChecker) fixCanaries(u *fleetv1beta1.ManagedClustersUpgrade) {
	if !admission.AreCanariesFixed(u) || c.canaries[canariesKey(u)] != nil {
		return
	}
	fixed := map[string]bool{}
	for key, run := range c.runs {
		if run.Spec.ManagedClustersUpgrade.UID == string(u.UID) && run.Spec.Canary {
			fixed[key.Namespace] = true
		}
	}
	c.canaries[canariesKey(u)] = fixed
}

// canariesKey identifies the canaries of an upgrade that its status identifies.
func canariesKey(u *fleetv1beta1.ManagedClustersUpgrade) string {
	return string(u.UID) + "/" + u.Status.Canaries.SelectorHash
}

// canaryFixed checks that only the recorded canaries start as canaries, and that they remain
// canaries: changing labels must have no effect.
func (c *fleetChecker) canaryFixed(before, run *fleetv1alpha1.ClusterUpgradeRun) {
	u := c.upgrades[run.Spec.ManagedClustersUpgrade.UID]
	if u == nil || !admission.AreCanariesFixed(u) {
		return
	}
	fixed := c.canaries[canariesKey(u)]
	switch {
	case fixed != nil && run.Spec.Canary && !fixed[run.Namespace]:
		c.f.violate("others: %s begins as a canary, and the canaries are %v", run.Namespace, slices.Sorted(maps.Keys(fixed)))
	case before != nil && before.Spec.Canary && !run.Spec.Canary:
		c.f.violate("others: %s was fixed as a canary, and begins as another cluster", run.Namespace)
	}
}

// choice is what a user has chosen as the canaries of an attempt.
type choice struct {
	attempt  int32
	at       time.Time
	clusters map[string]bool
}

// choose records the canaries that a user has chosen for the attempt of an upgrade while the hub is
// undisturbed, among the selected clusters. One that is complete as a canary has done its part.
func (c *fleetChecker) choose(u *fleetv1beta1.ManagedClustersUpgrade, clusters map[string]bool) {
	now := c.f.world.Now()
	delete(c.chosen, string(u.UID))
	if !c.calm(now) {
		return
	}
	maps.DeleteFunc(clusters, func(name string, _ bool) bool {
		since, run := c.selected[selectionKey(placementOf(u), name)], c.runOf(u, name)
		return since.IsZero() || now.Sub(since) < reaction || run == nil || run.Spec.Canary && isComplete(run)
	})
	c.chosen[string(u.UID)] = choice{u.Spec.Attempt, now, clusters}
}

// isComplete reports whether an attempt has ended as Complete, and not late.
func isComplete(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return isEnded(run) && run.Status.State == fleetv1alpha1.StateComplete && run.Status.Reason != fleetv1alpha1.ReasonLateSuccess
}

// chosenFirst checks that a canary that a user has chosen starts as one, and that no other cluster
// starts before the canary is complete in the attempt that it was chosen for, or a later one. As in
// canariesFirst, a user may forget its failure or continue without it, and one that was deselected
// since is not a canary.
func (c *fleetChecker) chosenFirst(u *fleetv1beta1.ManagedClustersUpgrade, run *fleetv1alpha1.ClusterUpgradeRun) {
	chosen := c.chosen[string(u.UID)]
	if run.Spec.Attempt < chosen.attempt {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(chosen.clusters)) {
		since := c.selected[selectionKey(placementOf(u), name)]
		if since.IsZero() || since.After(chosen.at) || invariants.Names(u, fleetv1beta1.ContinueWithoutCanaryAnnotation, name, run.Spec.Attempt) ||
			invariants.Names(u, fleetv1beta1.ForgetFailureAnnotation, name, run.Spec.Attempt) {
			continue
		}
		canary := c.runOf(u, name)
		done := canary != nil && canary.Spec.Attempt >= chosen.attempt && isComplete(canary)
		switch {
		case name == run.Namespace && !run.Spec.Canary:
			c.f.violate("chosen: %s was chosen as a canary, and begins as another cluster", name)
		case !run.Spec.Canary && !done:
			c.f.violate("chosen: %s begins before %s is complete, which was chosen as a canary for attempt %d", run.Namespace, name, chosen.attempt)
		}
	}
}

// awaitsOnlyStrangers reports whether all clusters that have not started are holding themselves.
func (c *fleetChecker) awaitsOnlyStrangers(u *fleetv1beta1.ManagedClustersUpgrade) bool {
	found := false
	for _, m := range c.f.members {
		run := c.runOf(u, m.name)
		pending := run == nil || run.Spec.AdmissionTime.IsZero() || run.Spec.Attempt < u.Status.Attempt &&
			(run.Status.State == fleetv1alpha1.StateFailed || run.Status.Reason == fleetv1alpha1.ReasonLateSuccess)
		switch {
		case !pending || !c.f.placements.selects(u, m.name):
		case !m.holdsItself:
			return false
		default:
			found = true
		}
	}
	return found
}

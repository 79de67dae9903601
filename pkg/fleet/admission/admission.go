// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/status"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Fleet is what the plan and the members of an upgrade are made of.
type Fleet struct {
	// Upgrade is the object.
	Upgrade *fleetv1beta1.ManagedClustersUpgrade
	// Selection contains the selected clusters.
	Selection selection.Selection
	// Clusters are all ManagedClusters, by name.
	Clusters map[string]*clusterv1.ManagedCluster
	// Runs are the runs of the upgrade, by cluster.
	Runs map[string]*fleetv1alpha1.ClusterUpgradeRun
	// Dependencies are the upgrades that come first.
	Dependencies Dependencies
	// Deselected is since when consistent selections lack a cluster; clusters that are selected are
	// absent.
	Deselected map[string]time.Time
	// Refused is why the run of a cluster cannot be written, by cluster.
	Refused map[string]string
	// RecordsLost describes how records of begun clusters were lost; empty means that none were.
	RecordsLost string
	// Now is the time.
	Now time.Time
}

// Attempt returns the attempt that the spec requests.
func Attempt(upgrade *fleetv1beta1.ManagedClustersUpgrade) int32 { return max(1, upgrade.Spec.Attempt) }

// Plan returns the plan of the spec and of its surroundings.
func (f *Fleet) Plan(windows *Windows) rollout.Plan {
	spec := &f.Upgrade.Spec
	return rollout.Plan{
		Type:           rollout.Type(spec.UpgradeStrategy.RolloutType),
		MaxConcurrency: spec.UpgradeStrategy.MaxConcurrency, MaxFailures: spec.UpgradeStrategy.MaxFailures,
		RequireCanaries: spec.UpgradeStrategy.CanaryClusters != nil,
		Paused:          spec.Paused, Cancelled: spec.Cancelled, DryRun: spec.DryRun,
		RecordsLost:          f.RecordsLost,
		SelectionUnstable:    f.Selection.Unstable,
		DependencyMissing:    f.Dependencies.Missing,
		DependencyIncomplete: f.Dependencies.Incomplete,
		Window:               windows.State(spec.UpgradeStrategy.Windows, f.Now),
	}
}

// Members returns the members in the order of their admission: what is selected, what has a run, and
// what is to be removed.
func (f *Fleet) Members() []status.Member {
	attempt := Attempt(f.Upgrade)
	members := make([]status.Member, 0, len(f.Selection.Members))
	listed := make(map[string]bool, len(f.Selection.Members))
	for _, c := range f.Selection.Members {
		listed[c.Name] = true
		member := status.Member{GroupName: c.GroupName, Member: rollout.Member{
			Name: c.Name, Group: c.Group, Canary: c.Canary, Hub: c.Hub, State: rollout.NotStarted,
			DeselectedSince: f.Deselected[c.Name],
		}}
		if run := f.Runs[c.Name]; run != nil {
			member.SetRun(run, attempt, true)
		}
		member.Hold = f.hold(c.Name)
		members = append(members, member)
	}
	for name, run := range f.Runs {
		if !listed[name] {
			listed[name] = true
			member := status.Member{Member: rollout.Member{DeselectedSince: f.Deselected[name]}}
			member.SetRun(run, attempt, false)
			members = append(members, member)
		}
	}
	for name, since := range f.Deselected {
		if !listed[name] {
			members = append(members, status.Member{Member: rollout.Member{Name: name, State: rollout.NotStarted, DeselectedSince: since}})
		}
	}
	slices.SortFunc(members, func(a, b status.Member) int { return rollout.Compare(a.Member, b.Member) })
	return members
}

// Decide decides which members begin.
func Decide(plan rollout.Plan, members []status.Member, now time.Time) rollout.Decision {
	list := make([]rollout.Member, len(members))
	for i := range members {
		list[i] = members[i].Member
	}
	return rollout.Decide(plan, list, now)
}

// hold returns why a cluster must not begin; empty means that it may.
func (f *Fleet) hold(name string) string {
	if reason := f.Refused[name]; reason != "" {
		return reason
	}
	cluster := f.Clusters[name]
	if cluster == nil {
		return "there is no such ManagedCluster"
	}
	if cluster.DeletionTimestamp != nil {
		return "the ManagedCluster is being deleted"
	}
	if reason := Held(cluster); reason != "" {
		return reason
	}
	for _, p := range f.Dependencies.preceding {
		if !p.complete[name] {
			return fmt.Sprintf("waiting until ManagedClustersUpgrade %s is complete on this cluster", p.name)
		}
	}
	return ""
}

// Held returns why an annotation holds a cluster; empty means that none does.
func Held(cluster *clusterv1.ManagedCluster) string {
	reason, held := cluster.Annotations[v1alpha1.HoldAnnotation]
	if !held {
		return ""
	}
	return "the annotation " + v1alpha1.HoldAnnotation + " holds it: " + text.Reason(reason)
}

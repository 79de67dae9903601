// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// ReadClusters returns all ManagedClusters, by name. The objects of a cache are not copied and must not be changed.
func ReadClusters(ctx context.Context, reader client.Reader) (map[string]*clusterv1.ManagedCluster, error) {
	var list clusterv1.ManagedClusterList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ManagedClusters: %w", err)
	}
	clusters := make(map[string]*clusterv1.ManagedCluster, len(list.Items))
	for i := range list.Items {
		clusters[list.Items[i].Name] = &list.Items[i]
	}
	return clusters, nil
}

// ListRuns lists the runs of an upgrade. The objects of a cache are not copied and must not be changed.
func ListRuns(ctx context.Context, reader client.Reader, upgrade *fleetv1beta1.ManagedClustersUpgrade) ([]fleetv1alpha1.ClusterUpgradeRun, error) {
	var list fleetv1alpha1.ClusterUpgradeRunList
	own := client.MatchingLabels{fleetv1beta1.UpgradeLabel: string(upgrade.UID)}
	if err := reader.List(ctx, &list, own, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ClusterUpgradeRuns of ManagedClustersUpgrade %s: %w", upgrade.Name, err)
	}
	return slices.DeleteFunc(list.Items, func(run fleetv1alpha1.ClusterUpgradeRun) bool { return !Owns(upgrade, &run) }), nil
}

const maxName = 200 // of the name of the upgrade in the name of a run, in bytes

// RunName returns the name of the runs of an upgrade. It is the same in all clusters, so a run is never created twice.
func RunName(upgrade *fleetv1beta1.ManagedClustersUpgrade) string {
	name := upgrade.Name[:min(len(upgrade.Name), maxName)]
	return strings.TrimRight(name, ".-") + "-" + text.Hash(string(upgrade.UID), 4)
}

// Owns reports whether a run belongs to the upgrade. Others have created one with its UID and another name.
func Owns(upgrade *fleetv1beta1.ManagedClustersUpgrade, run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run.Spec.ManagedClustersUpgrade.UID == string(upgrade.UID) && run.Name == RunName(upgrade)
}

// Dependencies are the upgrades that come before another one.
type Dependencies struct {
	Missing, Incomplete string // describe a missing and an incomplete upgrade
	preceding           []preceding
}

// preceding is an upgrade that must be complete on a cluster before another one begins there.
type preceding struct {
	name     string
	complete map[string]bool // by cluster
}

// ReadDependencies reads the upgrades that must be complete before the given one.
func ReadDependencies(ctx context.Context, reader client.Reader, upgrade *fleetv1beta1.ManagedClustersUpgrade) (Dependencies, error) {
	var d Dependencies
	for i := range upgrade.Spec.DependsOn {
		dependency := &upgrade.Spec.DependsOn[i]
		other := &fleetv1beta1.ManagedClustersUpgrade{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: upgrade.Namespace, Name: dependency.Name}, other)
		switch {
		case apierrors.IsNotFound(err):
			d.Missing = fmt.Sprintf("spec.dependsOn: there is no ManagedClustersUpgrade %s in this namespace", dependency.Name)
			continue
		case err != nil:
			return d, fmt.Errorf("getting ManagedClustersUpgrade %s, on which %s depends: %w", dependency.Name, upgrade.Name, err)
		case isComplete(other):
			continue
		case dependency.PerCluster:
			if err := d.addPreceding(ctx, reader, other); err != nil {
				return d, err
			}
		default:
			d.Incomplete = fmt.Sprintf("waiting until ManagedClustersUpgrade %s is complete", dependency.Name)
		}
	}
	cycle, err := findCycle(ctx, reader, upgrade, upgrade, map[string]bool{}, nil)
	if cycle != nil {
		d.Incomplete = "spec.dependsOn forms a cycle: " + strings.Join(cycle, ", ")
	}
	return d, err
}

// isComplete reports whether all clusters of an upgrade are complete, by a status that reflects its spec.
func isComplete(upgrade *fleetv1beta1.ManagedClustersUpgrade) bool {
	status := &upgrade.Status
	return status.ObservedGeneration == upgrade.Generation && apimeta.IsStatusConditionTrue(status.Conditions, fleetv1beta1.ConditionComplete)
}

// addPreceding reads where the other upgrade is complete.
func (d *Dependencies) addPreceding(ctx context.Context, reader client.Reader, other *fleetv1beta1.ManagedClustersUpgrade) error {
	runs, err := ListRuns(ctx, reader, other)
	if err != nil {
		return err
	}
	complete := make(map[string]bool, len(runs))
	for i := range runs {
		run := &runs[i]
		complete[run.Namespace] = run.Status.State == fleetv1alpha1.StateComplete && isCurrent(run)
	}
	d.preceding = append(d.preceding, preceding{name: other.Name, complete: complete})
	return nil
}

// findCycle returns the names of upgrades that depend on each other, from the root back to itself, if there are any. It reads
// each upgrade once. A complete upgrade waits for no other.
func findCycle(ctx context.Context, reader client.Reader, root, at *fleetv1beta1.ManagedClustersUpgrade, visited map[string]bool, path []string) ([]string, error) {
	path = append(slices.Clone(path), at.Name)
	for i := range at.Spec.DependsOn {
		name := at.Spec.DependsOn[i].Name
		if name == root.Name {
			return append(path, name), nil
		}
		if visited[name] {
			continue
		}
		visited[name] = true
		next := &fleetv1beta1.ManagedClustersUpgrade{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: root.Namespace, Name: name}, next)
		if apierrors.IsNotFound(err) || err == nil && isComplete(next) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("getting ManagedClustersUpgrade %s: %w", name, err)
		}
		if found, err := findCycle(ctx, reader, root, next, visited, path); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

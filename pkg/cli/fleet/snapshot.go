// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// Snapshot is a fleet upgrade at one point in time.
type Snapshot struct {
	// Upgrade is the object with the status published by the hub.
	Upgrade *fleetv1beta1.ManagedClustersUpgrade
	// Members lists the clusters in admission order.
	Members []admission.FleetMember
	// Clusters maps names to ManagedClusters.
	Clusters map[string]*clusterv1.ManagedCluster
	// Plan is the plan derived from the spec. Decision is the result of rollout.Decide for it.
	Plan     rollout.Plan
	Decision rollout.Decision
	// Unreadable explains why the user cannot read the selected clusters. It is nil if they were read. If it
	// is set, Members contains only clusters with a run, and there is no decision.
	Unreadable error
	// Now is the time of the snapshot.
	Now time.Time
}

// Read reads an upgrade, its clusters, and its runs.
func Read(ctx context.Context, reader client.Reader, key client.ObjectKey, now time.Time) (*Snapshot, error) {
	s := &Snapshot{Upgrade: &fleetv1beta1.ManagedClustersUpgrade{}, Now: now}
	if err := reader.Get(ctx, key, s.Upgrade); err != nil {
		return nil, fmt.Errorf("reading ManagedClustersUpgrade %s/%s: %w", key.Namespace, key.Name, err)
	}
	list, err := admission.ListRuns(ctx, reader, s.Upgrade)
	if err != nil {
		return nil, err
	}
	fleet := &admission.Fleet{
		Upgrade: s.Upgrade, Runs: make(map[string]*fleetv1alpha1.ClusterUpgradeRun, len(list)), Now: now,
		RecordsLost: s.recordsLost(), Departed: admission.Departed(s.Upgrade),
	}
	for i := range list {
		fleet.Runs[list[i].Namespace] = &list[i]
	}
	if admission.AreCanariesFixed(s.Upgrade) {
		fleet.CanariesGone = int(s.Upgrade.Status.Canaries.Departed)
	}
	switch err := s.selectClusters(ctx, reader, fleet); {
	case apierrors.IsForbidden(err):
		s.Unreadable = err
		s.Members = fleet.Members()
		return s, nil
	case err != nil:
		return nil, err
	}
	fleet.Records = deselected(fleet)
	s.Clusters, s.Members = fleet.Clusters, fleet.Members()
	s.Plan = fleet.Plan(s.Members, &admission.Windows{})
	s.Decision = admission.Admit(s.Plan, s.Members, now)
	return s, nil
}

// selectClusters reads the ManagedClusters and determines the selected ones.
func (s *Snapshot) selectClusters(ctx context.Context, reader client.Reader, fleet *admission.Fleet) error {
	var err error
	if fleet.Clusters, err = admission.ReadClusters(ctx, reader); err != nil {
		return err
	}
	options := selection.SelectOptions{Now: s.Now, OwnNamespaceOnly: s.reason(fleetv1beta1.ConditionSelected) == fleetv1beta1.ReasonPlacementNotAllowed}
	if fleet.Selection, err = selection.Select(ctx, reader, s.Upgrade, fleet.Clusters, options); err != nil {
		return fmt.Errorf("selecting the clusters: %w", err)
	}
	if fleet.Locked, err = admission.Locked(ctx, reader, s.Upgrade); err != nil {
		return err
	}
	fleet.Dependencies, err = admission.ReadDependencies(ctx, reader, s.Upgrade)
	return err
}

// deselected returns the clusters that have a run but are not selected. A single read cannot confirm how long
// they have been deselected, so they count as deselected for long enough.
func deselected(fleet *admission.Fleet) map[string]admission.ClusterRecord {
	if !fleet.Selection.Stable() {
		return nil
	}
	selected := make(map[string]bool, len(fleet.Selection.Members))
	for _, m := range fleet.Selection.Members {
		selected[m.Name] = true
	}
	records := map[string]admission.ClusterRecord{}
	for name := range fleet.Runs {
		if !selected[name] {
			records[name] = admission.ClusterRecord{DeselectedSince: fleet.Now.Add(-rollout.RemovalDelay)}
		}
	}
	return records
}

// condition returns a published condition, or an empty one if there is none.
func (s *Snapshot) condition(name string) metav1.Condition {
	if c := apimeta.FindStatusCondition(s.Upgrade.Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (s *Snapshot) reason(condition string) string { return s.condition(condition).Reason }

// recordsLost returns the published message about lost records of this attempt.
func (s *Snapshot) recordsLost() string {
	c := s.condition(fleetv1beta1.ConditionAdmitting)
	if c.Reason != fleetv1beta1.ReasonRecordsLost || s.Upgrade.Status.Attempt != admission.Attempt(s.Upgrade) {
		return ""
	}
	return c.Message
}

// gone counts the clusters that left the hub before they were complete, and the canaries among them.
func (s *Snapshot) gone() (failed, canaries int) {
	for i := range s.Upgrade.Status.Departed {
		failed += int(s.Upgrade.Status.Departed[i].Failed)
		canaries += int(s.Upgrade.Status.Departed[i].Canaries)
	}
	return failed, canaries
}

// isCurrent reports whether the published status reflects the spec.
func (s *Snapshot) isCurrent() bool {
	return s.Upgrade.Status.ClustersSummery != nil && s.Upgrade.Status.ObservedGeneration == s.Upgrade.Generation
}

// counted returns the members that count in the rollout.
func (s *Snapshot) counted() []*admission.FleetMember {
	gone := map[string]bool{}
	for _, names := range [][]string{s.Decision.Removed, s.Decision.Ignored} {
		for _, name := range names {
			gone[name] = true
		}
	}
	var counted []*admission.FleetMember
	for i := range s.Members {
		if !gone[s.Members[i].Name] {
			counted = append(counted, &s.Members[i])
		}
	}
	return counted
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// SelectedCluster is a selected cluster.
type SelectedCluster struct {
	Name        string
	Group       int    // the index of its decision group over all Placements, from 0
	GroupName   string // empty if the group has no name
	Canary, Hub bool   // whether it is a canary, and the hub itself
}

// Selection is the clusters that are selected at one time.
type Selection struct {
	Members         []SelectedCluster // by group and name
	Unstable        string            // why the decisions are inconsistent, and clusters may be missing; empty if they are consistent
	UnstableUntil   time.Time         // when the time alone makes the selection stable; zero if it does not
	Reason, Message string            // why no cluster is selected, as in the condition Selected; empty if there are clusters
}

// Stable reports whether the decisions are consistent.
func (s Selection) Stable() bool { return s.Unstable == "" }

// PlacementSource is a Placement of a ManagedClustersUpgrade, with its decisions.
type PlacementSource struct {
	Namespace, Name string
	Placement       *ocmv1beta1.Placement // nil if it does not exist
	Decisions       []ocmv1beta1.PlacementDecision
	Owned           bool // the hub creates the Placement, for clusterSelector
}

// Compute returns the selection of a ManagedClustersUpgrade. The sources are in the order of its placements. Clusters that are
// absent or being deleted are detached and not selected. localCluster names the cluster of the hub: what a cluster says
// about itself does not make it the hub.
func Compute(mcu *fleetv1beta1.ManagedClustersUpgrade, sources []PlacementSource, clusters map[string]*clusterv1.ManagedCluster, localCluster string) Selection {
	for i := range sources {
		if sources[i].Placement == nil && !sources[i].Owned {
			return unknown(fleetv1beta1.ReasonPlacementNotFound, sources[i].title()+" does not exist")
		}
	}
	canaries, err := canarySelector(mcu)
	if err != nil {
		return unknown(fleetv1beta1.ReasonNoClustersSelected, fmt.Sprintf("spec.upgradeStrategy.canaryClusters.clusterSelector is invalid: %v", err))
	}
	var s Selection
	seen := map[string]bool{}
	groups := 0
	for i := range sources {
		if unstable := sources[i].inconsistency(mcu); unstable != "" && s.Stable() {
			s.Unstable = unstable
		}
		groups += s.add(&sources[i], groups, clusters, seen)
	}
	for i := range s.Members {
		m := &s.Members[i]
		m.Hub = m.Name == localCluster
		m.Canary = canaries != nil && canaries.Matches(labels.Merge(labels.Set{nameKey: m.Name}, clusters[m.Name].Labels))
	}
	slices.SortFunc(s.Members, func(a, b SelectedCluster) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
	})
	if len(s.Members) == 0 && s.Stable() {
		s.Reason, s.Message = fleetv1beta1.ReasonNoClustersSelected, emptyMessage(sources)
	}
	return s
}

// unknown returns a selection that cannot be determined: nothing is admitted, and nothing removed.
func unknown(reason, message string) Selection {
	return Selection{Unstable: message, Reason: reason, Message: message}
}

// add adds the clusters of a source that no earlier source has, and returns the number of its groups.
func (s *Selection) add(source *PlacementSource, before int, clusters map[string]*clusterv1.ManagedCluster, seen map[string]bool) int {
	groups := 0
	for i := range source.Decisions {
		decision := &source.Decisions[i]
		index := groupIndex(decision)
		groups = max(groups, index+1)
		for _, decided := range decision.Status.Decisions {
			cluster := clusters[decided.ClusterName]
			if cluster == nil || !cluster.DeletionTimestamp.IsZero() || seen[decided.ClusterName] {
				continue
			}
			seen[decided.ClusterName] = true
			s.Members = append(s.Members, SelectedCluster{
				Name: decided.ClusterName, Group: before + index, GroupName: decision.Labels[ocmv1beta1.DecisionGroupNameLabel],
			})
		}
	}
	return groups
}

const maxGroups = 100_000 // bounds the index of a decision group: it comes from a label

// groupIndex returns the index of the decision group; without a valid one, the first.
func groupIndex(decision *ocmv1beta1.PlacementDecision) int {
	index, err := strconv.Atoi(decision.Labels[ocmv1beta1.DecisionGroupIndexLabel])
	if err != nil || index < 0 || index > maxGroups {
		return 0
	}
	return index
}

func (s *PlacementSource) title() string { return "Placement " + s.Namespace + "/" + s.Name }

// inconsistency returns why the decisions of a source may be incomplete; empty if they are complete.
func (s *PlacementSource) inconsistency(mcu *fleetv1beta1.ManagedClustersUpgrade) string {
	if s.Placement == nil {
		return s.title() + " is not created yet"
	}
	if s.Owned && NeedsUpdate(s.Placement, Placement(mcu)) {
		return s.title() + " does not match spec.clusterSelector yet"
	}
	decided := 0
	for i := range s.Decisions {
		for _, decision := range s.Decisions[i].Status.Decisions {
			if decision.ClusterName != "" {
				decided++
			}
		}
	}
	switch selected := int(s.Placement.Status.NumberOfSelectedClusters); {
	case decided != selected:
		return fmt.Sprintf("%s selects %d clusters and its decisions contain %d", s.title(), selected, decided)
	case decided == 0 && !s.scheduled():
		return s.title() + " was not scheduled yet"
	}
	return ""
}

// scheduled reports whether the placement controller has reconciled the Placement.
func (s *PlacementSource) scheduled() bool {
	return slices.ContainsFunc(s.Placement.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == ocmv1beta1.PlacementConditionSatisfied || c.Type == ocmv1beta1.PlacementConditionMisconfigured
	})
}

func emptyMessage(sources []PlacementSource) string {
	var reasons []string
	for i := range sources {
		if sources[i].Placement == nil {
			continue
		}
		for _, kind := range []string{ocmv1beta1.PlacementConditionMisconfigured, ocmv1beta1.PlacementConditionSatisfied} {
			condition := meta.FindStatusCondition(sources[i].Placement.Status.Conditions, kind)
			isWrong := kind == ocmv1beta1.PlacementConditionMisconfigured
			if condition != nil && (condition.Status == metav1.ConditionTrue) == isWrong && condition.Message != "" {
				reasons = append(reasons, sources[i].title()+": "+condition.Message)
				break
			}
		}
	}
	if len(reasons) == 0 {
		return "the Placements select no cluster that exists"
	}
	const most = 3
	if len(reasons) > most {
		reasons = append(reasons[:most], fmt.Sprintf("and %d more", len(reasons)-most))
	}
	return strings.Join(reasons, "; ")
}

func canarySelector(mcu *fleetv1beta1.ManagedClustersUpgrade) (labels.Selector, error) {
	canaries := mcu.Spec.UpgradeStrategy.CanaryClusters
	if canaries == nil {
		return nil, nil
	}
	selector := canaries.ClusterSelector
	return metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: selector.MatchLabels, MatchExpressions: selector.MatchExpressions})
}

const nameKey = "name" // the key that selects clusters by their names: one without that label has its name as such

// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclusters;placements;placementdecisions,verbs=list;watch

// SelectOptions configure Select.
type SelectOptions struct {
	OwnNamespaceOnly bool   // refuses Placements of other namespaces
	LocalCluster     string // the name of the ManagedCluster of the hub itself; empty if it is not managed
	Now              time.Time
}

// Select reads the Placements of a ManagedClustersUpgrade and their decisions, and returns the selection among all
// ManagedClusters. The objects of a cache are not copied and must not be changed.
func Select(
	ctx context.Context, reader client.Reader, mcu *fleetv1beta1.ManagedClustersUpgrade,
	clusters map[string]*clusterv1.ManagedCluster, options SelectOptions,
) (Selection, error) {
	var sources []PlacementSource
	for _, reference := range References(mcu) {
		if options.OwnNamespaceOnly && reference.Namespace != mcu.Namespace {
			return unknown(fleetv1beta1.ReasonPlacementNotAllowed, fmt.Sprintf(
				"Placement %s/%s is in another namespace, which the hub does not allow: use a Placement in namespace %s",
				reference.Namespace, reference.Name, mcu.Namespace)), nil
		}
		sources = append(sources, PlacementSource{Namespace: reference.Namespace, Name: reference.Name})
	}
	if mcu.Spec.ClusterSelector != nil {
		sources = append(sources, PlacementSource{Namespace: mcu.Namespace, Name: PlacementName(mcu), Owned: true})
	}
	for i := range sources {
		if err := sources[i].read(ctx, reader); err != nil {
			return Selection{}, err
		}
	}
	selected := Compute(mcu, sources, clusters, options.LocalCluster)
	selected.settle(sources, options.Now)
	return selected, nil
}

// settle marks the selection as unstable while decisions may reflect the earlier spec of a Placement that the hub changed.
func (s *Selection) settle(sources []PlacementSource, now time.Time) {
	for i := range sources {
		source := &sources[i]
		if !source.Owned || source.Placement == nil || !s.Stable() {
			continue
		}
		value, changed := source.Placement.Annotations[ChangedAnnotation]
		if !changed {
			continue
		}
		at, err := time.Parse(time.RFC3339, value)
		switch until := at.Add(settleTime); {
		case err != nil:
			s.Unstable = fmt.Sprintf("annotation %s of %s is not an RFC 3339 time: remove it", ChangedAnnotation, source.title())
		case now.Before(until):
			s.Unstable = fmt.Sprintf("the spec of %s has changed: its decisions are used from %s", source.title(), until.Format(time.RFC3339))
			s.UnstableUntil = until
		}
	}
}

// References returns the Placements that the spec names, each once, with their namespaces.
func References(mcu *fleetv1beta1.ManagedClustersUpgrade) []fleetv1beta1.PlacementReference {
	var references []fleetv1beta1.PlacementReference
	for _, reference := range mcu.Spec.Placement {
		reference.Namespace = cmp.Or(reference.Namespace, mcu.Namespace)
		if !slices.Contains(references, reference) {
			references = append(references, reference)
		}
	}
	return references
}

// read completes a source with its Placement and the decisions of that Placement.
func (s *PlacementSource) read(ctx context.Context, reader client.Reader) error {
	placement := &ocmv1beta1.Placement{}
	switch err := reader.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, placement); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading placement: %w", err)
	}
	s.Placement = placement
	var decisions ocmv1beta1.PlacementDecisionList
	err := reader.List(ctx, &decisions, client.InNamespace(s.Namespace), client.MatchingLabels{ocmv1beta1.PlacementLabel: s.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing decisions of placement %s/%s: %w", s.Namespace, s.Name, err)
	}
	for i := range decisions.Items {
		// Decisions of an earlier Placement of that name stay until they are collected.
		if owner := metav1.GetControllerOf(&decisions.Items[i]); owner == nil || owner.UID == placement.UID {
			s.Decisions = append(s.Decisions, decisions.Items[i])
		}
	}
	return nil
}

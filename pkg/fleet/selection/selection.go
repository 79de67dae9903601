// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// HubClaim is the claim, and the label, of the hub's own cluster. Its value is true.
const HubClaim = "local-cluster"

// Member is a selected cluster.
type Member struct {
	// Name is the name of the ManagedCluster.
	Name string
	// Group is the index of the cluster's decision group over all Placements, from 0.
	Group int
	// GroupName is the name of the group; empty means that it has none.
	GroupName string
	// Canary and Hub report whether the cluster is a canary, and whether it is the hub itself.
	Canary, Hub bool
}

// Selection is the clusters that are selected at one time.
type Selection struct {
	// Members are the selected clusters by group and name.
	Members []Member
	// Unstable explains why the decisions are inconsistent, so that clusters may be missing; empty means
	// that they are consistent.
	Unstable string
	// UnstableUntil is when the time alone makes the selection stable; zero means that it does not.
	UnstableUntil time.Time
	// Reason and Message explain why no cluster is selected, as the condition Selected does; empty means
	// that clusters are.
	Reason, Message string
}

// Stable reports whether the decisions are consistent.
func (s Selection) Stable() bool { return s.Unstable == "" }

// Source is a Placement of a ManagedClustersUpgrade, with its decisions.
type Source struct {
	Namespace, Name string
	// Placement is nil if it does not exist.
	Placement *ocmv1beta1.Placement
	Decisions []ocmv1beta1.PlacementDecision
	// Owned reports whether the Placement is that of clusterSelector, which the hub creates.
	Owned bool
}

// Compute returns the selection of a ManagedClustersUpgrade. The sources are in the order of its
// placements. Clusters that are absent from clusters, or are being deleted, are detached and not
// selected.
func Compute(mcu *fleetv1beta1.ManagedClustersUpgrade, sources []Source, clusters map[string]*clusterv1.ManagedCluster) Selection {
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
		cluster := clusters[m.Name]
		m.Hub = isHub(cluster)
		m.Canary = canaries != nil && canaries.Matches(clusterLabels{cluster})
	}
	slices.SortFunc(s.Members, func(a, b Member) int {
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
func (s *Selection) add(source *Source, before int, clusters map[string]*clusterv1.ManagedCluster, seen map[string]bool) int {
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
			s.Members = append(s.Members, Member{
				Name: decided.ClusterName, Group: before + index, GroupName: decision.Labels[ocmv1beta1.DecisionGroupNameLabel],
			})
		}
	}
	return groups
}

// maxGroups bounds the index of a decision group, which a label contains.
const maxGroups = 100_000

// groupIndex returns the index of the decision group; without a valid one, the first.
func groupIndex(decision *ocmv1beta1.PlacementDecision) int {
	index, err := strconv.Atoi(decision.Labels[ocmv1beta1.DecisionGroupIndexLabel])
	if err != nil || index < 0 || index > maxGroups {
		return 0
	}
	return index
}

func (s *Source) title() string { return "Placement " + s.Namespace + "/" + s.Name }

// inconsistency returns why the decisions of a source may be incomplete; empty means that they are
// not.
func (s *Source) inconsistency(mcu *fleetv1beta1.ManagedClustersUpgrade) string {
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
func (s *Source) scheduled() bool {
	return slices.ContainsFunc(s.Placement.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == ocmv1beta1.PlacementConditionSatisfied || c.Type == ocmv1beta1.PlacementConditionMisconfigured
	})
}

// emptyMessage explains why Placements select no cluster.
func emptyMessage(sources []Source) string {
	var reasons []string
	for i := range sources {
		if sources[i].Placement == nil {
			continue
		}
		for _, kind := range []string{ocmv1beta1.PlacementConditionMisconfigured, ocmv1beta1.PlacementConditionSatisfied} {
			condition := meta.FindStatusCondition(sources[i].Placement.Status.Conditions, kind)
			wrong := metav1.ConditionFalse
			if kind == ocmv1beta1.PlacementConditionMisconfigured {
				wrong = metav1.ConditionTrue
			}
			if condition != nil && condition.Status == wrong && condition.Message != "" {
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

// canarySelector returns the selector of canaries; nil means that there are none.
func canarySelector(mcu *fleetv1beta1.ManagedClustersUpgrade) (labels.Selector, error) {
	canaries := mcu.Spec.UpgradeStrategy.CanaryClusters
	if canaries == nil {
		return nil, nil
	}
	selector := canaries.ClusterSelector
	return metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: selector.MatchLabels, MatchExpressions: selector.MatchExpressions})
}

// isHub reports whether a cluster is the hub itself.
func isHub(cluster *clusterv1.ManagedCluster) bool {
	return cluster.Labels[HubClaim] == "true" || slices.ContainsFunc(cluster.Status.ClusterClaims, func(c clusterv1.ManagedClusterClaim) bool {
		return c.Name == HubClaim && c.Value == "true"
	})
}

// clusterLabels are the labels of a cluster. One without the label name has its name as such.
type clusterLabels struct{ cluster *clusterv1.ManagedCluster }

// nameKey is the key that selects clusters by their names.
const nameKey = "name"

// Lookup returns the value of a label, and whether the cluster has it.
func (l clusterLabels) Lookup(label string) (string, bool) {
	value, found := l.cluster.Labels[label]
	if !found && label == nameKey {
		return l.cluster.Name, true
	}
	return value, found
}

// Has reports whether the cluster has a label.
func (l clusterLabels) Has(label string) bool {
	_, found := l.Lookup(label)
	return found
}

// Get returns the value of a label.
func (l clusterLabels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}

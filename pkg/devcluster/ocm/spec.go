// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ocm

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/agent"
)

const (
	// Namespace is the namespace of the fleet's upgrades. The cluster set is bound to it.
	Namespace = "fleet"
	// ClusterSet is the cluster set of all clusters.
	ClusterSet = "stores"
	// CanaryLabel is set to true on the canaries.
	CanaryLabel = "canary"
	// GroupLabel holds the group number, starting at 1, of clusters that are not canaries.
	GroupLabel = "group"
	// Installed is the initial release of all clusters.
	Installed = "4.20.5"
)

// Spec describes a fleet.
type Spec struct {
	// Clusters is the total number of clusters, and Canaries the number of canaries among them. The
	// other clusters are divided into Groups groups; 0 is the same as 1.
	Clusters, Canaries, Groups int
	// Duration is the duration of an upgrade of a simulated cluster.
	Duration time.Duration
	// Interval is the polling interval of an agent.
	Interval time.Duration
	// Real makes the clusters dev clusters with the agents of Open Cluster Management. The maximum is
	// four.
	Real bool
}

// maxReal is the maximum number of real clusters in a fleet. Each takes half a GiB.
const maxReal = 4

// WithDefaults applies the defaults: twelve clusters with one canary and two groups, or two real
// clusters, one of them a canary.
func (s Spec) WithDefaults() Spec {
	switch {
	case s.Clusters == 0 && s.Real:
		s.Clusters, s.Canaries = 2, max(s.Canaries, 1)
	case s.Clusters == 0:
		s.Clusters, s.Canaries, s.Groups = 12, max(s.Canaries, 1), max(s.Groups, 2)
	}
	s.Groups = max(s.Groups, 1)
	if s.Duration == 0 {
		s.Duration = 10 * time.Second
	}
	if s.Interval == 0 {
		s.Interval = time.Second
	}
	return s
}

// Validate returns an error if the description is invalid.
func (s *Spec) Validate() error {
	switch {
	case s.Real && s.Clusters > maxReal:
		return fmt.Errorf("clusters: is %d, must be at most %d: each real cluster needs half a GiB", s.Clusters, maxReal)
	case s.Clusters < 0 || s.Clusters > 9999:
		return fmt.Errorf("clusters: is %d, must be between 1 and 9999", s.Clusters)
	case s.Canaries < 0 || s.Clusters > 0 && s.Canaries > s.Clusters:
		return fmt.Errorf("canaries: is %d, must not be negative, nor exceed the number of clusters", s.Canaries)
	case s.Groups < 0 || s.Groups > 32:
		return fmt.Errorf("groups: is %d, must be between 1 and 32", s.Groups)
	case s.Duration < 0 || s.Interval < 0:
		return errors.New("durations must not be negative")
	}
	return nil
}

// ClusterName returns the name of the n-th cluster, starting at 1. The canaries come first.
func ClusterName(number int) string { return fmt.Sprintf("store-%04d", number) }

// cluster returns the n-th ManagedCluster as an import would have created it.
func (s *Spec) cluster(number int) *clusterv1.ManagedCluster {
	name := ClusterName(number)
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{"name": name, clusterv1beta2.ClusterSetLabel: ClusterSet},
		},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
	if !s.Real {
		cluster.Annotations = map[string]string{agent.DurationAnnotation: s.Duration.String()}
	}
	if number <= s.Canaries {
		cluster.Labels[CanaryLabel] = "true"
		return cluster
	}
	others := s.Clusters - s.Canaries
	cluster.Labels[GroupLabel] = strconv.Itoa(1 + (number-s.Canaries-1)*s.Groups/others)
	return cluster
}

// clusterStatus returns the status of a ManagedCluster with a connected agent.
func clusterStatus(now time.Time) clusterv1.ManagedClusterStatus {
	condition := func(name string) metav1.Condition {
		return metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: name, LastTransitionTime: metav1.NewTime(now)}
	}
	return clusterv1.ManagedClusterStatus{
		Conditions: []metav1.Condition{
			condition(clusterv1.ManagedClusterConditionHubAccepted), condition(clusterv1.ManagedClusterConditionJoined),
			condition(clusterv1.ManagedClusterConditionAvailable),
		},
		ClusterClaims: []clusterv1.ManagedClusterClaim{{Name: agent.VersionClaim, Value: Installed}},
	}
}

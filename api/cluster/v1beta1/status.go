// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The limits of the lists in the status.
const (
	MaxGroups        = 32
	MaxCauses        = 10
	MaxCauseClusters = 3
)

// ManagedClustersUpgradeStatus is what the hub observed and did. The clusters themselves are
// ClusterUpgradeRuns.
//
// +kubebuilder:validation:MinProperties=0
type ManagedClustersUpgradeStatus struct {
	// conditions sum up the upgrade: Selected, Applied, InProgress, Complete, Failed, Admitting,
	// Stalled, and, for a dry run, PreflightPassed. Other conditions are removed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status reflects.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// attempt is the attempt that this status reflects.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt,omitempty"`

	// startTime is when the first cluster was admitted.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the last cluster was complete. It is absent before, and while clusters
	// have failed.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// nextTime is when the rollout next changes by itself: a deadline or a soak ends, or a window opens
	// or closes.
	//
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`

	// preUpgradeActionSummary counts the pre-upgrade actions of the admitted clusters.
	//
	// +optional
	PreUpgradeActionSummary *ActionSummary `json:"preUpgradeActionSummary,omitempty"`

	// canaryClustersSummery counts the canaries by state.
	//
	// +optional
	CanaryClustersSummery *ClustersSummary `json:"canaryClustersSummery,omitempty"`

	// clustersSummery counts all clusters by state, canaries included.
	//
	// +optional
	ClustersSummery *ClustersSummary `json:"clustersSummery,omitempty"`

	// postUpgradeActionSummary counts the post-upgrade actions of the clusters whose platform and
	// operators are upgraded.
	//
	// +optional
	PostUpgradeActionSummary *ActionSummary `json:"postUpgradeActionSummary,omitempty"`

	// groups counts the clusters of each group by state, in the order in which groups start, without
	// canaries. The last element counts all further groups if there are more than 32.
	//
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=32
	Groups []GroupStatus `json:"groups,omitempty"`

	// causes are the most frequent reasons for which clusters failed, are stalled, or are blocked.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=10
	Causes []Cause `json:"causes,omitempty"`
}

// ActionSummary counts actions by state.
type ActionSummary struct {
	// total is the number of clusters to which the action is to be applied.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"` //nolint:kubeapilinter // A zero is shown.

	// applied is the number of clusters to which the action is applied.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Applied int32 `json:"applied"` //nolint:kubeapilinter // A zero is shown.

	// available is the number of clusters on which the action is complete.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Available int32 `json:"available"` //nolint:kubeapilinter // A zero is shown.

	// progressing is the number of clusters on which the action is in progress.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Progressing int32 `json:"progressing"` //nolint:kubeapilinter // A zero is shown.

	// degraded is the number of clusters on which the action failed.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Degraded int32 `json:"degraded"` //nolint:kubeapilinter // A zero is shown.
}

// ClustersSummary counts clusters by state. The states sum up to the total.
type ClustersSummary struct {
	// total is the number of clusters.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"` //nolint:kubeapilinter // A zero is shown.

	// initialized is the number of clusters that are admitted and do not upgrade yet.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Initialized int32 `json:"initialized"` //nolint:kubeapilinter // A zero is shown.

	// partialUpgrade is the number of clusters whose upgrade is in progress.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	PartialUpgrade int32 `json:"partialUpgrade"` //nolint:kubeapilinter // A zero is shown.

	// complete is the number of clusters whose upgrade is complete.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Complete int32 `json:"complete"` //nolint:kubeapilinter // A zero is shown.

	// failed is the number of clusters whose upgrade failed.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Failed int32 `json:"failed"` //nolint:kubeapilinter // A zero is shown.

	// pending is the number of clusters that are not admitted yet.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Pending int32 `json:"pending"` //nolint:kubeapilinter // A zero is shown.
}

// GroupStatus counts the clusters of a group by state.
type GroupStatus struct {
	// index is the position of the group in the order in which groups start, from 1.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Index int32 `json:"index,omitempty"`

	// name is the name of the decision group. It is absent if the group has none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	ClustersSummary `json:",inline"`
}

// CauseType is what clusters have in common that share a cause.
//
// +kubebuilder:validation:Enum=Failed;Stalled;Blocked
type CauseType string

const (
	// CauseFailed is a reason for which clusters failed.
	CauseFailed CauseType = "Failed"
	// CauseStalled is a reason for which clusters make no progress.
	CauseStalled CauseType = "Stalled"
	// CauseBlocked is a reason for which clusters cannot start, as a dry run found.
	CauseBlocked CauseType = "Blocked"
)

// Cause is a reason that clusters share.
type Cause struct {
	// type is Failed, Stalled, or Blocked.
	//
	// +required
	Type CauseType `json:"type,omitempty"`

	// reason is the CamelCase reason.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// message explains the reason, in the words of the first cluster.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`

	// count is the number of clusters.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count,omitempty"`

	// clusters are the names of up to three clusters, sorted.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Clusters []string `json:"clusters,omitempty"`
}

// ManagedClustersUpgradeList is a list of ManagedClustersUpgrades.
//
// +kubebuilder:object:root=true
type ManagedClustersUpgradeList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ManagedClustersUpgrades.
	Items []ManagedClustersUpgrade `json:"items"`
}

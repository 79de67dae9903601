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
	// MaxForgotten is the most forgotten failures that are listed.
	MaxForgotten = 10
)

// ManagedClustersUpgradeStatus holds what the hub observed and did. The clusters themselves are ClusterUpgradeRuns.
//
// +kubebuilder:validation:MinProperties=0
type ManagedClustersUpgradeStatus struct {
	// conditions sum up the upgrade: Selected, Applied, InProgress, Complete, Failed, Admitting,
	// Slow, Ready, Reconciling, Stalled, and, for a dry run, PreflightPassed. Other conditions are removed.
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

	// canaries identifies the canaries, which are fixed when the rollout starts. It is absent before, and without
	// canaryClusters.
	//
	// +optional
	Canaries *CanariesStatus `json:"canaries,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// stop is why no further cluster starts until spec.attempt is raised, whatever becomes of the clusters. It is
	// absent if nothing has stopped the rollout.
	//
	// +optional
	Stop *StopStatus `json:"stop,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// forgottenFailures are failures that no longer count, because the annotation
	// upgrade.managed.openshift.io/forget-failure names them. At most ten are listed.
	//
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=10
	ForgottenFailures []ForgottenFailure `json:"forgottenFailures,omitempty"`

	// departed counts, for each group, the clusters that had started in this attempt, were not complete, and
	// whose ManagedCluster is gone. They are not in the other counters, and count as failed.
	//
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=32
	Departed []DepartedClusters `json:"departed,omitempty"`

	// begun identifies the clusters that are counted as begun. By it, a hub that starts tells clusters that have left in
	// the meantime from records that were lost.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Begun string `json:"begun,omitempty"`

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
	// total is the number of clusters to which the action applies.
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

	// complete is the number of clusters whose platform and operators are upgraded. One whose action after the upgrade
	// fails, or that fails while it soaks, counts as failed from then on.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Complete int32 `json:"complete"` //nolint:kubeapilinter // A zero is shown.

	// finishing is how many of the complete clusters still run their action after the upgrade, or soak. They hold their
	// slots.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Finishing int32 `json:"finishing,omitempty"` //nolint:kubeapilinter // Absent means none.

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

// InFlight returns how many clusters have begun, and neither ended nor only have their last steps left.
func (s *ClustersSummary) InFlight() int32 { return s.Initialized + s.PartialUpgrade }

// Ended reports whether each cluster is complete or has failed, and none has steps left.
func (s *ClustersSummary) Ended() bool {
	return s.Total > 0 && s.Complete+s.Failed == s.Total && s.Finishing == 0
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

// CanariesStatus identifies the canaries. Each of them has a ClusterUpgradeRun with canary: true.
type CanariesStatus struct {
	// count is the number of canaries when they were fixed.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"` //nolint:kubeapilinter // A zero is shown.

	// hash is a hash of their sorted names.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash,omitempty"`

	// selectorHash is a hash of canaryClusters. After a change of canaryClusters, the canaries are fixed again.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	SelectorHash string `json:"selectorHash,omitempty"`
}

// StopStatus is why no further cluster starts in this attempt.
type StopStatus struct {
	// reason is the CamelCase reason: CanaryFailed, CanaryNotAvailable, MaxFailuresExceeded, or
	// RecordsLost.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// message explains the reason.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`

	// time is when the rollout stopped.
	//
	// +required
	Time metav1.Time `json:"time,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.

	// annotations identifies the annotations that a person had set by then. If a person forgets a failure, or continues
	// without a canary, the stop is decided again.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Annotations string `json:"annotations,omitempty"`
}

// ForgottenFailure is a failure that no longer counts.
type ForgottenFailure struct {
	// cluster is the name of the cluster.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster,omitempty"`

	// reason is why a person has forgotten the failure.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// DepartedClusters counts clusters of a group that are gone.
type DepartedClusters struct {
	// index is the position of the group in the order in which groups start, from 1.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Index int32 `json:"index,omitempty"`

	// failed is the number of the clusters.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Failed int32 `json:"failed,omitempty"`

	// canaries is how many of them were canaries.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Canaries int32 `json:"canaries,omitempty"` //nolint:kubeapilinter // Absent means none.
}

// CauseType says what clusters that share a cause have in common.
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

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of the lists in the status.
const (
	MaxGroups        = 32
	MaxCauses        = 10
	MaxCauseClusters = 3
	// MaxForgotten is the maximum number of forgotten failures listed.
	MaxForgotten = 10
)

// ManagedClustersUpgradeStatus reports what the hub observed and did. The status of each cluster is in its
// ClusterUpgradeRun.
//
// +kubebuilder:validation:MinProperties=0
type ManagedClustersUpgradeStatus struct {
	// conditions summarize the upgrade: Selected, Applied, InProgress, Complete, Failed, Admitting, Slow,
	// Ready, Reconciling, Stalled, and, for a dry run, PreflightPassed. Other conditions are removed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec reflected in this status.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// attempt is the attempt reflected in this status.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt,omitempty"`

	// startTime is when the first cluster was admitted.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the last cluster became complete. It is absent until then, and if any cluster
	// has failed.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// nextTime is when the rollout will next change on its own, because a deadline or a soak ends, or a
	// window opens or closes.
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

	// postUpgradeActionSummary counts the post-upgrade actions of the clusters whose platform and operators
	// have been upgraded.
	//
	// +optional
	PostUpgradeActionSummary *ActionSummary `json:"postUpgradeActionSummary,omitempty"`

	// groups counts the clusters of each group by state, without canaries, in the start order of the
	// groups. If there are more than 32 groups, the last entry counts all remaining groups.
	//
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=32
	Groups []GroupStatus `json:"groups,omitempty"`

	// canaries identifies the canaries. They are fixed when the rollout starts. It is absent until then,
	// and if canaryClusters is not set.
	//
	// +optional
	Canaries *CanariesStatus `json:"canaries,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// stop explains why no further cluster starts until spec.attempt is raised, regardless of what happens
	// to the clusters. It is absent if the rollout is not stopped.
	//
	// +optional
	Stop *StopStatus `json:"stop,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// forgottenFailures lists failures that no longer count because they are named in the annotation
	// upgrade.managed.openshift.io/forget-failure. At most ten are listed.
	//
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=10
	ForgottenFailures []ForgottenFailure `json:"forgottenFailures,omitempty"`

	// departed counts, by group, the clusters that left the hub after they had started in this attempt, but
	// before they were complete. They count as failed and are not included in the other counters.
	//
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=32
	Departed []DepartedClusters `json:"departed,omitempty"`

	// begun identifies the clusters counted as started. A restarted hub uses it to distinguish clusters
	// that have left from records that were lost.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Begun string `json:"begun,omitempty"`

	// causes lists the most frequent reasons why clusters failed, are stalled, or are blocked.
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

	// applied is the number of clusters to which the action has been applied.
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

// ClustersSummary counts clusters by state. The states add up to the total.
type ClustersSummary struct {
	// total is the number of clusters.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"` //nolint:kubeapilinter // A zero is shown.

	// initialized is the number of admitted clusters whose upgrade has not started yet.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Initialized int32 `json:"initialized"` //nolint:kubeapilinter // A zero is shown.

	// partialUpgrade is the number of clusters whose upgrade is in progress.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	PartialUpgrade int32 `json:"partialUpgrade"` //nolint:kubeapilinter // A zero is shown.

	// complete is the number of clusters whose platform and operators have been upgraded. A cluster whose
	// post-upgrade action or soak fails counts as failed from then on.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Complete int32 `json:"complete"` //nolint:kubeapilinter // A zero is shown.

	// finishing is the number of complete clusters that are still soaking or running their post-upgrade
	// action. They keep their slots.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Finishing int32 `json:"finishing,omitempty"` //nolint:kubeapilinter // Absent means none.

	// failed is the number of clusters whose upgrade failed.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Failed int32 `json:"failed"` //nolint:kubeapilinter // A zero is shown.

	// pending is the number of clusters that have not been admitted yet.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Pending int32 `json:"pending"` //nolint:kubeapilinter // A zero is shown.
}

// InFlight returns the number of clusters that have started and whose platform and operators are not yet
// upgraded.
func (s *ClustersSummary) InFlight() int32 { return s.Initialized + s.PartialUpgrade }

// Ended reports whether all clusters are complete or have failed, with no steps left to run.
func (s *ClustersSummary) Ended() bool {
	return s.Total > 0 && s.Complete+s.Failed == s.Total && s.Finishing == 0
}

// GroupStatus counts the clusters of a group by state.
type GroupStatus struct {
	// index is the position of the group in the start order, starting at 1.
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

// CanariesStatus identifies the canaries. Each canary has a ClusterUpgradeRun with canary: true.
type CanariesStatus struct {
	// count is the number of canaries at the time they were fixed.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"` //nolint:kubeapilinter // A zero is shown.

	// hash is a hash of the sorted names of the canaries.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Hash string `json:"hash,omitempty"`

	// selectorHash is a hash of canaryClusters. If canaryClusters changes, the canaries are fixed again.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	SelectorHash string `json:"selectorHash,omitempty"`

	// departed is the number of canaries that left the hub before they were complete, in an earlier attempt.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Departed int32 `json:"departed,omitempty"` //nolint:kubeapilinter // Absent means none.
}

// StopStatus explains why no further cluster starts in this attempt.
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

	// annotations is a hash of the user's annotations at that time. If a user then forgets a failure or
	// continues without a canary, the stop is evaluated again.
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

	// reason is the reason given by the user.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// DepartedClusters counts the clusters of a group that have left the hub.
type DepartedClusters struct {
	// index is the position of the group in the start order, starting at 1.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Index int32 `json:"index,omitempty"`

	// failed is the number of clusters that have left.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Failed int32 `json:"failed,omitempty"`

	// canaries is the number of these clusters that were canaries.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Canaries int32 `json:"canaries,omitempty"` //nolint:kubeapilinter // Absent means none.
}

// CauseType is the type of problem that clusters have in common.
//
// +kubebuilder:validation:Enum=Failed;Stalled;Blocked
type CauseType string

const (
	// CauseFailed is a reason why clusters failed.
	CauseFailed CauseType = "Failed"
	// CauseStalled is a reason why clusters make no progress.
	CauseStalled CauseType = "Stalled"
	// CauseBlocked is a reason why clusters cannot start, found by a dry run.
	CauseBlocked CauseType = "Blocked"
)

// Cause is a reason shared by several clusters.
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

	// message explains the reason, as reported for the first cluster.
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

	// clusters lists the names of up to three clusters, sorted.
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

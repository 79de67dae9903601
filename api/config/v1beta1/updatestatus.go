// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// UpdateStatusName is the required name of the UpdateStatus.
const UpdateStatusName = "cluster"

// UpdateStatus aggregates the insights about the update in progress. A cluster has one, named cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=updatestatuses,scope=Cluster,shortName=us,categories=update
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.assessment.state`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.assessment.since`
// +kubebuilder:printcolumn:name="Act",type=boolean,JSONPath=`.status.assessment.actionRequired`
// +kubebuilder:printcolumn:name="Observed",type=date,JSONPath=`.status.observedTime`
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.assessment.summary`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'cluster'",message="metadata.name must be cluster: a cluster has one UpdateStatus"
type UpdateStatus struct {
	metav1.TypeMeta `json:",inline"`

	stored.Leftovers `json:"-"`

	// metadata is the standard object's metadata. The name must be cluster.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is empty.
	//
	// +optional
	// +nullable
	Spec *UpdateStatusSpec `json:"spec,omitempty"` //nolint:kubeapilinter // The seed prints a null.

	// status contains the aggregated insights. It is written by the Update Status Controller.
	//
	// +optional
	Status UpdateStatusStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: it is observed again.
}

// UpdateStatusSpec is empty.
//
// +kubebuilder:validation:MinProperties=0
type UpdateStatusSpec struct{}

// UpdateStatusStatus aggregates the insights about an update.
//
// +kubebuilder:validation:MinProperties=0
type UpdateStatusStatus struct {
	// controlPlane contains the insights about the control plane.
	//
	// +optional
	ControlPlane *ControlPlaneStatus `json:"controlPlane,omitempty"`

	// workerPools contains the insights about the pools of nodes.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	WorkerPools []WorkerPoolStatus `json:"workerPools,omitempty"`

	// assessment is the verdict on the update: whether it progresses, waits, or is stuck, why and for how
	// long, and what to do.
	//
	// +optional
	Assessment *Assessment `json:"assessment,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// observedTime is when the Update Status Controller last confirmed the status. It is updated once a
	// minute during an update.
	//
	// +optional
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`

	// recentlyResolved lists the insights that were resolved in the last 24 hours, newest first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	RecentlyResolved []ResolvedInsight `json:"recentlyResolved,omitempty"`

	// afterUpdate lists insights from a finished update that still need attention. They are removed when a
	// user acknowledges them, or after 14 days.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	AfterUpdate []RetainedInsight `json:"afterUpdate,omitempty"`

	// pastUpdates lists completed updates, newest first. They are used for estimates.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=5
	PastUpdates []PastUpdate `json:"pastUpdates,omitempty"`

	// startableReleases lists the releases to which an update may be started. The optional admission policy
	// rejects all others.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=32
	StartableReleases []StartableRelease `json:"startableReleases,omitempty"`
}

// Section describes a part of the cluster in an UpdateStatus or an UpdatePlan.
//
// +kubebuilder:validation:MinProperties=0
type Section struct {
	// conditions are UpdatePending and UpdateActive.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// updateInformers lists the insights by informer.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=96
	UpdateInformers []InformerInsights `json:"updateInformers,omitempty"`

	// progress counts the operators of the control plane or the nodes of the pool.
	//
	// +optional
	Progress *Progress `json:"progress,omitempty"`
}

// Progress counts the operators of the control plane or the nodes of a pool.
type Progress struct {
	// total is the total number of operators or nodes.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"` //nolint:kubeapilinter // 0 is printed.

	// updated is the number of operators or nodes that match the release.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Updated int32 `json:"updated"` //nolint:kubeapilinter // 0 is printed.

	// updating is the number of operators or nodes that are being updated.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Updating int32 `json:"updating"` //nolint:kubeapilinter // 0 is printed.

	// pending is the number of operators or nodes whose update has not started.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Pending int32 `json:"pending"` //nolint:kubeapilinter // 0 is printed.

	// unavailable is the number of operators or nodes that are not available, regardless of their release.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Unavailable int32 `json:"unavailable"` //nolint:kubeapilinter // 0 is printed.

	// degraded is the number of operators or nodes that are degraded, regardless of their release.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Degraded int32 `json:"degraded"` //nolint:kubeapilinter // 0 is printed.
}

// ControlPlaneStatus contains the insights about the control plane.
//
// +kubebuilder:validation:MinProperties=0
type ControlPlaneStatus struct {
	Section `json:",inline"`
}

// WorkerPoolStatus contains the insights about a pool of nodes: a MachineConfigPool, a MachineSet or
// MachineDeployment of the machine API or Cluster API, a NodePool, or the nodes outside any pool.
type WorkerPoolStatus struct {
	// apiVersion is the API group and version of the pool.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind of the pool. It is absent for nodes outside any pool.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// namespace is the namespace of the pool. It is absent for a cluster-scoped pool.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the pool, or unassigned for nodes outside any pool.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid is the UID of the pool.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`

	Section `json:",inline"`
}

// ResolutionReason explains why an insight is no longer reported.
//
// +kubebuilder:validation:Enum=Resolved;InformerDisabled;InformerDeleted
type ResolutionReason string

const (
	// ResolutionResolved indicates that the informer stopped reporting the insight.
	ResolutionResolved ResolutionReason = "Resolved"
	// ResolutionInformerDisabled indicates that the informer was disabled. The insight may still apply.
	ResolutionInformerDisabled ResolutionReason = "InformerDisabled"
	// ResolutionInformerDeleted indicates that the informer was deleted. The insight may still apply.
	ResolutionInformerDeleted ResolutionReason = "InformerDeleted"
)

// ResolvedInsight is an insight that is no longer reported.
type ResolvedInsight struct {
	// updateInformer is the name of the informer.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	UpdateInformer string `json:"updateInformer,omitempty"`

	// uuid is the UUID of the insight.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UUID string `json:"uuid,omitempty"`

	// level is the last reported severity of the insight.
	//
	// +optional
	Level Level `json:"level,omitempty"`

	// summary is the summary of the insight.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Summary string `json:"summary,omitempty"`

	// reason explains why the insight is no longer reported.
	//
	// +optional
	Reason ResolutionReason `json:"reason,omitempty"`

	// firstObservedTime is when the insight was first reported.
	//
	// +optional
	FirstObservedTime metav1.Time `json:"firstObservedTime,omitempty,omitzero"`

	// resolvedTime is when the insight was first missing from the report.
	//
	// +optional
	ResolvedTime metav1.Time `json:"resolvedTime,omitempty,omitzero"`

	// flaps is the number of times the insight reappeared within 24 hours of its resolution.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Flaps int32 `json:"flaps,omitempty"`
}

// RetainedInsight is an insight that still needs attention after the update in which it was reported.
type RetainedInsight struct {
	// updateInformer is the name of the informer.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	UpdateInformer string `json:"updateInformer,omitempty"`

	// insight is the insight as it was last reported.
	//
	// +required
	Insight Insight `json:"insight,omitzero"`

	// retainedSince is when the update ended.
	//
	// +optional
	RetainedSince metav1.Time `json:"retainedSince,omitempty,omitzero"`
}

// PastUpdate is a completed update.
type PastUpdate struct {
	// fromRelease is the release before the update.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	FromRelease string `json:"fromRelease,omitempty"`

	// toRelease is the release after the update.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ToRelease string `json:"toRelease,omitempty"`

	// startedTime is when the update of the control plane started.
	//
	// +optional
	StartedTime metav1.Time `json:"startedTime,omitempty,omitzero"`

	// completionTime is when the update of the control plane completed.
	//
	// +optional
	CompletionTime metav1.Time `json:"completionTime,omitempty,omitzero"`

	// operators lists when the operators were updated.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=128
	Operators []OperatorOffset `json:"operators,omitempty"`

	// pools lists how long the nodes of each pool took to update.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	Pools []PoolDurations `json:"pools,omitempty"`
}

// OperatorOffset records when an operator was updated in a past update.
type OperatorOffset struct {
	// name is the name of the ClusterOperator.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// seconds is the time in seconds from the start of the update until the operator was updated.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Seconds int32 `json:"seconds"` //nolint:kubeapilinter // 0 is printed.
}

// PoolDurations summarizes the update times of the nodes of a pool in a past update.
type PoolDurations struct {
	// name is the name of the pool.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// nodes is the number of updated nodes.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes"` //nolint:kubeapilinter // 0 is printed.

	// lowerSeconds is the lower quartile of the update time per node, in seconds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	LowerSeconds int32 `json:"lowerSeconds,omitempty"`

	// medianSeconds is the median update time per node, in seconds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MedianSeconds int32 `json:"medianSeconds,omitempty"`

	// upperSeconds is the upper quartile of the update time per node, in seconds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	UpperSeconds int32 `json:"upperSeconds,omitempty"`

	// longestSeconds is the longest update time of a node, in seconds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	LongestSeconds int32 `json:"longestSeconds,omitempty"`
}

// StartableRelease is a release to which an update may be started.
type StartableRelease struct {
	// version is the release.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`

	// fromRelease is the release from which the update may be started.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	FromRelease string `json:"fromRelease,omitempty"`

	// expirationTime is when the Update Status Controller removes the entry.
	//
	// +required
	ExpirationTime metav1.Time `json:"expirationTime,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.
}

// UpdateStatusList is a list of UpdateStatuses.
//
// +kubebuilder:object:root=true
type UpdateStatusList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the UpdateStatuses.
	Items []UpdateStatus `json:"items"`
}

// Sections returns the control plane, if it is known, followed by the worker pools in the order of the
// status.
func (s *UpdateStatusStatus) Sections() []*Section { return sections(s.ControlPlane, s.WorkerPools) }

// Sections returns the control plane, if it is known, followed by the worker pools in the order of the
// status.
func (s *UpdatePlanStatus) Sections() []*Section { return sections(s.ControlPlane, s.WorkerPools) }

func sections(controlPlane *ControlPlaneStatus, pools []WorkerPoolStatus) []*Section {
	var all []*Section
	if controlPlane != nil {
		all = append(all, &controlPlane.Section)
	}
	for i := range pools {
		all = append(all, &pools[i].Section)
	}
	return all
}

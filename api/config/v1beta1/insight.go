// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScopeType is the part of a cluster affected by an insight.
//
// +kubebuilder:validation:Enum=ControlPlane;WorkerPool
type ScopeType string

const (
	// ScopeControlPlane is the control plane.
	ScopeControlPlane ScopeType = "ControlPlane"
	// ScopeWorkerPool is one or more pools of nodes.
	ScopeWorkerPool ScopeType = "WorkerPool"
)

// Level is the severity of an insight. The levels in ascending order are status, info, warning, error, and
// critical.
//
// +kubebuilder:validation:Enum=status;info;warning;error;critical
type Level string

const (
	// LevelStatus is the level of an expected step of an update.
	LevelStatus Level = "status"
	// LevelInfo is useful information without any risk.
	LevelInfo Level = "info"
	// LevelWarning is a risk.
	LevelWarning Level = "warning"
	// LevelError is a failure, or a risk that is likely to become a failure.
	LevelError Level = "error"
	// LevelCritical is a failure that affects the whole cluster. Risks of this level can only be accepted
	// by uuid and with a reason.
	LevelCritical Level = "critical"
)

// Levels lists the levels in ascending order.
var Levels = []Level{LevelStatus, LevelInfo, LevelWarning, LevelError, LevelCritical}

// Known reports whether the level is in Levels.
func (l Level) Known() bool { return l == Levels[l.Rank()] }

// Rank returns the position of the level in Levels. An unknown level ranks as a warning.
func (l Level) Rank() int {
	for rank, level := range Levels {
		if level == l {
			return rank
		}
	}
	return LevelWarning.Rank()
}

// ResourceReference identifies an object.
//
// +kubebuilder:validation:MinProperties=0
type ResourceReference struct {
	// apiVersion is the API group and version of the object, for example machine.openshift.io/v1beta1.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind of the object, for example Node.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// namespace is the namespace of the object. It is absent for cluster-scoped objects.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the object.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// Insight is a finding about an update reported by an informer, for example that a node reboots or that a
// PodDisruptionBudget blocks a drain.
type Insight struct {
	// uid identifies the insight within its informer. It stays the same across responses.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	UID string `json:"uid,omitempty"`

	// uuid identifies the insight in the cluster. It is a hash of the informer, the scope, and the uid.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UUID string `json:"uuid,omitempty"`

	// acquisitionTime is when the data behind the insight was collected.
	//
	// +optional
	AcquisitionTime metav1.Time `json:"acquisitionTime,omitempty,omitzero"`

	// scope identifies what the insight is about. It does not change for a given uid.
	//
	// +optional
	Scope InsightScope `json:"scope,omitzero"`

	// impact describes the effect on the update.
	//
	// +optional
	Impact InsightImpact `json:"impact,omitzero"`

	// remediation describes how to resolve the insight.
	//
	// +optional
	Remediation InsightRemediation `json:"remediation,omitzero"`

	// firstObservedTime is when the insight was first reported. It stays the same if the insight reappears
	// within 24 hours of its resolution.
	//
	// +optional
	FirstObservedTime metav1.Time `json:"firstObservedTime,omitempty,omitzero"`

	// staleSince is when the informer stopped confirming the insight because it failed, asked to wait, or
	// did not respond. It is absent if the last response confirmed the insight.
	//
	// +optional
	StaleSince *metav1.Time `json:"staleSince,omitempty"`

	// flaps is the number of times the insight reappeared within 24 hours of its resolution.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Flaps int32 `json:"flaps,omitempty"`

	// causedBy lists the UUIDs of the insights that cause this insight.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	CausedBy []string `json:"causedBy,omitempty"`
}

// InsightScope identifies what an insight is about.
//
// +kubebuilder:validation:MinProperties=1
type InsightScope struct {
	// type is the affected part of the cluster: ControlPlane or WorkerPool.
	//
	// +optional
	Type ScopeType `json:"type,omitempty"`

	// workerPool lists the affected pools if type is WorkerPool, for example a MachineConfigPool or a
	// MachineSet.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	WorkerPool []ResourceReference `json:"workerPool,omitempty"` //nolint:kubeapilinter // Informers may omit any field of a reference.

	// resources lists the objects involved.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Resources []ResourceReference `json:"resources,omitempty"` //nolint:kubeapilinter // Informers may omit any field of a reference.
}

// InsightImpact is the effect of an insight on an update.
//
// +kubebuilder:validation:MinProperties=1
type InsightImpact struct {
	// level is the severity. The levels in ascending order are status, info, warning, error, and critical.
	//
	// +optional
	Level Level `json:"level,omitempty"`

	// reportedLevel is the level reported by the informer if it is not a known level. The insight is then
	// treated as a warning.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ReportedLevel string `json:"reportedLevel,omitempty"`

	// type is the type of impact, for example api-availability.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Type string `json:"type,omitempty"`

	// reason is a machine-readable CamelCase reason, for example PodDisruptionBudgetBlocks.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// summary is a human-readable summary in one line.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Summary string `json:"summary,omitempty"`

	// description is a longer human-readable text that is shown on request.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`
}

// InsightRemediation describes how to resolve an insight.
//
// +kubebuilder:validation:MinProperties=1
type InsightRemediation struct {
	// reference is an https URL with more information about the insight.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reference string `json:"reference,omitempty"` //nolint:kubeapilinter // The seed names the field.

	// resolved is false if the insight still needs attention after the update.
	//
	// +optional
	Resolved *bool `json:"resolved,omitempty"` //nolint:kubeapilinter // The seed prints a boolean.

	// estimatedFinish is when the insight will likely be resolved: a date and time (RFC 3339), or a
	// duration counted from acquisitionTime, for example 15m.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	EstimatedFinish string `json:"estimatedFinish,omitempty"`
}

// Finish returns the estimated resolution time given by estimatedFinish. A duration counts from the given
// acquisition time. It returns false if estimatedFinish cannot be parsed as a time or a duration.
func (r *InsightRemediation) Finish(acquired time.Time) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, r.EstimatedFinish); err == nil {
		return at, true
	}
	if d, err := time.ParseDuration(r.EstimatedFinish); err == nil {
		return acquired.Add(d), true
	}
	return time.Time{}, false
}

// InformerInsights contains the insights of one informer.
type InformerInsights struct {
	// name is the name of the UpdateInformer or the built-in informer.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// insights lists the findings of the informer.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=320
	Insights []Insight `json:"insights,omitempty"`
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScopeType is the part of a cluster that an insight is about.
//
// +kubebuilder:validation:Enum=ControlPlane;WorkerPool
type ScopeType string

const (
	// ScopeControlPlane is the control plane.
	ScopeControlPlane ScopeType = "ControlPlane"
	// ScopeWorkerPool is one or more pools of nodes.
	ScopeWorkerPool ScopeType = "WorkerPool"
)

// Level is the severity of an insight. In ascending order: status, info, warning, error, critical.
//
// +kubebuilder:validation:Enum=status;info;warning;error;critical
type Level string

const (
	// LevelStatus is an expected step of an update.
	LevelStatus Level = "status"
	// LevelInfo is worth knowing, and no risk.
	LevelInfo Level = "info"
	// LevelWarning is a risk.
	LevelWarning Level = "warning"
	// LevelError is a failure, or a risk that is likely to become one.
	LevelError Level = "error"
	// LevelCritical is a failure that affects the whole cluster. A risk of this level can only be
	// accepted with its uuid and a reason.
	LevelCritical Level = "critical"
)

// Levels are the levels in ascending order.
var Levels = []Level{LevelStatus, LevelInfo, LevelWarning, LevelError, LevelCritical}

// Known reports whether the level is one of Levels.
func (l Level) Known() bool { return l == Levels[l.Rank()] }

// Rank orders levels by severity. An unknown level counts as a warning.
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
	// apiVersion is the group and the version of the object, for example machine.openshift.io/v1beta1.
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

	// namespace is the namespace of the object. It is absent if the object has none.
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

// Insight is a finding that an informer reports about an update, for example that a node reboots or that a budget
// blocks a drain.
type Insight struct {
	// uid identifies the insight among the insights of its informer. It stays the same between answers.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	UID string `json:"uid,omitempty"`

	// uuid identifies the insight in the cluster. It is a hash of the informer, the scope, and the
	// uid.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UUID string `json:"uuid,omitempty"`

	// acquisitionTime is when the data behind the insight was acquired.
	//
	// +optional
	AcquisitionTime metav1.Time `json:"acquisitionTime,omitempty,omitzero"`

	// scope names what the insight is about. It stays the same for a uid.
	//
	// +optional
	Scope InsightScope `json:"scope,omitzero"`

	// impact is the effect on the update.
	//
	// +optional
	Impact InsightImpact `json:"impact,omitzero"`

	// remediation says how to resolve the insight.
	//
	// +optional
	Remediation InsightRemediation `json:"remediation,omitzero"`

	// firstObservedTime is when the insight was reported first. It stays the same if the insight
	// returns within 24 hours of its resolution.
	//
	// +optional
	FirstObservedTime metav1.Time `json:"firstObservedTime,omitempty,omitzero"`

	// staleSince is when the informer stopped confirming the insight: it fails, waits, or does not
	// answer. It is absent if the last answer confirmed the insight.
	//
	// +optional
	StaleSince *metav1.Time `json:"staleSince,omitempty"`

	// flaps is how often the insight returned within 24 hours of its resolution.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Flaps int32 `json:"flaps,omitempty"`

	// causedBy lists the UUIDs of the insights that cause this one.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	CausedBy []string `json:"causedBy,omitempty"`
}

// InsightScope names what an insight is about.
//
// +kubebuilder:validation:MinProperties=1
type InsightScope struct {
	// type is the part of the cluster: ControlPlane or WorkerPool.
	//
	// +optional
	Type ScopeType `json:"type,omitempty"`

	// workerPool lists the pools that are affected, if the type is WorkerPool, for example a
	// MachineConfigPool or a MachineSet.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	WorkerPool []ResourceReference `json:"workerPool,omitempty"` //nolint:kubeapilinter // Informers may omit any field of a reference.

	// resources lists the objects that are involved.
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
	// level is the severity. In ascending order: status, info, warning, error, critical.
	//
	// +optional
	Level Level `json:"level,omitempty"`

	// reportedLevel is the level that the informer reported, if it is none of the known ones. The
	// insight then counts as a warning.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ReportedLevel string `json:"reportedLevel,omitempty"`

	// type is the kind of impact, for example api-availability.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Type string `json:"type,omitempty"`

	// reason is one word in CamelCase for programs, for example PodDisruptionBudgetBlocks.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// summary is one line for people.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Summary string `json:"summary,omitempty"`

	// description is a longer text for people, which is shown on request.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`
}

// InsightRemediation says how to resolve an insight.
//
// +kubebuilder:validation:MinProperties=1
type InsightRemediation struct {
	// reference is an https URL with more about the insight.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reference string `json:"reference,omitempty"` //nolint:kubeapilinter // The seed names the field.

	// resolved is false if the insight needs attention even after the update.
	//
	// +optional
	Resolved *bool `json:"resolved,omitempty"` //nolint:kubeapilinter // The seed prints a boolean.

	// estimatedFinish is when the insight is likely to be resolved: a date and time (RFC 3339), or
	// the duration from acquisitionTime on, for example 15m.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	EstimatedFinish string `json:"estimatedFinish,omitempty"`
}

// Finish returns when the insight is estimated to be resolved: the time that estimatedFinish names,
// or the duration from when the data was acquired. False means that it names neither.
func (r *InsightRemediation) Finish(acquired time.Time) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, r.EstimatedFinish); err == nil {
		return at, true
	}
	if d, err := time.ParseDuration(r.EstimatedFinish); err == nil {
		return acquired.Add(d), true
	}
	return time.Time{}, false
}

// InformerInsights are the insights of one informer.
type InformerInsights struct {
	// name is the name of the UpdateInformer, or of the built-in informer.
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

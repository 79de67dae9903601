// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxPreviousAttempts is the number of earlier attempts kept in a record.
const MaxPreviousAttempts = 3

// PreviousAttempt summarizes an attempt that ended before the current one started.
type PreviousAttempt struct {
	// attempt is the number of the attempt at this version.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt,omitempty"`

	// upgradeAt is the requested time of the attempt.
	//
	// +optional
	UpgradeAt *metav1.Time `json:"upgradeAt,omitempty"`

	// phase is the phase in which the attempt ended.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"` //nolint:kubeapilinter // The same phase as in the record.

	// reason is the CamelCase reason why the attempt ended.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// message explains the reason.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// failedStep is the step that failed. It is absent if no step failed.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	FailedStep string `json:"failedStep,omitempty"`

	// startTime is when the first step started.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// commenceTime is when the upgrade passed its point of no return.
	//
	// +optional
	CommenceTime *metav1.Time `json:"commenceTime,omitempty"`

	// completeTime is when the attempt ended, including its cleanup.
	//
	// +optional
	CompleteTime *metav1.Time `json:"completeTime,omitempty"`
}

// Key identifies the attempt among all attempts at the same version. It is the requested time, or empty for
// records of releases that did not record that time.
func (r Record) Key() string { return key(r.UpgradeAt) }

// Key identifies the attempt in the same way as Record.Key.
func (a PreviousAttempt) Key() string { return key(a.UpgradeAt) }

// rfc3339 is the layout of time.RFC3339.
const rfc3339 = "2006-01-02T15:04:05Z07:00"

func key(at *metav1.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(rfc3339)
}

// Step returns the condition of a step, or the zero condition if the step has not started.
func (r Record) Step(name string) StepCondition {
	for i := range r.Conditions {
		if r.Conditions[i].Type == name {
			return r.Conditions[i]
		}
	}
	return StepCondition{}
}

// Running returns the step that has started and not ended, or nil.
func (r Record) Running() *StepCondition {
	for i := range r.Conditions {
		if c := &r.Conditions[i]; c.StartTime != nil && c.CompleteTime == nil {
			return c
		}
	}
	return nil
}

// InProgress reports whether the attempt has started and is not finished.
func (r Record) InProgress() bool { return r.StartTime != nil && !r.Finished() }

// Finished reports whether the attempt has ended, including its cleanup. Releases that did not record the
// requested time did not always record the end of a failed attempt.
func (r Record) Finished() bool {
	return r.CompleteTime != nil ||
		r.UpgradeAt == nil && (r.Phase == PhaseFailed || r.Phase == PhaseUpgraded)
}

// AttemptFinished reports whether the history shows that an attempt at a version is finished. An attempt
// missing from the history counts as not finished. An empty key stands for all attempts.
func AttemptFinished(records []Record, version, attemptKey string) bool {
	if attemptKey == "" {
		for i := range records {
			if !records[i].Finished() {
				return false
			}
		}
		return len(records) > 0
	}
	for i := range records {
		if records[i].Version != version {
			continue
		}
		if records[i].Key() == attemptKey {
			return records[i].Finished()
		}
		for _, previous := range records[i].PreviousAttempts {
			if previous.Key() == attemptKey {
				return true
			}
		}
	}
	return false
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// Upgrade holds the facts of an UpgradeConfig or an UpgradeJob.
type Upgrade struct {
	Resource   checks.Resource
	APIVersion string
	UID        string
	// To is the requested version, and Image its image; an empty one means any.
	To, Image string
	// From is the version that was installed when the upgrade commenced; empty means that it has not.
	From string
	// Phase is the phase of the latest attempt.
	Phase history.Phase
	// Paused reports that a user has paused the upgrade.
	Paused bool
	// Start is when the upgrade is to start at the earliest, and StartBefore at the latest; zero means
	// no such time.
	Start, StartBefore time.Time
	// NextTime is when something is going to happen next, as the operator reports it.
	NextTime time.Time
	// Record is the record of the latest attempt; nil means that none has begun.
	Record *history.Record
	// Step is the step that the latest attempt is at: the one that failed or runs; nil means none.
	Step *history.StepCondition
	// Conditions are those of the object.
	Conditions []metav1.Condition
	// Pools are the states of the pools that an UpgradeJob delays.
	Pools []UpgradePool
	// PDBTimeout is after which time of a drain the operator forces pods off the node that a
	// PodDisruptionBudget protects, once the upgrade has commenced; negative means never.
	PDBTimeout time.Duration
}

// Schedule holds the facts of an UpgradeConfig that creates UpgradeJobs.
type Schedule struct {
	Resource   checks.Resource
	APIVersion string
	// Start is the next start that nothing suspends.
	Start time.Time
	// To is the version that would be installed if the upgrade started now; empty means that no update
	// is available, or that the available updates are unknown.
	To string
}

// UpgradePool is the state of a pool that an UpgradeJob delays.
type UpgradePool struct {
	Name, State  string
	ReleaseAfter time.Time
}

// InProgress reports whether the latest attempt has started and is not finished.
func (u Upgrade) InProgress() bool { return u.Record != nil && u.Record.InProgress() }

// Condition returns a condition of the object; nil means that it has none of that type.
func (u Upgrade) Condition(name string) *metav1.Condition {
	for i := range u.Conditions {
		if u.Conditions[i].Type == name {
			return &u.Conditions[i]
		}
	}
	return nil
}

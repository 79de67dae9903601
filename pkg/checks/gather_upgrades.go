// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Upgrade holds the facts about an UpgradeConfig or UpgradeJob.
type Upgrade struct {
	Resource   Resource
	APIVersion string
	UID        string
	// To is the requested version. Image is the requested image, or empty for any.
	To, Image string
	// From is the version that was installed when the update was requested, or empty before that.
	From string
	// Phase is the phase of the latest attempt.
	Phase history.Phase
	// Paused is set if a user has paused the upgrade.
	Paused bool
	// Start and StartBefore are the earliest and latest start of the upgrade. They are zero if unset.
	Start, StartBefore time.Time
	// NextTime is the time of the next event, as reported by the operator.
	NextTime time.Time
	// Record is the record of the latest attempt, or nil before the first one.
	Record *history.Record
	// Step is the failed or running step of the latest attempt, or nil.
	Step *history.StepCondition
	// Conditions are the conditions of the object.
	Conditions []metav1.Condition
	// Pools holds the states of the pools that an UpgradeJob delays.
	Pools []UpgradePool
	// PDBTimeout is how long after the start of a drain the operator forces pods protected by a
	// PodDisruptionBudget, once the upgrade has commenced. A negative value disables forcing.
	PDBTimeout time.Duration
}

// Schedule holds the facts about an UpgradeConfig that creates UpgradeJobs.
type Schedule struct {
	Resource   Resource
	APIVersion string
	// Start is the next start, skipping suspended ones.
	Start time.Time
	// To is the version that an upgrade starting now would install. It is empty if no update is available or
	// the available updates are unknown.
	To string
}

// UpgradePool is the state of a pool that an UpgradeJob delays.
type UpgradePool struct {
	Name, State  string
	ReleaseAfter time.Time
}

// InProgress reports whether the latest attempt has started and not finished.
func (u Upgrade) InProgress() bool { return u.Record != nil && u.Record.InProgress() }

// addSchedule adds the next start of an UpgradeConfig that creates UpgradeJobs.
func (f *Facts) addSchedule(config *maintenancev1beta1.UpgradeConfig) {
	if config.DeletionTimestamp != nil || maintenance.IsSuspended(config) {
		return
	}
	for _, next := range config.Status.NextPossibleSchedules { // earliest first
		if next.SuspendedBy != "" || !next.Time.After(f.Now) {
			continue
		}
		f.Schedules = append(f.Schedules, Schedule{
			Resource:   Resource{Group: maintenancev1beta1.GroupVersion.Group, Kind: "UpgradeConfig", Namespace: config.Namespace, Name: config.Name},
			APIVersion: maintenancev1beta1.GroupVersion.String(), Start: next.Time.Time,
			To: f.Version.NewestUpdate(config.Spec.UpdatePolicy == maintenancev1beta1.UpdatePolicyPatchOnly).Release.Version,
		})
		return
	}
}

// upgradeOfConfig returns the facts about an UpgradeConfig, with the record for its desired version.
func upgradeOfConfig(config *upgradev1alpha1.UpgradeConfig) Upgrade {
	spec, status := &config.Spec, &config.Status
	u := Upgrade{
		Resource:   Resource{Group: upgradev1alpha1.GroupVersion.Group, Kind: "UpgradeConfig", Namespace: config.Namespace, Name: config.Name},
		APIVersion: upgradev1alpha1.GroupVersion.String(), UID: string(config.UID),
		To: spec.Desired.Version, Image: spec.Desired.Image,
		Paused: maintenance.PausedBy(config) != "", PDBTimeout: -1,
		Conditions: status.Conditions, NextTime: text.TimeOf(status.NextTime), Phase: history.PhaseNew,
	}
	if start, err := maintenance.UpgradeStart(config); err == nil {
		u.Start = start
	}
	if minutes := spec.PDBForceDrainTimeout; minutes != nil {
		u.PDBTimeout = time.Duration(*minutes) * time.Minute
	}
	for i := range status.History {
		if status.History[i].Version == spec.Desired.Version {
			u.setRecord(&status.History[i])
			break
		}
	}
	return u
}

// upgradeOfJob returns the facts about an UpgradeJob, with the record of its latest attempt.
func upgradeOfJob(job *maintenancev1beta1.UpgradeJob) Upgrade {
	u := Upgrade{
		Resource:   Resource{Group: maintenancev1beta1.GroupVersion.Group, Kind: "UpgradeJob", Namespace: job.Namespace, Name: job.Name},
		APIVersion: maintenancev1beta1.GroupVersion.String(), UID: string(job.UID),
		To: job.Spec.DesiredVersion.Version, Image: job.Spec.DesiredVersion.Image, PDBTimeout: -1,
		Conditions: job.Status.Conditions, NextTime: text.TimeOf(job.Status.NextTime), Phase: history.PhaseNew,
	}
	if start, before, err := maintenance.Window(job); err == nil {
		u.Start, u.StartBefore = start, before
		if latest, err := maintenance.LatestStart(job); err == nil && !latest.Equal(start) { // a retry has its own window
			u.Start, u.StartBefore = latest, latest.Add(before.Sub(start))
		}
	}
	if after, err := maintenance.Duration(job.Spec.Config.ForceDrainAfter); err == nil && job.Spec.Config.ForceDrainAfter != "" {
		u.PDBTimeout = after
	}
	for _, pool := range job.Status.MachineConfigPools {
		u.Pools = append(u.Pools, UpgradePool{Name: pool.Name, State: pool.State, ReleaseAfter: text.TimeOf(pool.ReleaseAfter)})
	}
	if record := maintenance.LatestAttempt(job); record != nil {
		u.setRecord(record)
	}
	return u
}

// setRecord sets the record of the latest attempt and its current step: the failed step or, if none has
// failed, the last running one.
func (u *Upgrade) setRecord(record *history.Record) {
	u.Record, u.Phase, u.From = record, record.Phase, record.PrecedingVersion
	for i := range record.Conditions {
		step := &record.Conditions[i]
		failed := step.CompleteTime != nil && step.Status == metav1.ConditionFalse
		if failed {
			u.Step = step
			return
		}
		if step.CompleteTime == nil {
			u.Step = step
		}
	}
}

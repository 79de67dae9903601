// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// AttemptStart returns when the window of an attempt opens. A retry has its own window. It returns an error if
// the API server would not have accepted the UpgradeJob.
func AttemptStart(job *maintenancev1beta1.UpgradeJob, record history.Record) (time.Time, error) {
	start, _, err := Window(job)
	if err != nil {
		return time.Time{}, err
	}
	if at := record.UpgradeAt; at != nil && !at.Time.Equal(start.Truncate(time.Second)) {
		return at.Time, nil
	}
	return start, nil
}

// LatestAttempt returns the record of the latest attempt at an UpgradeJob, in whatever order the
// records are, or nil if there is none.
func LatestAttempt(job *maintenancev1beta1.UpgradeJob) *history.Record {
	var latest *history.Record
	for i := range job.Status.History {
		if record := &job.Status.History[i]; latest == nil || record.Attempt > latest.Attempt {
			latest = record
		}
	}
	return latest
}

// LatestStart returns when the window of the latest attempt of an UpgradeJob opens, as AttemptStart
// does.
func LatestStart(job *maintenancev1beta1.UpgradeJob) (time.Time, error) {
	if record := LatestAttempt(job); record != nil {
		return AttemptStart(job, *record)
	}
	return AttemptStart(job, history.Record{})
}

// IsPostponed reports whether an UpgradeJob has ended without an upgrade because it was suspended or
// rescheduled.
func IsPostponed(job *maintenancev1beta1.UpgradeJob) bool {
	phase, ended := EndPhase(job)
	if !ended || phase != maintenancev1beta1.PhaseSkipped {
		return false
	}
	reason := LatestAttempt(job).Reason
	return reason == ReasonSuspended || reason == ReasonRescheduled
}

// IsOver reports whether the latest attempt at an UpgradeJob is finished and the finalizer is removed.
func IsOver(job *maintenancev1beta1.UpgradeJob) bool {
	latest := LatestAttempt(job)
	return latest != nil && latest.Finished() && !slices.Contains(job.Finalizers, maintenancev1beta1.Finalizer)
}

// EndPhase returns the final phase of an UpgradeJob. It returns false if its latest attempt is not over, or a
// user has requested another one.
func EndPhase(job *maintenancev1beta1.UpgradeJob) (history.Phase, bool) {
	if !IsOver(job) {
		return "", false
	}
	answered := ""
	if job.Status.Retry != nil {
		answered = job.Status.Retry.Token
	}
	if token := RequestToken(job, maintenancev1beta1.RetryAnnotation); token != "" && token != answered {
		return "", false
	}
	switch phase := LatestAttempt(job).Phase; phase {
	case history.PhaseUpgraded, history.PhaseFailed, maintenancev1beta1.PhaseSkipped:
		return phase, true
	default:
		return "", false
	}
}

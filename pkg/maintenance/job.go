// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// EndPhase returns the phase in which an UpgradeJob has ended; false means that there is something
// left to do for it: its latest attempt is not complete, it keeps the finalizer, or a user has
// requested another attempt.
func EndPhase(job *v1beta1.UpgradeJob) (history.Phase, bool) {
	var latest *history.Record
	for i := range job.Status.History {
		if record := &job.Status.History[i]; latest == nil || record.Attempt > latest.Attempt {
			latest = record
		}
	}
	if latest == nil || latest.CompleteTime == nil || slices.Contains(job.Finalizers, v1beta1.Finalizer) {
		return "", false
	}
	answered := ""
	if job.Status.Retry != nil {
		answered = job.Status.Retry.Token
	}
	if token := RequestToken(job, v1beta1.RetryAnnotation); token != "" && token != answered {
		return "", false
	}
	switch latest.Phase {
	case history.PhaseUpgraded, history.PhaseFailed, v1beta1.PhaseSkipped:
		return latest.Phase, true
	default:
		return "", false
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// Defaults of the history limits.
const (
	defaultSuccessful = 3
	defaultFailed     = 5
)

// deleteEndedJobs deletes ended UpgradeJobs that exceed the history limits, oldest first. It
// ignores UpgradeJobs that users created and UpgradeJobs with unfinished work.
func (s *scope) deleteEndedJobs(ctx context.Context) error {
	var successful, failed []*maintenancev1beta1.UpgradeJob
	for i := range s.jobs {
		job := &s.jobs[i]
		switch phase, ended := maintenance.EndPhase(job); {
		case !ended || job.DeletionTimestamp != nil:
		case s.onUpdate() && s.status.PendingUpdate == nil && s.isLatest(job) && maintenance.IsPostponed(job): // only it shows that its version needs another one
		case phase == history.PhaseFailed:
			failed = append(failed, job)
		default:
			successful = append(successful, job)
		}
	}
	spec := &s.cfg.Spec
	surplus := append(excess(successful, spec.SuccessfulJobsHistoryLimit, defaultSuccessful), excess(failed, spec.FailedJobsHistoryLimit, defaultFailed)...)
	var errs []error
	for _, job := range surplus {
		unchanged := client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion}
		if err := s.client.Delete(ctx, job.DeepCopy(), unchanged); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting UpgradeJob %s, which exceeds the history limit: %w", job.Name, err))
		}
	}
	return errors.Join(errs...)
}

// excess returns the UpgradeJobs that exceed a limit, oldest first.
func excess(jobs []*maintenancev1beta1.UpgradeJob, limit *int32, byDefault int) []*maintenancev1beta1.UpgradeJob {
	keep := byDefault
	if limit != nil {
		keep = int(*limit)
	}
	slices.SortFunc(jobs, func(a, b *maintenancev1beta1.UpgradeJob) int {
		x, _ := maintenance.Time(a.Spec.StartAfter)
		y, _ := maintenance.Time(b.Spec.StartAfter)
		return cmp.Or(x.Compare(y), cmp.Compare(a.Name, b.Name))
	})
	return jobs[:max(0, len(jobs)-keep)]
}

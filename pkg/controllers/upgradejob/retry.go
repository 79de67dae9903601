// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// answerRetry answers a request for another attempt at an UpgradeJob that has ended, and reports whether it
// did. It adds a record with the token whose window starts now. The change of the UpgradeJob triggers the next
// pass.
func (r *Reconciler) answerRetry(ctx context.Context, job *maintenancev1beta1.UpgradeJob) (bool, error) {
	token := maintenance.RequestToken(job, maintenancev1beta1.RetryAnnotation)
	if token == "" || token == answeredToken(job) || !isOver(job) {
		return false, nil
	}
	after := job.DeepCopy()
	after.Status.Retry = &maintenancev1beta1.RetryStatus{Token: token}
	last := maintenance.LatestAttempt(job)
	record := history.Record{
		Version: job.Spec.DesiredVersion.Version, Phase: history.PhaseNew, Attempt: max(last.Attempt, last.Attempt+1), // it may be the greatest number already
		UpgradeAt: new(metav1.NewTime(r.Clock.Now().Truncate(time.Second))),
	}
	records := slices.DeleteFunc(after.Status.History, func(r history.Record) bool { return r.Attempt == record.Attempt })
	records = append([]history.Record{record}, records...)
	patch := client.MergeFromWithOptions(job, client.MergeFromWithOptimisticLock{})
	var err error
	for keep := lifecycle.ByAttempt.Limit(); keep > 0; keep /= 2 { // drops earlier attempts that the API server does not accept
		after.Status.History = records[:min(len(records), keep)]
		if err = r.Client.Status().Patch(ctx, after, patch); !manager.IsTooLarge(err) && !apierrors.IsInvalid(err) {
			break
		}
	}
	if err != nil {
		return false, fmt.Errorf("answering the request for another attempt: %w", err)
	}
	return true, nil
}

func answeredToken(job *maintenancev1beta1.UpgradeJob) string {
	if job.Status.Retry == nil {
		return ""
	}
	return job.Status.Retry.Token
}

// isOver reports whether the latest attempt is over and the UpgradeJob is not being deleted.
func isOver(job *maintenancev1beta1.UpgradeJob) bool {
	return job.DeletionTimestamp.IsZero() && maintenance.IsOver(job)
}

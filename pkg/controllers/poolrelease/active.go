// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package poolrelease

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// activeJob reports whether the attempt of the UpgradeJob is in progress that has marked a pool.
func activeJob(ctx context.Context, r client.Reader, mark clusterstate.PoolMark, namespaces ...client.ListOption) (bool, error) {
	var jobs v1beta1.UpgradeJobList
	if err := r.List(ctx, &jobs, append(namespaces, client.UnsafeDisableDeepCopy)...); err != nil {
		return false, fmt.Errorf("listing the UpgradeJobs: %w", err)
	}
	for i := range jobs.Items {
		if job := &jobs.Items[i]; string(job.UID) == mark.JobUID {
			return isActive(job, mark.Attempt), nil
		}
	}
	return false, nil
}

// activeLive is activeJob of the API server: the cache may be behind.
func (r *Reconciler) activeLive(ctx context.Context, mark clusterstate.PoolMark) (bool, error) {
	if len(r.WatchNamespaces) == 0 {
		return activeJob(ctx, r.Live, mark)
	}
	var errs []error
	for _, namespace := range r.WatchNamespaces {
		active, err := activeJob(ctx, r.Live, mark, client.InNamespace(namespace))
		if active {
			return true, nil
		}
		errs = append(errs, err)
	}
	return false, errors.Join(errs...)
}

// isActive reports whether an attempt is in progress. A job without a record has lost it and resumes
// the attempt.
func isActive(job *v1beta1.UpgradeJob, attempt int32) bool {
	if len(job.Status.History) == 0 {
		return true
	}
	newest := job.Status.History[0]
	return newest.Attempt <= attempt && !newest.Finished()
}

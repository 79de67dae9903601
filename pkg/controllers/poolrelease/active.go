// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package poolrelease

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobs,namespace=managed-upgrade-operator,verbs=get;list

// jobPageSize is the number of UpgradeJobs in one page of a list. They are few, since annotations
// may be long.
const jobPageSize = 25

// activeJob reports whether the attempt of the UpgradeJob is in progress that has marked a pool.
func activeJob(ctx context.Context, cache client.Reader, mark clusterstate.PoolMark) (bool, error) {
	job, err := cachedJob(ctx, cache, mark.JobUID)
	return job != nil && isActive(job, mark.Attempt), err
}

// cachedJob returns the UpgradeJob in the cache, which must not be changed; nil means that there is
// none.
func cachedJob(ctx context.Context, cache client.Reader, uid string) (*v1beta1.UpgradeJob, error) {
	var jobs v1beta1.UpgradeJobList
	if err := cache.List(ctx, &jobs, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the UpgradeJobs: %w", err)
	}
	for i := range jobs.Items {
		if string(jobs.Items[i].UID) == uid {
			return &jobs.Items[i], nil
		}
	}
	return nil, nil
}

// activeLive is activeJob of the API server: the cache may be behind.
func (r *Reconciler) activeLive(ctx context.Context, mark clusterstate.PoolMark) (bool, error) {
	cached, err := cachedJob(ctx, r.Client, mark.JobUID)
	if err != nil {
		return false, err
	}
	var key client.ObjectKey
	if cached != nil {
		key = client.ObjectKeyFromObject(cached)
	} else if key, err = r.findLive(ctx, mark.JobUID); err != nil || key.Name == "" {
		return false, err
	}
	var job v1beta1.UpgradeJob
	if err := r.Live.Get(ctx, key, &job); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("getting UpgradeJob %s: %w", key, err)
	}
	return string(job.UID) == mark.JobUID && isActive(&job, mark.Attempt), nil
}

// findLive returns the key of an UpgradeJob that the cache does not have; an empty name means that
// the API server has none in the watched namespaces.
func (r *Reconciler) findLive(ctx context.Context, uid string) (client.ObjectKey, error) {
	namespaces := r.WatchNamespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		if key, err := findJob(ctx, r.Live, uid, namespace); err != nil || key.Name != "" {
			return key, err
		}
	}
	return client.ObjectKey{}, nil
}

// findJob lists the metadata of the UpgradeJobs in a namespace, page by page.
func findJob(ctx context.Context, live client.Reader, uid, namespace string) (client.ObjectKey, error) {
	page := metav1.PartialObjectMetadataList{}
	for more := true; more; more = page.Continue != "" {
		from := page.Continue
		page = metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("UpgradeJobList"))
		if err := live.List(ctx, &page, client.InNamespace(namespace), client.Limit(jobPageSize), client.Continue(from)); err != nil {
			return client.ObjectKey{}, fmt.Errorf("listing the UpgradeJobs: %w", err)
		}
		for i := range page.Items {
			if string(page.Items[i].UID) == uid {
				return client.ObjectKeyFromObject(&page.Items[i]), nil
			}
		}
	}
	return client.ObjectKey{}, nil
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

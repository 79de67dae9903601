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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobs,namespace=managed-upgrade-operator,verbs=get;list

// jobPageSize is the number of UpgradeJobs in one page of a list. They are few, since annotations
// may be long.
const jobPageSize = 25

// attemptState is how far the attempt is that has marked a pool.
type attemptState int

// The states.
const (
	attemptEnded    attemptState = iota // or it is gone
	attemptPausing                      // it has not commenced, and may still pause pools
	attemptReleases                     // it has commenced, and releases its pools
)

// attemptOf returns the state of the attempt that has marked a pool.
func attemptOf(ctx context.Context, cache client.Reader, mark clusterstate.PoolMark) (attemptState, error) {
	job, err := cachedJob(ctx, cache, mark.JobUID)
	if err != nil || job == nil {
		return attemptEnded, err
	}
	return stateOf(job, mark.Attempt), nil
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

// attemptLive is attemptOf of the API server: the cache may be behind.
func (r *Reconciler) attemptLive(ctx context.Context, mark clusterstate.PoolMark) (attemptState, error) {
	cached, err := cachedJob(ctx, r.Client, mark.JobUID)
	if err != nil {
		return attemptEnded, err
	}
	var key client.ObjectKey
	if cached != nil {
		key = client.ObjectKeyFromObject(cached)
	} else if key, err = r.findLive(ctx, mark.JobUID); err != nil || key.Name == "" {
		return attemptEnded, err
	}
	var job v1beta1.UpgradeJob
	if err := r.Live.Get(ctx, key, &job); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return attemptEnded, nil
		}
		return attemptEnded, fmt.Errorf("getting UpgradeJob %s: %w", key, err)
	}
	if string(job.UID) != mark.JobUID {
		return attemptEnded, nil
	}
	return stateOf(&job, mark.Attempt), nil
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

// stateOf returns the state of an attempt. A job without a record has lost it and resumes the attempt.
func stateOf(job *v1beta1.UpgradeJob, attempt int32) attemptState {
	switch latest := maintenance.LatestAttempt(job); {
	case latest == nil:
		return attemptPausing
	case latest.Attempt > attempt || latest.Finished():
		return attemptEnded
	case latest.CommenceTime == nil:
		return attemptPausing
	}
	return attemptReleases
}

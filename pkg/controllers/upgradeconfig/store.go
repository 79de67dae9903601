// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

// errStaleCache says that the cache does not hold yet what was last written.
var errStaleCache = errors.New("the cache is behind the last write")

// store reads UpgradeConfigs from the cache and writes them, and sees to it
// that nobody acts on a record which is older than the last one written. The
// cache may lag behind; and a write that was answered with an error may have
// been applied. So it remembers the resource version of what it last wrote,
// and where it is not sure of that, as at the start, it asks the API server once.
type store struct {
	client client.Client
	live   client.Reader

	versions cache[string] // the resource version
}

// load returns the UpgradeConfig, or nil if there is none. It answers errBehind
// if the cache has to catch up first; a watch event will tell when it has.
func (s *store) load(ctx context.Context, key client.ObjectKey) (*v1alpha1.UpgradeConfig, error) {
	var cached v1alpha1.UpgradeConfig
	err := s.client.Get(ctx, key, &cached)
	if apierrors.IsNotFound(err) {
		s.versions.delete(key)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting UpgradeConfig %s: %w", key, err)
	}
	latest, err := s.latestVersion(ctx, key)
	if apierrors.IsNotFound(err) { // deleted meanwhile; the cache will hear of it
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, latest)
	if err != nil {
		return nil, fmt.Errorf("comparing the resource versions of UpgradeConfig %s: %w", key, err)
	}
	if order < 0 {
		return nil, errStaleCache
	}
	return &cached, nil
}

// latestVersion is the resource version that the cache must have reached.
func (s *store) latestVersion(ctx context.Context, key client.ObjectKey) (string, error) {
	if version := s.versions.get(key); version != "" {
		return version, nil
	}
	var live v1alpha1.UpgradeConfig
	if err := s.live.Get(ctx, key, &live); err != nil {
		return "", fmt.Errorf("getting UpgradeConfig %s from the API server: %w", key, err)
	}
	s.versions.set(key, live.ResourceVersion)
	return live.ResourceVersion, nil
}

// patch writes what differs between before and after, if nobody has written
// meanwhile; after is then what the API server holds.
func (s *store) patch(ctx context.Context, before, after *v1alpha1.UpgradeConfig) error {
	return s.recordWrite(after, s.client.Patch(ctx, after, optimisticLock(before)))
}

// patchStatus is patch for the status.
func (s *store) patchStatus(ctx context.Context, before, after *v1alpha1.UpgradeConfig) error {
	return s.recordWrite(after, s.client.Status().Patch(ctx, after, optimisticLock(before)))
}

func optimisticLock(before *v1alpha1.UpgradeConfig) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func (s *store) recordWrite(obj *v1alpha1.UpgradeConfig, err error) error {
	if err != nil {
		s.versions.delete(client.ObjectKeyFromObject(obj)) // it may have been applied all the same
		return err
	}
	s.versions.set(client.ObjectKeyFromObject(obj), obj.ResourceVersion)
	return nil
}

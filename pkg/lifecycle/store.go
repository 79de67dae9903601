// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errStaleCache reports that the cache does not show the last write yet.
var errStaleCache = errors.New("the cache is behind the last write")

// staleTimeout is how long the cache may lag behind before the resource version is read from the API server
// again. Versions decrease if the API server was restored from a backup.
const staleTimeout = time.Minute

// store reads objects from the cache and writes them. It never returns a record older than the last write,
// because the cache may lag behind, and a write that returned an error may have been applied. It keeps the
// resource version of the last write. If it does not know that, for example after a start, it queries the API
// server once.
type store[T client.Object] struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	newObj func() T
	// onRestore is called with the last written version if the API server appears to have been restored from a
	// backup. It may be nil.
	onRestore func(ctx context.Context, obj T, version string)

	versions cache[string]    // the resource version that the cache must have reached
	behind   cache[time.Time] // since when it is behind
}

// load returns the object, and whether it exists. It returns errStaleCache if the cache is behind the last
// write.
func (s *store[T]) load(ctx context.Context, key client.ObjectKey) (obj T, found bool, err error) {
	obj = s.newObj()
	err = s.client.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		s.forget(key)
		return obj, false, nil
	}
	if err != nil {
		return obj, false, fmt.Errorf("getting %T %s: %w", obj, key, err)
	}
	latest, err := s.latestVersion(ctx, key)
	if apierrors.IsNotFound(err) { // deleted in the meantime: the cache will follow
		return obj, false, nil
	}
	if err != nil {
		return obj, false, err
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), latest)
	if err != nil {
		return obj, false, fmt.Errorf("comparing the resource versions of %T %s: %w", obj, key, err)
	}
	if order < 0 {
		s.expire(ctx, key, obj)
		return obj, false, errStaleCache
	}
	s.behind.delete(key)
	return obj, true, nil
}

// expire drops the expected resource version if the cache has been behind for too long.
func (s *store[T]) expire(ctx context.Context, key client.ObjectKey, obj T) {
	now := s.clock.Now()
	since := s.behind.get(key)
	if since.IsZero() || since.After(now) {
		s.behind.set(key, now)
		return
	}
	if now.Sub(since) >= staleTimeout {
		ctrl.LoggerFrom(ctx).Info("the cache has been behind the last write for a minute; reading the resource version from the API server again",
			"expected", s.versions.get(key))
		if s.onRestore != nil {
			s.onRestore(ctx, obj, s.versions.get(key))
		}
		s.forget(key)
	}
}

func (s *store[T]) forget(key client.ObjectKey) {
	s.versions.delete(key)
	s.behind.delete(key)
}

// latestVersion returns the resource version that the cache must have reached.
func (s *store[T]) latestVersion(ctx context.Context, key client.ObjectKey) (string, error) {
	if version := s.versions.get(key); version != "" {
		return version, nil
	}
	live := s.newObj()
	if err := s.live.Get(ctx, key, live); err != nil {
		return "", fmt.Errorf("getting %T %s from the API server: %w", live, key, err)
	}
	s.versions.set(key, live.GetResourceVersion())
	return live.GetResourceVersion(), nil
}

// isKnown reports whether a pass has seen this version of the object, because this process wrote it, or started
// with it. It returns false while the cache is behind, because a pass is waiting for it.
func (s *store[T]) isKnown(obj client.Object) bool {
	key := client.ObjectKeyFromObject(obj)
	return s.versions.get(key) == obj.GetResourceVersion() && s.behind.get(key).IsZero()
}

// patch writes the difference between before and after, unless another client has changed the object since.
// Afterwards, after is the stored object.
func (s *store[T]) patch(ctx context.Context, before, after T) error {
	return s.recordWrite(after, s.client.Patch(ctx, after, optimisticLock(before)))
}

// patchStatus does the same for the status.
func (s *store[T]) patchStatus(ctx context.Context, before, after T) error {
	return s.recordWrite(after, s.client.Status().Patch(ctx, after, optimisticLock(before)))
}

func optimisticLock(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func (s *store[T]) recordWrite(obj T, err error) error {
	key := client.ObjectKeyFromObject(obj)
	if err != nil {
		s.versions.delete(key) // it may have been applied
		return err
	}
	s.versions.set(key, obj.GetResourceVersion())
	return nil
}

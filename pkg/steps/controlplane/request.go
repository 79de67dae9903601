// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// RequestUpdate requests the target from the cluster version operator. It checks the preconditions on
// the object that it patches. If another client changes the object in between, the patch conflicts,
// and everything is decided again. A conflict proves nothing about the request: an earlier patch
// may have been applied or may still be in flight. live reads from the API server.
func RequestUpdate(c client.Client, live client.Reader, target clusterstate.Target, preconditions ...Precondition) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		current, version, err := getClusterVersion(ctx, c)
		if err != nil {
			return engine.Result{}, err
		}
		switch version.Observe(target) {
		case clusterstate.ObservedPending, clusterstate.ObservedRefused, clusterstate.ObservedBegun, clusterstate.ObservedDone:
			return unlessOwn(ctx, c, live, target, run.RequestedImage, requestedResult(target))
		case clusterstate.ObservedNone, clusterstate.ObservedIgnored, clusterstate.ObservedOther:
		}
		if held := clusterstate.HeldBy(current); held != "" { // since the pass began
			return engine.Wait(engine.ReasonPaused, "%s", held), nil
		}
		if result, err := checkAll(version, target, preconditions); err != nil || !result.Passed() {
			return result, err
		}
		release := releaseToRequest(version, target)
		if r := version.Requested; version.Observe(target) == clusterstate.ObservedIgnored && r.Release == release && !r.Force {
			ignored := engine.Wait("TargetRefused", "the cluster version operator ignores the request for %s: %s", target.Version, version.IgnoredBecause())
			return unlessOwn(ctx, c, live, target, run.RequestedImage, ignored)
		}
		if run.Renew != nil {
			switch err := run.Renew(ctx, release.Image); {
			case apierrors.IsConflict(err):
				return retryOnConflict(), nil
			case err != nil:
				return engine.Result{}, err
			}
		}
		applied, err := patch(ctx, c, current.DeepCopy(), clusterstate.RequestPatch(current, release))
		switch {
		case err != nil:
			return engine.Result{}, fmt.Errorf("requesting %s from the cluster version operator: %w", target.Version, err)
		case !applied:
			return retryOnConflict(), nil
		}
		return requestedResult(target), nil
	}
}

// unlessOwn returns the result of a request that was not made because the target is already
// requested. The result has no effect if the API server shows another client's request and no
// earlier request of this attempt can still be applied.
func unlessOwn(ctx context.Context, c client.Client, live client.Reader, target clusterstate.Target, image *string, result engine.Result) (engine.Result, error) {
	current, version, err := getClusterVersion(ctx, live)
	if err != nil {
		return engine.Result{}, err
	}
	switch {
	case version.IsOwnRequest(target.Version, image) != clusterstate.No:
		return result, nil
	case version.Observe(target).HasBegun(): // an earlier request would change nothing
		return result.WithoutEffect(), nil
	}
	fenced, err := fence(ctx, c, current)
	if err != nil || !fenced {
		return result, err
	}
	return result.WithoutEffect(), nil
}

// releaseToRequest returns the release to name in a request for the target. A version without an
// image is enough only if it is an available update and no other update has the same version.
func releaseToRequest(version clusterstate.Version, target clusterstate.Target) clusterstate.Release {
	release := clusterstate.Release{Version: target.Version, Image: target.Image}
	if available := version.AvailableUpdate(target); !available.Listed || available.Ambiguous {
		release.Image = cmp.Or(target.Image, available.Image)
	}
	return release
}

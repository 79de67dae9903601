// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// WithdrawRequest withdraws a target that was requested and that the cluster version operator has not begun to install,
// so it does not begin hours later, unobserved. Live reads from the API server, which shows whose the request is:
// another client's request stays.
//
// The ClusterVersion is written even if there is nothing to withdraw, unless the update has begun: an earlier
// request of this attempt may still be on its way, and conflicts with that write.
func WithdrawRequest(c client.Client, live client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		current, version, err := getClusterVersion(ctx, live)
		if err != nil {
			return engine.Result{}, err
		}
		commenced := version.Observe(target).HasBegun()
		pending := !commenced && isOwnPending(version, target, run.RequestedImage)
		applied := true
		switch {
		case pending:
			applied, err = patch(ctx, c, current.DeepCopy(), clusterstate.WithdrawalPatch(current))
		case !commenced:
			applied, err = fence(ctx, c, current)
		}
		switch {
		case err != nil:
			return engine.Result{}, fmt.Errorf("withdrawing %s: %w", target.Version, err)
		case !applied:
			return retryOnConflict(), nil
		case commenced:
			return engine.Skip("Commenced", "the cluster version operator has begun to install %s; it cannot be withdrawn", target.Version), nil
		case !pending:
			return nothingToWithdraw(version, target), nil
		}
		return engine.Done("withdrew %s, which the cluster version operator had not begun to install", target.Version), nil
	}
}

// isOwnPending reports whether a request of the operator for the target's version, with that image, stands and has not
// begun. The target's image does not count: the image in the spec may have changed since the request.
func isOwnPending(version clusterstate.Version, target clusterstate.Target, image *string) bool {
	return version.ObserveRequest() != clusterstate.ObservedNone && version.IsOwnRequest(target.Version, image) != clusterstate.No
}

func nothingToWithdraw(version clusterstate.Version, target clusterstate.Target) engine.Result {
	if version.ObserveRequest() != clusterstate.ObservedNone && version.Requested.Version == target.Version {
		return engine.Skip("NothingToWithdraw", "%s; that request is left alone", requestedByOther(version, target))
	}
	return engine.Skip("NothingToWithdraw", "%s is not requested", target.Version)
}

// WithdrawOutdatedRequest is the keep-alive of the committing step: it withdraws the request of this upgrade if the
// spec has changed since, so it requests another image, or no longer accepts a risk. The step then makes another
// request as soon as its gates pass.
func WithdrawOutdatedRequest(c client.Client, live client.Reader, target clusterstate.Target) engine.UpgradeStep {
	withdraw := WithdrawRequest(c, live, target)
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, c)
		if err != nil {
			return engine.Result{}, err
		}
		if run.Requested && !version.Observe(target).HasBegun() && isOwnPending(version, target, run.RequestedImage) && isOutdated(version, target) {
			result, err := withdraw(ctx, run)
			if err != nil || result.Reason() != engine.ReasonDone {
				return result, err
			}
			return engine.Undone("%s", result.Message()), nil
		}
		return engine.Done("there is no outdated request"), nil
	}
}

// isOutdated reports whether a pending request for the target's version is not what the target
// requests by now. A request without an image is one for the offered image.
func isOutdated(version clusterstate.Version, target clusterstate.Target) bool {
	offer := version.AvailableUpdate(target)
	requested := version.Requested
	return requested == nil || !requested.Matches(target) || requested.Architecture != "" ||
		requested.Image == "" && (clusterstate.Release{Image: offer.Image}).HasOtherImage(target.Image) ||
		len(offer.UnacceptedRisks(target)) > 0
}

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

// WithdrawRequest withdraws a request for the target that the cluster version operator has not
// started to install, because the update could otherwise start hours later, unobserved. It reads
// the ClusterVersion from the API server to see the owner of the request. Another client's request
// is kept.
//
// The ClusterVersion is written even if there is nothing to withdraw, unless the update has
// started. An earlier request of this attempt may still be in flight, and then conflicts with that
// write.
func WithdrawRequest(c client.Client, live client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return despiteConflicts(func(ctx context.Context, run engine.Run) (engine.Result, error) {
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
			return engine.Skip("Commenced", "the cluster version operator has started to install %s; the request can no longer be withdrawn", target.Version), nil
		case !pending:
			return nothingToWithdraw(version, target), nil
		}
		return engine.Done("withdrew %s, which the cluster version operator had not begun to install", target.Version), nil
	})
}

// isOwnPending reports whether the operator's request for the target's version with that image is
// pending and has not started. It ignores the target's image, because the image in the spec may
// have changed since the request.
func isOwnPending(version clusterstate.Version, target clusterstate.Target, image *string) bool {
	return version.ObserveRequest() != clusterstate.ObservedNone && version.IsOwnRequest(target.Version, image) != clusterstate.No
}

func nothingToWithdraw(version clusterstate.Version, target clusterstate.Target) engine.Result {
	if version.ObserveRequest() != clusterstate.ObservedNone && version.Requested.Version == target.Version {
		return engine.Skip("NothingToWithdraw", "%s; that request is left alone", requestedByOther(version, target))
	}
	return engine.Skip("NothingToWithdraw", "%s is not requested", target.Version)
}

// WithdrawOutdatedRequest is the keep-alive of the committing step. It withdraws this upgrade's
// request if the spec has changed and now requests another image or no longer accepts a risk. The
// step then makes another request as soon as its gates pass.
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

// isOutdated reports whether a pending request for the target's version differs from what the
// target now requests. A request without an image is for the available image.
func isOutdated(version clusterstate.Version, target clusterstate.Target) bool {
	offer := version.AvailableUpdate(target)
	requested := version.Requested
	return requested == nil || !requested.Matches(target) || requested.Architecture != "" ||
		requested.Image == "" && (clusterstate.Release{Image: offer.Image}).HasOtherImage(target.Image) ||
		len(offer.UnacceptedRisks(target)) > 0
}

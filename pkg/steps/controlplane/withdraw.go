// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// WithdrawRequest withdraws a target that was requested and that the cluster version operator has not
// begun to install, so that it does not begin hours later, unobserved.
//
// The patch is sent even if there is nothing to withdraw. It changes nothing then, but its
// precondition fails if the cache is outdated: a request that it does not show yet must not remain.
func WithdrawRequest(c client.Client, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		current, version, err := getClusterVersion(ctx, c)
		if err != nil {
			return engine.Result{}, err
		}
		commenced := version.Current.Matches(target)
		pending := isPending(version, target)
		applied, err := patchSpec(ctx, c, current, func(spec *configv1.ClusterVersionSpec) {
			if pending {
				spec.DesiredUpdate = nil
			}
		})
		switch {
		case err != nil:
			return engine.Result{}, fmt.Errorf("withdrawing %s: %w", target.Version, err)
		case !applied:
			return retryOnConflict(), nil
		case commenced:
			return engine.Skip("Commenced", "the cluster version operator has begun to install %s; it cannot be withdrawn", target.Version), nil
		case !pending:
			return engine.Skip("NothingToWithdraw", "%s is not requested", target.Version), nil
		}
		return engine.Done("withdrew %s, which the cluster version operator had not begun to install", target.Version), nil
	}
}

// isPending reports whether a request for the target's version is to be withdrawn. The image does not
// count: that of the spec may have changed since the request.
func isPending(version clusterstate.Version, target clusterstate.Target) bool {
	requested := version.Requested
	return requested != nil && requested.Version == target.Version && requested.Architecture == "" && version.Current.Version != target.Version
}

// WithdrawOutdatedRequest is the keep-alive of the committing step: it withdraws the request of this
// upgrade if the spec has changed since, so that it requests another image, or does not accept a risk
// any more. The step then makes another request as soon as its gates pass.
func WithdrawOutdatedRequest(c client.Client, target clusterstate.Target) engine.UpgradeStep {
	withdraw := WithdrawRequest(c, target)
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, c)
		if err != nil {
			return engine.Result{}, err
		}
		if run.Requested && isPending(version, target) && isOutdated(version, target) {
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
	return !version.IsRequested(target) ||
		version.Requested.Image == "" && (clusterstate.Release{Image: offer.Image}).HasOtherImage(target.Image) ||
		len(offer.UnacceptedRisks(target)) > 0
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// WaitUntilAccepted waits until the cluster version operator has begun to install the target. It
// returns the zero Result if the target is not requested, or not in the way the spec requests by now.
func WaitUntilAccepted(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		switch {
		case version.Current.Matches(target):
			return engine.Done("the cluster version operator has accepted %s", target.Version), nil
		case isOutdated(version, target):
			return engine.Result{}, nil
		}
		if message, rejected := version.RejectionMessage(target); rejected {
			return engine.Wait("TargetRefused", "the cluster version operator refuses %s: %s", target.Version, message), nil
		}
		return requestedResult(target), nil
	}
}

// IsCommenced reports whether the cluster is at the target or is being updated to it. That it is not
// is confirmed by the API server, because the upgrade may end for it: a cache may lag behind both the
// request and its acceptance.
func IsCommenced(r, live client.Reader, target clusterstate.Target) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		version, err := readConfirmed(ctx, r, live, func(v clusterstate.Version) bool { return !v.Current.Matches(target) })
		return err == nil && version.Current.Matches(target), err
	}
}

func requestedResult(target clusterstate.Target) engine.Result {
	return engine.Wait("Requested", "requested %s from the cluster version operator", target.Version)
}

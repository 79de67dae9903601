// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// WaitUntilAccepted looks whether the cluster version operator has begun with the
// target, and has nothing to say, that is, answers the zero Result, if it was
// not asked to.
func WaitUntilAccepted(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		switch {
		case version.Current.Matches(target):
			return engine.Done("the cluster version operator has accepted %s", target.Version), nil
		case !version.IsRequested(target):
			return engine.Result{}, nil
		}
		if message, rejected := version.RejectionMessage(target); rejected {
			return engine.Wait("TargetRefused", "the cluster version operator refuses %s: %s", target.Version, message), nil
		}
		return requestedResult(target), nil
	}
}

// IsCommenced says whether the cluster is at the target or on its way to it. That
// a target which was asked for has not been begun with is confirmed: the
// upgrade may be given up for it.
func IsCommenced(r, live client.Reader, target clusterstate.Target) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		version, err := readConfirmed(ctx, r, live, func(v clusterstate.Version) bool { return v.IsRequested(target) && !v.Current.Matches(target) })
		return version.Current.Matches(target), err
	}
}

func requestedResult(target clusterstate.Target) engine.Result {
	return engine.Wait("Requested", "asked the cluster version operator for %s", target.Version)
}

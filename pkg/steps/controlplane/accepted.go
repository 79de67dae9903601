// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Accepted looks whether the cluster version operator has begun with the
// target, and has nothing to say, that is, answers the zero Result, if it was
// not asked to.
func Accepted(r client.Reader, target cluster.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := cluster.ReadVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		switch {
		case version.Current.Is(target):
			return engine.Done("the cluster version operator has accepted %s", target.Version), nil
		case !version.Asks(target):
			return engine.Result{}, nil
		}
		if refusal, refused := version.Refusal(target); refused {
			return engine.Wait("TargetRefused", "the cluster version operator refuses %s: %s", target.Version, refusal), nil
		}
		return requested(target), nil
	}
}

// Commenced says whether the cluster is at the target or on its way to it. That
// a target which was asked for has not been begun with is confirmed: the
// upgrade may be given up for it.
func Commenced(r, live client.Reader, target cluster.Target) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		version, err := confirmed(ctx, r, live, func(v cluster.Version) bool { return v.Asks(target) && !v.Current.Is(target) })
		return version.Current.Is(target), err
	}
}

func requested(target cluster.Target) engine.Result {
	return engine.Wait("Requested", "asked the cluster version operator for %s", target.Version)
}

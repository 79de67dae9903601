// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Offerable is Pinned as far as it can be told without setting the channel, so
// that it can be asked long before the upgrade may begin. What another channel
// offers nobody knows before it is set: that is said, and is not in the way.
// The other gates set nothing, and can be asked ahead of time as they are.
func Offerable(r client.Reader, target cluster.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := cluster.ReadVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		if setsChannel(version, target) {
			return engine.Skip("ChannelWillBeSet", "the channel is %q; the upgrade sets it to %s when it begins, and only then will it be known whether %s is offered in it",
				version.Channel, target.Channel, target.Version), nil
		}
		return offeredInChannel(version, target), nil
	}
}

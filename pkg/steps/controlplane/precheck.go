// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// PreCheckUpdateAvailable is Pinned as far as it can be told without setting the channel, so
// that it can be asked long before the upgrade may begin. What another channel
// offers nobody knows before it is set: that is said, and is not in the way.
// The other gates set nothing, and can be asked ahead of time as they are.
func PreCheckUpdateAvailable(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		if needsChannel(version, target) {
			return engine.Skip("ChannelWillBeSet", "the channel is %q; the upgrade sets it to %s when it begins, and only then will it be known whether %s is offered in it",
				version.Channel, target.Channel, target.Version), nil
		}
		return availableInChannel(version, target), nil
	}
}

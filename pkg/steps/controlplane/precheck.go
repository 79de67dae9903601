// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// PreCheckUpdateAvailable checks SetChannel as far as possible without setting the channel. The
// updates in another channel are only known after it is set. This is reported and does not block.
func PreCheckUpdateAvailable(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		if !needsChannel(version, target) {
			return availableInChannel(version, target)
		}
		if message := channelMismatch(version, target); message != "" {
			return engine.Wait("VersionNotInChannel", "%s", message), nil
		}
		return engine.Skip("ChannelWillBeSet", "the channel is %q; the upgrade sets it to %s at its start, and only then can it be known whether %s is offered in it",
			text.Excerpt(version.Channel), target.Channel, target.Version), nil
	}
}

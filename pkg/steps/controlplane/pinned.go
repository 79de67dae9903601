// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Pinned sets the update channel and waits until the target is offered in it.
func Pinned(c client.Client, target cluster.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		read, version, err := get(ctx, c)
		if err != nil {
			return engine.Result{}, err
		}
		if setsChannel(version, target) {
			return setChannel(ctx, c, read, target.Channel)
		}
		return offeredInChannel(version, target), nil
	}
}

// setsChannel says whether another channel is wanted. That of a cluster which
// is on its way is left alone.
func setsChannel(version cluster.Version, target cluster.Target) bool {
	return !version.Current.Is(target) && target.Channel != "" && version.Channel != target.Channel
}

// offeredInChannel waits until what is offered is that of the channel, and then for the target. The cluster version
// operator retrieves what a channel offers at once, and says only minutes later that it has observed the spec; while it
// refuses a release it never does.
func offeredInChannel(version cluster.Version, target cluster.Target) engine.Result {
	settled := version.Observed || version.ReleaseAccepted.IsFalse() ||
		slices.Contains(version.Offer(target.Version).Channels, version.Channel)
	if !settled && !version.Current.Is(target) {
		return engine.Wait("ChannelSet", "waiting for the cluster version operator to look at channel %s", version.Channel)
	}
	return offered(version, target)
}

func setChannel(ctx context.Context, c client.Client, read *configv1.ClusterVersion, channel string) (engine.Result, error) {
	fresh, err := patch(ctx, c, read, func(spec *configv1.ClusterVersionSpec) { spec.Channel = channel })
	switch {
	case err != nil:
		return engine.Result{}, fmt.Errorf("setting the channel to %s: %w", channel, err)
	case !fresh:
		return lookAgain(), nil
	}
	return engine.Wait("ChannelSet", "set the channel to %s; waiting for the cluster version operator to look at it", channel), nil
}

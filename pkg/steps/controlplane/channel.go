// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// SetChannel sets the update channel and waits until the target is offered in it.
func SetChannel(c client.Client, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		current, version, err := getClusterVersion(ctx, c)
		if err != nil {
			return engine.Result{}, err
		}
		if needsChannel(version, target) {
			return setChannel(ctx, c, current, target.Channel)
		}
		return availableInChannel(version, target), nil
	}
}

// needsChannel says whether another channel is wanted. That of a cluster which
// is on its way is left alone.
func needsChannel(version clusterstate.Version, target clusterstate.Target) bool {
	return !version.Current.Matches(target) && target.Channel != "" && version.Channel != target.Channel
}

// availableInChannel waits until what is offered is that of the channel, and then for the target. The cluster version
// operator retrieves what a channel offers at once, and says only minutes later that it has observed the spec; while it
// refuses a release it never does.
func availableInChannel(version clusterstate.Version, target clusterstate.Target) engine.Result {
	settled := version.Observed || version.ReleaseAccepted.IsFalse() ||
		slices.Contains(version.AvailableUpdate(target).Channels, version.Channel)
	if !settled && !version.Current.Matches(target) {
		return engine.Wait("ChannelSet", "waiting for the cluster version operator to look at channel %s", version.Channel)
	}
	return updateAvailable(version, target)
}

func setChannel(ctx context.Context, c client.Client, current *configv1.ClusterVersion, channel string) (engine.Result, error) {
	applied, err := patchSpec(ctx, c, current, func(spec *configv1.ClusterVersionSpec) { spec.Channel = channel })
	switch {
	case err != nil:
		return engine.Result{}, fmt.Errorf("setting the channel to %s: %w", channel, err)
	case !applied:
		return retryOnConflict(), nil
	}
	return engine.Wait("ChannelSet", "set the channel to %s; waiting for the cluster version operator to look at it", channel), nil
}

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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// SetChannel sets the update channel and waits until the target is available in it. It does not set
// a channel that, according to the update service, cannot offer the target.
func SetChannel(c client.Client, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		current, version, err := getClusterVersion(ctx, c)
		if err != nil {
			return engine.Result{}, err
		}
		if !needsChannel(version, target) {
			return availableInChannel(version, target)
		}
		if message := channelMismatch(version, target); message != "" {
			return engine.Wait("VersionNotInChannel", "%s", message), nil
		}
		return setChannel(ctx, c, current, target.Channel)
	}
}

// KeepChannel is the keep-alive of the steps between SetChannel and the point of no return. It sets
// the channel if the spec requests a new one after SetChannel is done. requested lists all channels
// that this attempt has requested. KeepChannel does not change a channel that another client has
// set, and changes nothing while the step is on hold or past its deadline.
func KeepChannel(c client.Client, target clusterstate.Target, requested []string) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if run.Blocked {
			return engine.Done("the channel is not changed while the step is blocked"), nil
		}
		current, version, err := getClusterVersion(ctx, c)
		if err != nil {
			return engine.Result{}, err
		}
		if !ownsOtherChannel(version, target, requested) || channelMismatch(version, target) != "" {
			return engine.Done("there is no channel to set"), nil
		}
		return setChannel(ctx, c, current, target.Channel)
	}
}

// ownsOtherChannel reports whether the channel differs from the target's and was requested by this
// attempt.
func ownsOtherChannel(version clusterstate.Version, target clusterstate.Target, requested []string) bool {
	return needsChannel(version, target) && slices.Contains(requested, version.Channel)
}

// needsChannel reports whether the channel must be changed. It is not changed while the cluster is
// being updated to the target.
func needsChannel(version clusterstate.Version, target clusterstate.Target) bool {
	return !version.Observe(target).HasBegun() && target.Channel != "" && version.Channel != target.Channel
}

// channelMismatch returns the reason why the target's channel cannot offer the target. It returns
// "" if the channel may offer it, or if this is unknown before the channel is set. A channel
// without the current release offers no update from it.
func channelMismatch(version clusterstate.Version, target clusterstate.Target) string {
	update := version.AvailableUpdate(target)
	switch {
	case update.Available && len(update.Channels) > 0 && !slices.Contains(update.Channels, target.Channel):
		return fmt.Sprintf("%s is not in channel %s; it is in %s", target.Version, target.Channel, channelNames(update.Channels))
	case len(version.CurrentChannels) > 0 && !slices.Contains(version.CurrentChannels, target.Channel):
		return fmt.Sprintf("channel %s offers no update from the current release %s, which is in %s",
			target.Channel, version.Current, channelNames(version.CurrentChannels))
	}
	return ""
}

func channelNames(channels []string) string {
	names := make([]string, 0, len(channels))
	for _, channel := range channels {
		names = append(names, channelName(channel))
	}
	return text.JoinNames(names)
}

// availableInChannel first waits until the available updates belong to the channel, and then for
// the target. The cluster version operator retrieves the updates of a channel at once, but only
// observes the spec minutes later, and never while it rejects a release.
func availableInChannel(version clusterstate.Version, target clusterstate.Target) (engine.Result, error) {
	settled := version.Observed || version.ReleaseAccepted.IsFalse() ||
		slices.Contains(version.AvailableUpdate(target).Channels, version.Channel)
	if !settled && !version.Observe(target).HasBegun() {
		return engine.Wait("ChannelSet", "waiting for the cluster version operator to observe channel %s", channelName(version.Channel)), nil
	}
	return checkAll(version, target, []Precondition{Available})
}

func setChannel(ctx context.Context, c client.Client, current *configv1.ClusterVersion, channel string) (engine.Result, error) {
	applied, err := patchSpec(ctx, c, current, func(spec *configv1.ClusterVersionSpec) { spec.Channel = channel })
	switch {
	case err != nil:
		return engine.Result{}, fmt.Errorf("setting the channel to %s: %w", channelName(channel), err)
	case !applied:
		return retryOnConflict(), nil
	}
	return engine.Wait("ChannelSet", "set the channel to %s; waiting for the cluster version operator to observe it", channelName(channel)), nil
}

// RestoreChannel restores the channel from before an upgrade that did not commence. preceding is
// that channel; nil if it was not recorded, because it was not changed either. RestoreChannel
// leaves a channel alone if another client set it: the channel is neither the target's nor a
// requested one, or its field manager is another client. The field manager matters because the
// record has a channel before it is set, and the upgrade may have been on hold since.
// RestoreChannel reads the ClusterVersion from the API server, because the cache has no field
// managers and may not show the change yet.
func RestoreChannel(c client.Writer, live client.Reader, target clusterstate.Target, preceding *string, requested ...string) engine.UpgradeStep {
	requested = append(slices.Clone(requested), target.Channel)
	return despiteConflicts(func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if preceding == nil || !slices.ContainsFunc(requested, func(name string) bool { return name != "" && name != *preceding }) {
			return engine.Skip("NothingToRestore", "this upgrade has not changed the channel"), nil
		}
		current, version, err := getClusterVersion(ctx, live)
		if err != nil {
			return engine.Result{}, err
		}
		if run.Committed || version.Observe(target).HasBegun() {
			return engine.Skip("Commenced", "the cluster was updated to %s; the channel stays %s", target.Version, channelName(version.Channel)), nil
		}
		set := slices.Contains(requested, version.Channel) && !clusterstate.OwnedByOthers(current.ManagedFields, "channel")
		if !set || version.Channel == "" || version.Channel == *preceding {
			return engine.Skip("NothingToRestore", "channel %s was not set by this upgrade", channelName(version.Channel)), nil
		}
		applied, err := patchSpec(ctx, c, current, func(spec *configv1.ClusterVersionSpec) { spec.Channel = *preceding })
		switch {
		case err != nil:
			return engine.Result{}, fmt.Errorf("restoring channel %s: %w", channelName(*preceding), err)
		case !applied:
			return retryOnConflict(), nil
		}
		return engine.Done("restored channel %s", channelName(*preceding)), nil
	})
}

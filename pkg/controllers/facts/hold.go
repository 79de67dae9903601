// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
)

// Hold returns the reason why no upgrade may commence on the cluster; empty if it has no hold.
func Hold(ctx context.Context, cache client.Reader) (string, error) {
	var version configv1.ClusterVersion
	if err := cache.Get(ctx, clusterstate.VersionKey, &version); err != nil {
		return "", fmt.Errorf("getting the ClusterVersion: %w", err)
	}
	return clusterstate.HeldBy(&version), nil
}

// Observe returns a function that observes the installed version, and, if a channel is requested, the channel that is
// set unless the attempt of the record has set it.
func Observe(cache client.Reader, channel string) func(context.Context, history.Record) (lifecycle.Observation, error) {
	return func(ctx context.Context, record history.Record) (lifecycle.Observation, error) {
		version, err := clusterstate.GetClusterVersion(ctx, cache)
		if err != nil {
			return lifecycle.Observation{}, err
		}
		seen := lifecycle.Observation{Version: version.Installed, RequestedChannel: channel}
		if channel != "" && !slices.Contains(record.Channels, version.Channel) && (version.Channel != channel || record.PrecedingChannel == nil) {
			seen.Channel = &version.Channel
		}
		return seen, nil
	}
}

// IsCurrent reports whether the cache holds the latest ClusterVersion. It queries the API server.
func IsCurrent(ctx context.Context, cache, live client.Reader) (bool, error) {
	var cached, newest configv1.ClusterVersion
	if err := cache.Get(ctx, clusterstate.VersionKey, &cached); err != nil {
		return false, fmt.Errorf("getting the ClusterVersion: %w", err)
	}
	if err := live.Get(ctx, clusterstate.VersionKey, &newest); err != nil {
		return false, fmt.Errorf("getting the ClusterVersion from the API server: %w", err)
	}
	return cached.ResourceVersion == newest.ResourceVersion, nil
}

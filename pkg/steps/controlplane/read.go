// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// readConfirmed reads the cluster version from the cache, and if what it says there
// would end the upgrade, from the API server itself: a cache may show what was.
func readConfirmed(ctx context.Context, cached, live client.Reader, needsLiveRead func(clusterstate.Version) bool) (clusterstate.Version, error) {
	version, err := clusterstate.GetClusterVersion(ctx, cached)
	if err != nil || !needsLiveRead(version) {
		return version, err
	}
	return clusterstate.GetClusterVersion(ctx, live)
}

// isSuperseded says whether somebody else leads the cluster away from the target.
func isSuperseded(target clusterstate.Target) func(clusterstate.Version) bool {
	return func(version clusterstate.Version) bool {
		_, ok := version.SupersededBy(target)
		return ok
	}
}

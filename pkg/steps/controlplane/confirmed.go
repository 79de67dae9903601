// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
)

// confirmed reads the cluster version from the cache, and if what it says there
// would end the upgrade, from the API server itself: a cache may show what was.
func confirmed(ctx context.Context, cached, live client.Reader, ends func(cluster.Version) bool) (cluster.Version, error) {
	version, err := cluster.ReadVersion(ctx, cached)
	if err != nil || !ends(version) {
		return version, err
	}
	return cluster.ReadVersion(ctx, live)
}

// takenFrom says whether somebody else leads the cluster away from the target.
func takenFrom(target cluster.Target) func(cluster.Version) bool {
	return func(version cluster.Version) bool {
		_, taken := version.TakenOver(target)
		return taken
	}
}

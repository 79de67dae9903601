// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// readConfirmed reads the ClusterVersion from the cache. If the result could end the upgrade, it
// reads it again from the API server, because the cache may be stale.
func readConfirmed(ctx context.Context, cached, live client.Reader, needsLiveRead func(clusterstate.Version) bool) (clusterstate.Version, error) {
	version, err := clusterstate.GetClusterVersion(ctx, cached)
	if err != nil || !needsLiveRead(version) {
		return version, err
	}
	return clusterstate.GetClusterVersion(ctx, live)
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// readConfirmed reads the ClusterVersion from the cache, and from the API server if that could end the
// upgrade: a cache may be outdated.
func readConfirmed(ctx context.Context, cached, live client.Reader, needsLiveRead func(clusterstate.Version) bool) (clusterstate.Version, error) {
	version, err := clusterstate.GetClusterVersion(ctx, cached)
	if err != nil || !needsLiveRead(version) {
		return version, err
	}
	return clusterstate.GetClusterVersion(ctx, live)
}

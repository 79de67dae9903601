// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

var versionCheck = Check{
	Name:  "version",
	Doc:   "The cluster version operator is failing.",
	Reads: []client.Object{&configv1.ClusterVersion{}},
	Find:  findVersion,
}

// keyClusterVersion identifies findings about the only ClusterVersion.
const keyClusterVersion = "ClusterVersion/version"

// findVersion reads the condition Failing: a ClusterVersion has no condition Degraded.
func findVersion(ctx context.Context, in Input) ([]Finding, error) {
	version, err := clusterstate.GetClusterVersion(ctx, in.Reader)
	if err != nil {
		return nil, err
	}
	return Version(version), nil
}

// Version returns whether the cluster version operator is failing.
func Version(version clusterstate.Version) []Finding {
	if !version.Failing.IsTrue() {
		return nil
	}
	f := newFinding("ClusterVersionFailing", "the cluster version operator is failing")
	f.Key, f.Description = keyClusterVersion, version.Failing.MessageOrReason()
	return []Finding{f}
}

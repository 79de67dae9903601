// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// WaitUntilUpgraded waits until the target is completely installed on the control plane. It fails if
// another client updates the cluster to another release.
func WaitUntilUpgraded(r, live client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return unlessSuperseded(r, live, target, func(version clusterstate.Version) engine.Result {
		switch {
		case version.Current.Matches(target) && version.Completed:
			return engine.Done("%s is installed", target.Version)
		case version.Failing.IsTrue():
			return engine.Wait("Failing", "the cluster version operator is failing to install %s: %s", target.Version, version.Failing.MessageOrReason())
		case version.Progressing.Message != "":
			return engine.Wait("Progressing", "%s", version.Progressing.MessageOrReason())
		}
		return engine.Wait("Progressing", "%s is being installed", target.Version)
	})
}

// IsUpgraded reports whether the target is the newest release and completely installed on the control
// plane.
func IsUpgraded(r client.Reader, target clusterstate.Target) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		return version.Current.Matches(target) && version.Completed, err
	}
}

func supersededResult(target clusterstate.Target, other clusterstate.Release) engine.Result {
	return engine.Fail("Superseded", "another client updates the cluster from %s to %s", target.Version, other)
}

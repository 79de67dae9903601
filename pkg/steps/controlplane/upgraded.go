// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Upgraded waits until the target is installed in full. It gives up if
// somebody leads the cluster elsewhere.
func Upgraded(r, live client.Reader, target cluster.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := confirmed(ctx, r, live, takenFrom(target))
		if err != nil {
			return engine.Result{}, err
		}
		if other, taken := version.TakenOver(target); taken {
			return superseded(target, other), nil
		}
		switch {
		case version.Current.Is(target) && version.Completed:
			return engine.Done("%s is installed", target.Version), nil
		case version.Failing.IsTrue():
			return engine.Wait("Failing", "the cluster version operator fails to install %s: %s", target.Version, version.Failing.Text()), nil
		case version.Progressing.Message != "":
			return engine.Wait("Progressing", "%s", version.Progressing.Text()), nil
		}
		return engine.Wait("Progressing", "%s is being installed", target.Version), nil
	}
}

// HasUpgraded says whether the target is installed in full, and is the newest.
func HasUpgraded(r client.Reader, target cluster.Target) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		version, err := cluster.ReadVersion(ctx, r)
		return version.Current.Is(target) && version.Completed, err
	}
}

func superseded(target cluster.Target, other cluster.Release) engine.Result {
	return engine.Fail("Superseded", "somebody else leads the cluster from %s to %s", target.Version, other)
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// NotSuperseded is the gate of the steps after the upgrade of the control plane. It fails if
// another client updates the cluster to another release.
func NotSuperseded(r, live client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return unlessSuperseded(r, live, target, func(_ context.Context, _ engine.Run, version clusterstate.Version) engine.Result {
		if !version.Observe(target).HasBegun() {
			return engine.Wait("NoHistory", "the history of the ClusterVersion names neither %s nor any other release", target.Version)
		}
		return alreadyUpdating(target)
	})
}

// unlessSuperseded returns a step that fails if another client updates the cluster to another
// release, and otherwise returns the result of a function. A mere request does not end the upgrade,
// because the cluster version operator may ignore or reject it.
func unlessSuperseded(r, live client.Reader, target clusterstate.Target, result func(context.Context, engine.Run, clusterstate.Version) engine.Result) engine.UpgradeStep {
	superseded := func(version clusterstate.Version) bool {
		_, _, ok := version.SupersededBy(target)
		return ok
	}
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		version, err := readConfirmed(ctx, r, live, superseded)
		if err != nil {
			return engine.Result{}, err
		}
		switch other, returned, superseded := version.SupersededBy(target); {
		case returned:
			return engine.Fail("Superseded", "the cluster returned to %s", other), nil
		case superseded:
			return engine.Fail("Superseded", "another client updates the cluster from %s to %s", target.Version, other), nil
		}
		return result(ctx, run, version), nil
	}
}

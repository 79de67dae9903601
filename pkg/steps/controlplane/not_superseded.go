// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// NotSuperseded is the gate of the steps after the control plane's upgrade: it fails if another client
// updates the cluster to another release.
func NotSuperseded(r, live client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return unlessSuperseded(r, live, target, func(version clusterstate.Version) engine.Result {
		if !version.Current.Matches(target) {
			return engine.Wait("NoHistory", "the history of the ClusterVersion names neither %s nor any other release", target.Version)
		}
		return alreadyUpdating(target)
	})
}

// unlessSuperseded returns a step that fails if another client updates the cluster to another release,
// and that otherwise returns the result of a function.
func unlessSuperseded(r, live client.Reader, target clusterstate.Target, result func(clusterstate.Version) engine.Result) engine.UpgradeStep {
	superseded := func(version clusterstate.Version) bool {
		_, ok := version.SupersededBy(target)
		return ok
	}
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := readConfirmed(ctx, r, live, superseded)
		if err != nil {
			return engine.Result{}, err
		}
		if other, ok := version.SupersededBy(target); ok {
			return supersededResult(target, other), nil
		}
		return result(version), nil
	}
}

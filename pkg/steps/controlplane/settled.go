// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// WaitUntilSettled waits until nothing is being installed; see checks.Unsettled. It does not wait
// if this upgrade never started, because any update in progress then belongs to another client.
func WaitUntilSettled(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		switch {
		case err != nil:
			return engine.Result{}, err
		case !version.InHistory(target):
			return engine.Done("the cluster version operator has not begun to install %s", target.Version), nil
		}
		unsettled, err := checks.Unsettled(ctx, r, run.Now)
		switch {
		case err != nil:
			return engine.Result{}, err
		case len(unsettled) > 0:
			return engine.Wait("NotSettled", "%s", checks.Message(unsettled)), nil
		}
		return engine.Done("nothing is being installed"), nil
	}
}

// NothingInstalling waits until the cluster is settled, see checks.Unsettled, because no upgrade
// may replace a release while it is being rolled out to workers. It does not wait for pools that an
// UpgradeJob delays, because a paused pool rolls out nothing.
func NothingInstalling(r client.Reader) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		unsettled, err := checks.Unsettled(ctx, r, run.Now)
		switch {
		case err != nil:
			return engine.Result{}, err
		case len(unsettled) > 0:
			return engine.Wait("AnotherUpdateInProgress", "%s", checks.Message(unsettled)), nil
		}
		return engine.Done("nothing is being installed"), nil
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// StillOurs is the gate of what follows the upgrade of the control plane: the
// upgrade is given up if somebody leads the cluster elsewhere.
func StillOurs(r, live client.Reader, target cluster.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := confirmed(ctx, r, live, takenFrom(target))
		if err != nil {
			return engine.Result{}, err
		}
		if other, taken := version.TakenOver(target); taken {
			return superseded(target, other), nil
		}
		if !version.Current.Is(target) {
			return engine.Wait("NoHistory", "the cluster version says nothing about %s, nor about any other release", target.Version), nil
		}
		return onItsWay(target), nil
	}
}

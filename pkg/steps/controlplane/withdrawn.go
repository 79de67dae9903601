// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Withdrawn takes a target back that was asked for and that the cluster version
// operator has not begun with, so that it does not begin hours later, unwatched.
//
// The patch is sent even if there is nothing to take back. Then it changes
// nothing, but the API server refuses it unless what was read is what there
// is: a request that a slow cache does not show yet must not stay behind.
func Withdrawn(c client.Client, target cluster.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		read, version, err := get(ctx, c)
		if err != nil {
			return engine.Result{}, err
		}
		commenced := version.Current.Is(target)
		ours := version.Asks(target) && !commenced
		fresh, err := patch(ctx, c, read, func(spec *configv1.ClusterVersionSpec) {
			if ours {
				spec.DesiredUpdate = nil
			}
		})
		switch {
		case err != nil:
			return engine.Result{}, fmt.Errorf("withdrawing %s: %w", target.Version, err)
		case !fresh:
			return lookAgain(), nil
		case commenced:
			return engine.Skip("Commenced", "the cluster version operator has begun with %s; it cannot be withdrawn", target.Version), nil
		case !ours:
			return engine.Skip("NothingToWithdraw", "%s is not asked for", target.Version), nil
		}
		return engine.Done("withdrew %s, which the cluster version operator had not begun with", target.Version), nil
	}
}

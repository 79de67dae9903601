// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// RequestUpdate asks the cluster version operator for the target. It looks at
// nothing first but whether that was done already: what must hold is asked by
// the gates that guard it.
func RequestUpdate(c client.Client, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		current, version, err := getClusterVersion(ctx, c)
		if err != nil {
			return engine.Result{}, err
		}
		if version.Current.Matches(target) || version.IsRequested(target) {
			return requestedResult(target), nil
		}
		// Whatever was asked for before is replaced altogether: an architecture,
		// a mode or accepted risks that were left there are not ours.
		update := &configv1.Update{Version: target.Version, Image: target.Image, Force: false}
		if available := version.AvailableUpdate(target); available.Conditional {
			update.Image = cmp.Or(target.Image, available.Image) // a version alone is looked for among the recommended ones
		}
		applied, err := patchSpec(ctx, c, current, func(spec *configv1.ClusterVersionSpec) { spec.DesiredUpdate = update })
		switch {
		case err != nil:
			return engine.Result{}, fmt.Errorf("asking the cluster version operator for %s: %w", target.Version, err)
		case !applied:
			return retryOnConflict(), nil
		}
		return requestedResult(target), nil
	}
}

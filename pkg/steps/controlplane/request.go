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

// RequestUpdate requests the target from the cluster version operator. The decisions are made on the
// very object that is patched: what another client changes in between is a conflict, and everything
// is decided anew.
func RequestUpdate(c client.Client, target clusterstate.Target, decisions ...Decision) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		current, version, err := getClusterVersion(ctx, c)
		if err != nil {
			return engine.Result{}, err
		}
		if version.Current.Matches(target) || version.IsRequested(target) {
			return requestedResult(target).WithoutEffect(), nil // the request of another client
		}
		if result, err := decideAll(version, target, decisions); err != nil || !result.Passed() {
			return result, err
		}
		applied, err := patchSpec(ctx, c, current, func(spec *configv1.ClusterVersionSpec) { spec.DesiredUpdate = desiredUpdate(version, target) })
		switch {
		case err != nil:
			return engine.Result{}, fmt.Errorf("requesting %s from the cluster version operator: %w", target.Version, err)
		case !applied:
			return retryOnConflict().WithoutEffect(), nil
		}
		return requestedResult(target), nil
	}
}

// desiredUpdate returns the request. It replaces an earlier one completely: an architecture, a mode,
// or accepted risks that another client has left there do not apply. A version alone identifies a
// release only if it is recommended and the only one of its version.
func desiredUpdate(version clusterstate.Version, target clusterstate.Target) *configv1.Update {
	update := &configv1.Update{Version: target.Version, Image: target.Image, Force: false}
	if available := version.AvailableUpdate(target); available.Conditional || available.Ambiguous {
		update.Image = cmp.Or(target.Image, available.Image)
	}
	return update
}

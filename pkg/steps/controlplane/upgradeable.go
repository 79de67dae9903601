// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Upgradeable waits until no other update blocks the target. If the target has another minor
// version, it also waits until the cluster may leave its minor version.
func Upgradeable(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return check(r, target, NotBusy, MinorUpdateAllowed)
}

// MinorUpdateAllowed passes if the target has the installed minor version, or if the cluster is not
// reported as not upgradeable.
func MinorUpdateAllowed(version clusterstate.Version, target clusterstate.Target) (engine.Result, error) {
	change, err := version.ChangeTo(target)
	switch {
	case err != nil:
		return engine.Result{}, err
	case !change.CrossesMinor():
		// Upgradeable does not block other changes.
	case version.MayLeaveMinor() == clusterstate.No:
		return engine.Wait("NotUpgradeable", "%s is a %s from %s, and the cluster is not upgradeable: %s",
			target.Version, change, version.Installed, version.Upgradeable.ReasonAndMessage()), nil
	case version.MayLeaveMinor() == clusterstate.Unknown:
		return engine.Wait("NotUpgradeable", "%s is a %s from %s, and it is unknown whether the cluster is upgradeable: %s",
			target.Version, change, version.Installed, version.Upgradeable.ReasonAndMessage()), nil
	}
	return engine.Done("%s is a %s from %s", target.Version, change, version.Installed), nil
}

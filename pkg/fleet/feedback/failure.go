// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package feedback

import fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"

// ReportsFailure reports whether the agent reports what fails a run, now or if it lasts: a manifest that
// is Degraded, a Job that failed, a cluster version operator that fails or refuses the release, or an
// UpgradeConfig that failed.
func (f *Feedback) ReportsFailure() bool {
	if state, _ := f.Action(); state == fleetv1alpha1.ActionDegraded {
		return true
	}
	version, config := f.ClusterVersion(), f.UpgradeConfig()
	return version.Failing.IsTrue() || version.Invalid.IsTrue() || version.ReleaseAccepted.IsFalse() || config.Phase.Is("Failed")
}

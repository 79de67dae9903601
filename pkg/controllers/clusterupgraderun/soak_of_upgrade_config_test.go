// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"testing"
	"time"
)

// The soak of a cluster that an UpgradeConfig has upgraded must look at the cluster version operator as well.
func TestRun_of_an_UpgradeConfig_fails_its_soak(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withUpgradeConfig)
	w.spoke.RawJSON = true
	w.admit(soaks)
	w.report(5*time.Minute, "Upgrading")
	w.report(40*time.Minute, "Upgraded")
	w.change(39*time.Minute, func() { w.spoke.Accept(target, w.Now()); w.spoke.Complete(w.Now()) })
	w.change(50*time.Minute, func() {
		w.spoke.SetCondition(w.spoke.Version(), "Failing", "True", "ClusterOperatorDegraded", "etcd is degraded", w.Now())
	})
	w.settle(5 * time.Hour)
	w.expect("Failed", "UnhealthyDuringSoak")
}

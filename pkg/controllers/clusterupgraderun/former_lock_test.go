// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
)

// The agent of a cluster may write each Lease in the namespace of its cluster. It cannot hold up an upgrade by that,
// not even the upgrade of its own cluster: the Lease of the last release counts only if its holder is a run of the
// cluster in flight.
func TestRun_ignores_a_Lease_that_the_agent_writes(t *testing.T) {
	t.Parallel()
	for name, holder := range map[string]string{
		"another upgrade":          "upgrade.managed.openshift.io/ClusterUpgradeRun/" + cluster + "/other/uid",
		"a run of another cluster": "upgrade.managed.openshift.io/ClusterUpgradeRun/store-0002/stores/uid",
		"another kind":             "upgrade.managed.openshift.io/UpgradeConfig/" + cluster + "/stores/uid",
		"another API group":        "example.com/ClusterUpgradeRun/" + cluster + "/stores/uid",
		"nothing that is known":    "agent",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			former := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "cluster-upgrade"}}
			former.Spec.HolderIdentity = &holder
			w.Create(former)
			w.admit()
			w.settle(2 * time.Hour)
			w.expect(fleetv1alpha1.StateComplete, "Upgraded")
			if err := w.User.Get(t.Context(), client.ObjectKeyFromObject(former), former); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("the Lease of the last release is left: %v", err)
			}
		})
	}
}

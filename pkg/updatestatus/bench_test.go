// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"fmt"
	"testing"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// BenchmarkCompute measures a pass over a cluster of 20 pools during a node update. One node in ten is being
// updated, and one in twenty is degraded.
func BenchmarkCompute(b *testing.B) {
	for _, nodes := range []int{200, 2000} {
		b.Run(fmt.Sprintf("%d_nodes", nodes), func(b *testing.B) {
			c := newCluster(4, 0)
			for i := range 20 {
				name := fmt.Sprintf("pool-%02d", i)
				pool := newPool(name)
				pool.Spec.Configuration.Name = rendered("worker", newRelease)
				c.pools = append(c.pools, pool)
				for n := range nodes / 20 {
					node := newNode(name, n, false)
					node.Annotations["machineconfiguration.openshift.io/currentConfig"] = rendered("worker", oldRelease)
					node.Annotations["machineconfiguration.openshift.io/desiredConfig"] = rendered("worker", oldRelease)
					switch {
					case n%20 == 0:
						node.Annotations["machineconfiguration.openshift.io/state"] = "Degraded"
					case n%10 == 1:
						node.Annotations["machineconfiguration.openshift.io/desiredConfig"] = rendered("worker", newRelease)
						node.Annotations["machineconfiguration.openshift.io/state"] = "Working"
					}
					c.nodes = append(c.nodes, node)
				}
			}
			facts := c.facts(b)
			state := insight.NewStore()
			var previous updatev1beta1.UpdateStatusStatus
			b.ResetTimer()
			for b.Loop() {
				facts.Now = facts.Now.Add(time.Second)
				previous = updatestatus.Compute(updatestatus.Input{Facts: facts, Insights: state, Previous: previous})
			}
			b.ReportMetric(float64(len(encode(b, previous))), "bytes")
		})
	}
}

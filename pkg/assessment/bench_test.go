// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/assessment"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// largeCluster returns a cluster with the given number of nodes in 20 pools. One in 20 nodes is not ready,
// and the update is stuck in every pool.
func largeCluster(nodes int) *fixture {
	f := newFixture("4.20.6")
	f.history[0].StartedTime = at(before(24 * time.Hour))
	f.history[0].State, f.history[0].CompletionTime = "Completed", ago(23*time.Hour)
	reconciled(f.plane())
	f.pools, f.status.WorkerPools = []string{master}, nil
	for p := range 20 {
		pool := fmt.Sprintf("pool-%02d", p)
		f.pools = append(f.pools, pool)
		f.addNodes(pool, nodes/20, nodes/40)
		status := updatev1beta1.WorkerPoolStatus{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: pool}
		pending(&status.Section)
		for n := 0; n < nodes/20; n += 20 {
			f.insight(&status.Section, checks.InformerNodes, newInsight(updatev1beta1.LevelError, "NodeNotReady", "nodes", before(time.Hour), ref("Node", "", fmt.Sprintf("%s-%d", pool, n))))
		}
		f.status.WorkerPools = append(f.status.WorkerPools, status)
	}
	return f
}

func BenchmarkAssess(b *testing.B) {
	for _, nodes := range []int{200, 2000} {
		b.Run(fmt.Sprintf("%d nodes", nodes), func(b *testing.B) {
			status, in := largeCluster(nodes).build()
			for b.Loop() {
				assessment.Assess(status, in)
			}
		})
	}
}

// hostileStatus returns a status with as many insights as the limits allow. Each has its own reason and
// objects and explains others.
func hostileStatus(insights int) *fixture {
	f := stuckPool()
	for n := range insights {
		refs := make([]updatev1beta1.ResourceReference, 16)
		for k := range refs {
			refs[k] = ref([]string{"PodDisruptionBudget", "Pod", "Node", "Disk"}[k%4], fmt.Sprintf("namespace-%d", n), fmt.Sprintf("object-%d-%d", n, k))
		}
		i := newInsight(updatev1beta1.LevelError, fmt.Sprintf("Reason%d", n), "odd", time.Time{}, refs...)
		i.UUID = strconv.Itoa(n)
		for k := range 16 {
			i.CausedBy = append(i.CausedBy, strconv.Itoa((n*7+k*13)%insights))
		}
		f.insight(f.pool(), fmt.Sprintf("stranger-%d", n%8), i)
	}
	return f
}

// TestHostile_insights_are_bounded judges a cluster with 16,384 objects that explain each other. Without a
// limit on the chains, this took minutes.
func TestHostile_insights_are_bounded(t *testing.T) {
	t.Parallel()
	const insights, objects = 1024, 16
	got := hostileStatus(insights).assess()
	if n := len(encode(t, got)); n > maxJSON {
		t.Errorf("%d bytes", n)
	}
	if got.State != stuck {
		t.Errorf("%s", got.State)
	}
	counted := 0
	for _, c := range got.Causes {
		for _, l := range c.Chain {
			counted += int(l.Count)
		}
	}
	if counted < insights*objects {
		t.Errorf("%d objects are counted, of %d", counted, insights*objects)
	}
}

// FuzzAssess judges anything that the API server may contain.
func FuzzAssess(f *testing.F) {
	for _, cluster := range clusters() {
		made := cluster()
		status, in := made.build()
		status.Assessment = new(assessment.Assess(status, in))
		encoded, err := json.Marshal(status)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded, int64(60))
	}
	f.Fuzz(func(t *testing.T, encoded []byte, seconds int64) {
		var status updatev1beta1.UpdateStatusStatus
		if json.Unmarshal(encoded, &status) != nil {
			return
		}
		_, in := progressingCluster().build()
		in.Previous, in.Now = status.Assessment, now.Add(time.Duration(seconds%1e9)*time.Second)
		got := assessment.Assess(status, in)
		if n := len(encode(t, got)); n > maxJSON+len(encoded) || got.State == "" || got.Remedy == nil {
			t.Errorf("%d bytes: %+v", n, got)
		}
	})
}

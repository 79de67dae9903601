// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// flooded returns a cluster with 16 more pools, and informers that report as many insights as they may. Each insight has
// a reason of its own, and names all of these pools if everywhere is set.
func flooded(tb testing.TB, informers int, description string, everywhere bool) updatestatus.Input {
	tb.Helper()
	c := newCluster(4, 2)
	var pools []updatev1beta1.ResourceReference
	for i := range insight.MaxResources {
		name := fmt.Sprintf("pool-%d", i)
		c.pools = append(c.pools, newPool(name))
		pools = append(pools, updatev1beta1.ResourceReference{Kind: "MachineConfigPool", Name: name})
	}
	in := updatestatus.Input{Facts: c.facts(tb), Insights: insight.NewStore()}
	for n := range informers {
		answer := insight.Answer{Informer: fmt.Sprintf("informer-%d", n), Result: insight.Success, At: now}
		for i := range insight.MaxInsights {
			named := pools
			if !everywhere {
				named = pools[i%len(pools):][:1]
			}
			of := about(fmt.Sprintf("uid-%d", i), updatev1beta1.ScopeWorkerPool, named)
			of.Impact.Reason, of.Impact.Description = fmt.Sprintf("Reason%d", i), description
			answer.Insights = append(answer.Insights, of)
		}
		in.Insights.Apply(answer, now)
	}
	return in
}

// TestCompute_Memory places each insight of ten informers in 16 sections. Encoding them all at once took 2 GiB.
func TestCompute_Memory(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	if testing.Short() {
		t.Skip("the race detector needs memory, too")
	}
	const limit = 800 << 20
	in := flooded(t, 10, strings.Repeat("text ", 600), true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		updatestatus.Compute(in)
	}()
	for peak, running := uint64(0), true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		if peak = max(peak, stats.HeapInuse); peak > limit {
			t.Fatalf("%d MiB are in use, limit %d MiB", peak>>20, limit>>20)
		}
	}
}

// BenchmarkCompute_ManyReasons measures the processor time of a pass over 20,480 insights that have nothing in common.
// Comparing each with each other took a second.
func BenchmarkCompute_ManyReasons(b *testing.B) {
	const limit = 500 * time.Millisecond
	in := flooded(b, 64, "", false)
	for b.Loop() {
		took := simulation.FastestPass(b, 1, func() { updatestatus.Compute(in) })
		b.ReportMetric(float64(took.Milliseconds()), "ms/pass")
		if took > limit {
			b.Errorf("a pass takes %s, limit %s", took, limit)
		}
	}
}

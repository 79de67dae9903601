// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package fleet_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/fleet"
)

var benchClusters = flag.Int("clusters", 3500, "number of simulated clusters of BenchmarkRollout")

// BenchmarkRollout upgrades a fleet with 5 canaries in 10 groups, a seventh of it at a time, 5 s each.
// The hub is killed at half time, and the rollout is paused once.
func BenchmarkRollout(b *testing.B) {
	limit = time.Hour // of a machine that is busy; the figure is printed
	concurrency := intstr.FromInt32(int32(max(*benchClusters/7, 1)))
	r := newRollout(b, fleet.Spec{Clusters: *benchClusters, Canaries: 5, Groups: 10, Duration: 5 * time.Second, Interval: 2 * time.Second},
		func(u *fleetv1beta1.ManagedClustersUpgrade) {
			s := &u.Spec.UpgradeStrategy
			s.MaxConcurrency, s.MinSuccessTime, s.RolloutType = &concurrency, "", fleetv1beta1.RolloutProgressive
			s.DecisionStrategy = nil
		})
	// Canaries soak for 30 minutes by default; a benchmark has none of that.
	r.upgrade.Spec.UpgradeStrategy.MinSuccessTime = "1s"
	total := int32(*benchClusters)
	started := time.Now()
	r.start(r.upgrade)

	r.await("half of the fleet is complete", func(c fleetv1beta1.ClustersSummary) bool { return c.Complete >= total/2 })
	highWater := memoryPeak(b, r.hub.PID())
	must(b, r.hub.Kill())
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	began := r.beganCount()
	restarted := time.Now()
	must(b, r.hub.Start(ctx))
	await(b, "a cluster is admitted again", func(context.Context) bool { return r.beganCount() > began })
	b.ReportMetric(time.Since(restarted).Seconds(), "s/restart")

	r.edit(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.Paused = true })
	b.ReportMetric(r.lastAdmission(time.Now()).Seconds(), "s/pause")
	r.edit(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.Paused = false })

	r.await("the fleet is complete", func(c fleetv1beta1.ClustersSummary) bool { return c.Complete == total })
	b.ReportMetric(time.Since(started).Seconds(), "s/rollout")
	b.ReportMetric(float64(max(highWater, memoryPeak(b, r.hub.PID())))/1024, "MiB/VmHWM")
	r.reportWrites(b, total)
}

// beganCount returns how many clusters have begun.
func (r *rollout) beganCount() (n int) {
	r.read(func() { n = len(r.began) })
	return n
}

// lastAdmission returns how long after a time the last cluster was admitted; none is for five seconds.
func (r *rollout) lastAdmission(since time.Time) time.Duration {
	last, count := since, r.beganCount()
	await(r.t, "admission stops", func(context.Context) bool {
		if now := r.beganCount(); now != count {
			last, count = time.Now(), now
		}
		return time.Since(last) > 5*time.Second
	})
	return last.Sub(since)
}

// reportWrites reports the writes of the hub by the audit log, and the largest size of the object.
func (r *rollout) reportWrites(b *testing.B, total int32) {
	b.Helper()
	writes, statuses, works, kinds := 0, 0, map[string]int{}, map[string]int{}
	for _, q := range r.requests(time.Time{}) {
		if !q.writes() {
			continue
		}
		writes++
		kinds[strings.TrimSuffix(q.Verb+" "+q.Object.Resource+"/"+q.Object.Subresource, "/")]++
		if q.Object.Resource == "managedclustersupgrades" && q.Object.Subresource == "status" {
			statuses++
		}
		if q.createsUpgrade() {
			works[q.Object.Namespace]++
		}
	}
	for cluster, n := range works {
		if n != 1 {
			b.Errorf("%s got %d works", cluster, n)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		b.Logf("%s: %d, %.2f for each cluster", kind, kinds[kind], float64(kinds[kind])/float64(total))
	}
	b.ReportMetric(float64(writes)/float64(total), "writes/cluster")
	b.ReportMetric(float64(statuses), "statuses")
	r.read(func() { b.ReportMetric(float64(r.largest), "B/object") })
}

// memoryPeak returns the peak of the resident memory of a process in KiB.
func memoryPeak(tb testing.TB, pid int) int {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(tb, err)
	for line := range strings.Lines(string(text)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib
		}
	}
	tb.Fatal("there is no VmHWM")
	return 0
}

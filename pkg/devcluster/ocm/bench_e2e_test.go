// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package ocm_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
)

var benchClusters = flag.Int("clusters", 3500, "number of simulated clusters of BenchmarkRollout")

// BenchmarkRollout upgrades a fleet with 5 canaries in 10 groups, a seventh of the fleet at a time,
// 5 s per cluster. Its agents poll as often as Open Cluster Management's. The hub is killed
// halfway; then the rollout is paused, and a cluster fails. The figures are compared with limits
// that hold for an idle machine with two cores.
func BenchmarkRollout(b *testing.B) {
	limit = time.Hour // for a busy machine; the figure is compared below
	concurrency, failures := intstr.FromInt32(int32(max(*benchClusters/7, 1))), intstr.FromInt32(0)
	r := newRollout(b, ocm.Spec{Clusters: *benchClusters, Canaries: 5, Groups: 10, Duration: 5 * time.Second, Interval: 10 * time.Second},
		func(u *fleetv1beta1.ManagedClustersUpgrade) {
			s := &u.Spec.UpgradeStrategy
			s.MaxConcurrency, s.MaxFailures, s.RolloutType = &concurrency, &failures, fleetv1beta1.RolloutProgressive
			s.DecisionStrategy, s.FailingTimeout = nil, failingTimeout
			s.MinSuccessTime = "1s" // canaries soak for 30 minutes by default, which would only slow the benchmark down
		})
	total := int32(*benchClusters)
	started := time.Now()
	r.start(r.upgrade)

	r.await("half of the fleet is complete", func(c fleetv1beta1.ClustersSummary) bool { return c.Complete >= total/2 })
	highWater := memoryPeak(b, r.hub.PID())
	r.restartHub(b)

	r.edit(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.Paused = true })
	figure(b, r.lastAdmission(time.Now()).Seconds(), "s/pause", pauseLimit.Seconds())
	r.edit(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.Paused = false })

	r.await("two thirds of the fleet are complete", func(c fleetv1beta1.ClustersSummary) bool { return c.Complete >= total*2/3 })
	r.failOne(b)

	r.await("the fleet is complete", func(c fleetv1beta1.ClustersSummary) bool { return c.Complete == total })
	ended := time.Now()
	figure(b, ended.Sub(started).Seconds(), "s/rollout", 15*60)
	highWater = max(highWater, memoryPeak(b, r.hub.PID()))
	r.reportWrites(b, total, ended.Sub(started))
	r.reportQuietMinute(b)
	r.addWorks(b)
	highWater = max(highWater, memoryPeak(b, r.hub.PID()))
	must(b, r.hub.Stop())
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	must(b, r.hub.Start(ctx))
	figure(b, float64(max(highWater, memoryPeak(b, r.hub.PID())))/1024, "MiB/VmHWM", 256)
}

// BenchmarkReal upgrades two real clusters with Open Cluster Management, one after the other, and
// reports the peak memory of all processes: three control planes, the agents, the hub, and this
// one, which simulates the operators of the clusters.
func BenchmarkReal(b *testing.B) {
	limit = 10 * time.Minute // for a busy machine
	started := time.Now()
	r := newRollout(b, ocm.Spec{Real: true, Interval: 2 * time.Second}, func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.MinSuccessTime = "1s"
	})
	figure(b, time.Since(started).Seconds(), "s/up", 60)
	started = time.Now()
	r.start(r.upgrade)
	r.await("the fleet is complete", func(c fleetv1beta1.ClustersSummary) bool { return c.Total == 2 && c.Complete == 2 })
	figure(b, time.Since(started).Seconds(), "s/rollout", 3*60)
	memory := 0
	for _, pid := range append(children(b), os.Getpid()) {
		peak := memoryPeak(b, pid)
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		must(b, err)
		b.Logf("%s: %d MiB", filepath.Base(program), peak/1024)
		memory += peak
	}
	figure(b, float64(memory)/(1<<20), "GiB", 2.2)
}

// children returns the IDs of the child processes of this one.
func children(tb testing.TB) []int {
	tb.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/status")
	must(tb, err)
	var pids []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has exited
		}
		var pid int
		if strings.Contains(string(text), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			_, err = fmt.Sscanf(filepath.Base(filepath.Dir(file)), "%d", &pid)
			must(tb, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// failingTimeout is how long a cluster may be failing in a benchmark.
const failingTimeout = "1s"

// figure reports a figure and fails if it exceeds its limit.
func figure(b *testing.B, value float64, unit string, limit float64) {
	b.Helper()
	b.ReportMetric(value, unit)
	if value > limit {
		b.Errorf("%s: %.4g, the limit is %g", unit, value, limit)
	}
}

// restartHub kills the hub. It reports the time until the successor admits a cluster, and its list
// requests.
func (r *rollout) restartHub(b *testing.B) {
	b.Helper()
	must(b, r.hub.Kill())
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	began := r.beganCount()
	restarted := time.Now()
	must(b, r.hub.Start(ctx))
	await(b, "a cluster is admitted again", func(context.Context) bool { return r.beganCount() > began })
	figure(b, time.Since(restarted).Seconds(), "s/restart", 10)
	lists := map[string]float64{}
	for _, q := range r.requests(restarted) {
		if q.lists() {
			lists[q.Object.Group+"/"+q.Object.Resource]++
		}
	}
	b.Logf("lists after the restart: %v", lists)
	figure(b, slices.Max(slices.Collect(maps.Values(lists))), "lists/kind", 1)
}

// lists reports whether a request reads all objects of a kind, either as a list or at the start of
// a watch.
func (q *request) lists() bool {
	return q.Object.Name == "" && (q.Verb == "list" || q.Verb == "watch" && strings.Contains(q.URI, "sendInitialEvents=true"))
}

// failOne makes a cluster fail that has just started, and reports the time from when the hub could
// count the failure until other clusters start. A retry then completes the cluster.
func (r *rollout) failOne(b *testing.B) {
	b.Helper()
	var name string
	began := r.beganCount()
	await(b, "another cluster has begun", func(context.Context) bool { return r.beganCount() > began })
	r.read(func() { name = r.began[len(r.began)-1] })
	must(b, r.fleet.Degrade(b.Context(), name))
	work := &workv1.ManifestWork{}
	await(b, "its agent reports the failure", func(ctx context.Context) bool {
		if r.fleet.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: delivery.UpgradeName(name)}, work) != nil {
			return false
		}
		f := delivery.Read(work)
		return f.ReportsFailure()
	})
	lasts, err := time.ParseDuration(failingTimeout)
	must(b, err)
	figure(b, r.lastAdmission(time.Now().Add(lasts)).Seconds(), "s/failure", pauseLimit.Seconds())
	r.read(func() {
		if admitting := apimeta.FindStatusCondition(r.status.Conditions, fleetv1beta1.ConditionAdmitting); admitting == nil || admitting.Reason != fleetv1beta1.ReasonMaxFailuresExceeded {
			b.Errorf("admission has not stopped for the failure: %+v", admitting)
		}
	})
	must(b, r.fleet.Repair(b.Context(), name))
	r.edit(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.Attempt = 2 })
}

// addWorks creates four works for each cluster, and the agents respond to them. They have the size
// of works that upgrade a cluster and belong to an upgrade that does not exist.
func (r *rollout) addWorks(b *testing.B) {
	b.Helper()
	run := &fleetv1alpha1.ClusterUpgradeRun{}
	r.read(func() { run.Spec = r.runs[ocm.ClusterName(1)].Spec })
	run.Spec.ManagedClustersUpgrade.UID = "00000000-0000-0000-0000-000000000000"
	names := make(chan string, *benchClusters)
	for number := range *benchClusters {
		names <- ocm.ClusterName(number + 1)
	}
	close(names)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for name := range names {
				of := run.DeepCopy()
				of.Namespace = name
				for i := range 4 {
					work, err := delivery.UpgradeWork(of, r.upgrade, delivery.FormReadOnly, time.Now(), clusterstate.Release{})
					if err == nil {
						work.Name += fmt.Sprint("-", i)
						err = r.fleet.Client.Create(b.Context(), work)
					}
					if err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	must(b, wait.PollUntilContextTimeout(b.Context(), 10*time.Second, limit, true, func(ctx context.Context) (bool, error) { // a list is large
		var works workv1.ManifestWorkList
		err := r.fleet.Client.List(ctx, &works)
		return err == nil && !slices.ContainsFunc(works.Items, func(w workv1.ManifestWork) bool {
			return len(w.Status.ResourceStatus.Manifests) == 0
		}), nil
	}))
}

// reportQuietMinute reports the hub's writes in a minute after a rollout.
func (r *rollout) reportQuietMinute(b *testing.B) {
	b.Helper()
	await(b, "the works are gone", func(ctx context.Context) bool {
		var works workv1.ManifestWorkList
		return r.fleet.Client.List(ctx, &works) == nil && len(works.Items) == 0
	})
	time.Sleep(5 * time.Second) // the last status of the fleet may not have been written yet
	since := time.Now()
	time.Sleep(time.Minute)
	writes := 0
	for _, q := range r.requests(since) {
		if q.writes() {
			writes++
		}
	}
	figure(b, float64(writes), "writes/quiet-minute", 0)
}

// beganCount returns the number of clusters that have started.
func (r *rollout) beganCount() (n int) {
	r.read(func() { n = len(r.began) })
	return n
}

// lastAdmission waits until no cluster has been admitted for five seconds. It returns the time from
// since to the last admission, at least 0.
func (r *rollout) lastAdmission(since time.Time) time.Duration {
	last, count := time.Now(), r.beganCount()
	await(r.t, "admission stops", func(context.Context) bool {
		if now := r.beganCount(); now != count {
			last, count = time.Now(), now
		}
		return time.Since(last) > 5*time.Second && time.Since(since) > 5*time.Second
	})
	return max(0, last.Sub(since))
}

// reportWrites reports the hub's writes according to the audit log, and the maximum size of the
// object.
func (r *rollout) reportWrites(b *testing.B, total int32, took time.Duration) {
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
	figure(b, float64(writes)/float64(total), "writes/cluster", 20)
	figure(b, float64(statuses)/took.Seconds(), "statuses/s", 1)
	r.read(func() { figure(b, float64(r.largest), "B/object", 10_000) })
}

// memoryPeak returns the peak resident memory of a process in KiB.
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

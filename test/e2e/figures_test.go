// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
)

// The limits. Each figure is measured by a short test, and by a longer benchmark that prints it.
const (
	maxMemory         = 80 << 10 // KiB resident, with 50 nodes and 500 pods after five idle minutes
	maxWrites         = 2        // status writes for each transition of a step
	maxLiveReads      = 6        // of an upgrade: its UpgradeConfig, and the Lease of the lock
	maxRecordMedian   = time.Second
	heartbeatInterval = 5 * time.Minute
	alertsInterval    = time.Minute // the default of the configuration
)

func TestFigures_quiet_pass_makes_no_request(t *testing.T) {
	t.Parallel()
	measureIdle(t, openshiftsim.ClusterSpec{}, 20*time.Second, 5*time.Second)
}

func BenchmarkIdle(b *testing.B) {
	b.Log("Method: requests in the API server's audit log while an upgrade is Pending, and while it waits for an unhealthy cluster;" +
		" meanwhile nodes, operators and pools change in ways that do not matter. Requests to Prometheus and Alertmanager, and the" +
		" connections that these come by, are counted by a proxy in front of each. VmRSS is read at the end of it.")
	for b.Loop() {
		f := measureIdle(b, openshiftsim.ClusterSpec{Masters: 3, Workers: 47}, 5*time.Minute+10*time.Second, alertsInterval)
		b.ReportMetric(0, "ns/op") // is of no interest
		b.ReportMetric(float64(f.pending), "requests-pending")
		b.ReportMetric(float64(f.waiting), "requests-waiting")
		b.ReportMetric(float64(f.queries), "health-queries-waiting")
		b.ReportMetric(float64(f.passes), "passes")
		b.ReportMetric(float64(f.memory)/1024, "MiB")
		if f.memory > maxMemory {
			b.Errorf("%d KiB are resident, want at most %d", f.memory, maxMemory)
		}
	}
}

func TestFigures_requests_of_a_whole_upgrade(t *testing.T) {
	t.Parallel()
	measureUpgrade(t, 5*time.Second)
}

func BenchmarkUpgrade(b *testing.B) {
	b.Log("Method: requests in the API server's audit log from the creation of an UpgradeConfig to the end of its upgrade; those to" +
		" Prometheus, Alertmanager and the receiver of the webhook, and the connections that these come by, are counted by a proxy in front of each.")
	for b.Loop() {
		f := measureUpgrade(b, alertsInterval)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(f.writes), "status-writes")
		b.ReportMetric(float64(f.transitions), "transitions")
		b.ReportMetric(float64(f.reads), "reads")
		b.ReportMetric(float64(f.queries), "health-queries")
		b.ReportMetric(float64(f.silencing), "Alertmanager-requests")
	}
}

func TestFigures_delay_of_records(t *testing.T) {
	t.Parallel()
	measureRecording(t, 3)
}

func BenchmarkRecording(b *testing.B) {
	b.Log("Method: one process watches the cluster and the UpgradeConfig; from the event that shows the change which ends a step to the one that shows its record.")
	for b.Loop() {
		delays := measureRecording(b, 10)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(len(delays)), "samples")
		b.ReportMetric(median(delays).Seconds()*1000, "ms-median")
		b.ReportMetric(slices.Max(delays).Seconds()*1000, "ms-max")
	}
}

type idleFigures struct {
	pending, waiting int // requests
	queries          int // to Prometheus, while it waits
	passes           int
	memory           int // KiB
}

// measureIdle keeps an upgrade Pending for a duration, while pre-checks run, and then waiting in a
// step for as long. Alerts are queried in that interval.
func measureIdle(tb testing.TB, spec openshiftsim.ClusterSpec, idle, interval time.Duration) idleFigures {
	tb.Helper()
	spec.Monitoring = &alerting.Spec{}
	cluster := startCluster(tb, spec)
	servers := countExternal(tb, cluster)
	userClient := newUserClient(tb, cluster)
	createPods(tb, userClient, 10*(cluster.Spec().Masters+cluster.Spec().Workers))
	operator := startOperator(tb, cluster, devcluster.OperatorOptions{Config: servers.configuration(interval)})
	var f idleFigures

	config := upgradeTo("4.20.6")
	config.Spec.UpgradeAt = time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	applyUpgrade(tb, userClient, config)
	awaitCondition(tb, userClient, config, func(c *upgradev1alpha1.UpgradeConfig) bool {
		return len(c.Status.History) > 0 && c.Status.History[0].Phase == history.PhasePending
	})
	passes, made := disturb(tb, cluster, userClient, operator, idle)
	tb.Logf("Pending for %s, %d passes:\n%s%s", idle, passes, tally(made), servers)
	servers.checkIdle(tb, idle, interval)
	f.pending, f.passes = len(made), passes
	if len(made) > 0 {
		tb.Errorf("a Pending upgrade made %d requests, want none", len(made))
	}

	setDegraded(tb, userClient, configv1.ConditionTrue)
	applyUpgrade(tb, userClient, upgradeTo("4.20.6"))
	awaitCondition(tb, userClient, config, func(c *upgradev1alpha1.UpgradeConfig) bool { return waitsForHealth(c) })
	servers.reset()
	passes, made = disturb(tb, cluster, userClient, operator, idle)
	tb.Logf("Waiting for %s, %d passes:\n%s%s", idle, passes, tally(made), servers)
	f.queries = servers.checkIdle(tb, idle, interval)
	f.waiting, f.passes = len(made), f.passes+passes
	if signs := int(idle / heartbeatInterval); len(made) != count(made, "patch upgradeconfigs/status") || len(made) > signs {
		tb.Errorf("an upgrade that waits made %d requests, want none but %d signs of life", len(made), signs)
	}

	f.memory = statusOf(tb, operator.Replicas()[0].PID(), "VmRSS")
	tb.Logf("Resident: %d KiB", f.memory)
	return f
}

// disturb changes the cluster repeatedly in ways that do not matter. It returns the number of
// passes that this caused, and the requests of the operator.
func disturb(tb testing.TB, cluster *devcluster.Cluster, userClient client.Client, operator *devcluster.Operator, idle time.Duration) (int, []request) {
	tb.Helper()
	const settles = 3 * time.Second // records and notifications of earlier changes
	sleep(tb, settles)
	began, before := time.Now(), reconcileCount(tb, operator)
	changes := 0
	for round := 0; time.Since(began) < idle; round++ {
		for _, object := range []client.Object{
			&configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}},
			&configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "etcd"}},
			&mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-0"}},
		} {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/round":"%d"}}}`, round)
			if err := userClient.Patch(tb.Context(), object, client.RawPatch("application/merge-patch+json", patch)); err != nil {
				tb.Fatal(err)
			}
			changes++
		}
		sleep(tb, min(2*time.Second, idle/4))
	}
	made := requests(tb, cluster, began)
	passes := reconcileCount(tb, operator) - before
	if passes < changes/4 { // several changes may cause one pass
		tb.Errorf("%d changes led to %d passes: nothing was measured", changes, passes)
	}
	return passes, made
}

type upgradeFigures struct{ transitions, writes, reads, queries, silencing int }

// measureUpgrade counts the requests of a whole upgrade with silences, to the API server and to
// others. Alerts are queried in that interval.
func measureUpgrade(tb testing.TB, interval time.Duration) upgradeFigures {
	tb.Helper()
	cluster := startCluster(tb, openshiftsim.ClusterSpec{Speed: 120, Monitoring: &alerting.Spec{}})
	servers := countExternal(tb, cluster)
	userClient := newUserClient(tb, cluster)
	startOperator(tb, cluster, devcluster.OperatorOptions{Config: servers.configuration(interval)})
	began := time.Now()
	config := applyUpgrade(tb, userClient, upgradeTo("4.20.6"))
	var f upgradeFigures
	last := map[string]string{}
	follow(tb, userClient, config, func(record *history.Record) {
		for _, c := range record.Conditions {
			now := fmt.Sprint(c.Status, c.Reason, c.CompleteTime != nil)
			if last[c.Type] != now {
				f.transitions++
			}
			last[c.Type] = now
		}
	})
	awaitCondition(tb, userClient, config, func(c *upgradev1alpha1.UpgradeConfig) bool { return len(c.Finalizers) == 0 })

	made := requests(tb, cluster, began)
	took := time.Since(began)
	tb.Logf("A whole upgrade of %d steps and %d transitions in %s:\n%s%s", len(last), f.transitions, took.Round(time.Second), tally(made), servers)
	f.queries, f.silencing = servers.checkUpgrade(tb, took, interval)
	f.writes = count(made, "patch upgradeconfigs/status")
	if f.writes > maxWrites*len(last)+maxWrites {
		tb.Errorf("%d status writes for %d steps, want at most %d for the beginning of the upgrade and for each step", f.writes, len(last), maxWrites)
	}
	platform := 0 // reads of the name and the proxy of the cluster, once in a process
	for _, r := range made {
		if r.Verb == "get" || r.Verb == "list" {
			f.reads++
		}
		if r.Object.Resource == "infrastructures" || r.Object.Resource == "proxies" {
			platform++
		}
	}
	get, list := count(made, "get upgradeconfigs"), count(made, "list machinesets")
	// A process discovers the APIs twice, with two requests each: at its start, to log missing kinds, perhaps still
	// during the upgrade, and for its first read of an undeclared kind, the MachineSets.
	discovery := count(made, "get /api") + count(made, "get /apis")
	locks := count(slices.DeleteFunc(auditedRequests(tb, cluster), func(r request) bool {
		return r.Stage != stageComplete || r.Object.Name != lock.Name || r.Received.Before(began)
	}), "get leases")
	if get+locks > maxLiveReads {
		tb.Errorf("%d reads of the UpgradeConfig and %d of the lock, want at most %d", get, locks, maxLiveReads)
	}
	if f.reads != get+list+discovery+platform || get > 3 || list != 1 || discovery > 4 || platform > 2 {
		tb.Errorf("the operator read %d times, want the UpgradeConfig when it is first observed and before each change of its finalizers, the extra MachineSets once, of which there are none, at most four requests of discovery, and the name and the proxy of the cluster at most once", f.reads)
	}
	return f
}

// sighting is an object that a watch has returned, with the time.
type sighting struct {
	at     time.Time
	object client.Object
}

// measureRecording measures the time from the change that ends a step to the record of its end.
func measureRecording(tb testing.TB, upgrades int) []time.Duration {
	tb.Helper()
	cluster := startCluster(tb, openshiftsim.ClusterSpec{Version: installed, Speed: fast, Releases: releases(upgrades)})
	userClient := newUserClient(tb, cluster)
	startOperator(tb, cluster, devcluster.OperatorOptions{})
	ctx, cancel := context.WithTimeout(tb.Context(), time.Duration(upgrades)*2*time.Minute)
	defer cancel()
	seen := sightings(ctx, tb, userClient)
	var delays []time.Duration
	byStep := map[string][]time.Duration{}
	for _, release := range releases(upgrades) {
		setDegraded(tb, userClient, configv1.ConditionTrue)
		config := applyUpgrade(tb, userClient, upgradeTo(release.Version))
		for step, delay := range recordingOf(tb, userClient, config, seen) {
			delays = append(delays, delay)
			byStep[step] = append(byStep[step], delay)
		}
	}
	for _, step := range slices.Sorted(maps.Keys(byStep)) {
		tb.Logf("%s: %v", step, byStep[step])
	}
	middle := median(delays)
	tb.Logf("%d samples: median %s, longest %s", len(delays), middle, slices.Max(delays))
	if middle > maxRecordMedian {
		tb.Errorf("the median is %s, want at most %s", middle, maxRecordMedian)
	}
	return delays
}

// recordingOf follows one upgrade that waits for an unhealthy ClusterOperator, and heals the operator.
// The watches use different connections, so a measured delay may be zero, but it is never negative.
func recordingOf(tb testing.TB, userClient client.Client, config *upgradev1alpha1.UpgradeConfig, seen <-chan sighting) map[string]time.Duration {
	tb.Helper()
	target := config.Spec.Desired.Version
	ends := map[string]time.Time{} // times of the changes that end steps
	delays := map[string]time.Duration{}
	healed := false
	for s := range seen {
		switch object := s.object.(type) {
		case *configv1.ClusterVersion:
			newest := object.Status.History[0]
			if newest.Version == target && ends["CommenceUpgrade"].IsZero() {
				ends["CommenceUpgrade"] = s.at
			}
			if newest.Version == target && newest.State == configv1.CompletedUpdate && ends["ControlPlaneUpgraded"].IsZero() {
				ends["ControlPlaneUpgraded"] = s.at
			}
		case *configv1.ClusterOperator:
			if object.Name == degradable && healed && ends["PreHealthCheck"].IsZero() {
				ends["PreHealthCheck"] = s.at
			}
			if object.Name == cvo.MachineConfig {
				ends["AllWorkerNodesUpgraded"] = s.at // whatever it or a pool shows last
			}
		case *mcfgv1.MachineConfigPool:
			ends["AllWorkerNodesUpgraded"] = s.at
		case *upgradev1alpha1.UpgradeConfig:
			if waitsForHealth(object) && !healed {
				healed = true
				setDegraded(tb, userClient, configv1.ConditionFalse)
			}
			for _, c := range object.Status.History[:min(1, len(object.Status.History))] {
				record(c, target, ends, s.at, delays)
			}
			if len(delays) > 0 && isFinished(object, target) {
				return delays
			}
		}
	}
	tb.Fatalf("the upgrade to %s was not seen to its end", target)
	return nil
}

func record(h history.Record, target string, ends map[string]time.Time, at time.Time, delays map[string]time.Duration) {
	for _, c := range h.Conditions {
		_, known := delays[c.Type]
		if end := ends[c.Type]; h.Version == target && c.CompleteTime != nil && !known && !end.IsZero() {
			delays[c.Type] = max(0, at.Sub(end)).Round(time.Millisecond)
		}
	}
}

func isFinished(config *upgradev1alpha1.UpgradeConfig, version string) bool {
	return slices.ContainsFunc(config.Status.History, func(h history.Record) bool { return h.Version == version && h.CompleteTime != nil })
}

// sightings merges the watches of all relevant kinds.
func sightings(ctx context.Context, tb testing.TB, userClient client.WithWatch) <-chan sighting {
	tb.Helper()
	merged := make(chan sighting, 1000)
	for _, kind := range []client.ObjectList{
		&configv1.ClusterVersionList{}, &configv1.ClusterOperatorList{}, &mcfgv1.MachineConfigPoolList{}, &upgradev1alpha1.UpgradeConfigList{},
	} {
		events, err := userClient.Watch(ctx, kind)
		if err != nil {
			tb.Fatal(err)
		}
		go func() {
			for event := range events.ResultChan() {
				if object, is := event.Object.(client.Object); is {
					merged <- sighting{time.Now(), object}
				}
			}
		}()
	}
	return merged
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// degradable is the ClusterOperator that these tests make degraded.
const degradable = "network"

func setDegraded(tb testing.TB, userClient client.Client, status configv1.ConditionStatus) {
	tb.Helper()
	operator := &configv1.ClusterOperator{}
	if err := userClient.Get(tb.Context(), client.ObjectKey{Name: degradable}, operator); err != nil {
		tb.Fatal(err)
	}
	before := operator.DeepCopy()
	cvo.SetCondition(operator, configv1.OperatorDegraded, status, "RolloutHung", "a daemon is not available", time.Now())
	if err := userClient.Status().Patch(tb.Context(), operator, client.MergeFrom(before)); err != nil {
		tb.Fatal(err)
	}
}

func waitsForHealth(config *upgradev1alpha1.UpgradeConfig) bool {
	progressing := meta.FindStatusCondition(config.Status.Conditions, upgradev1alpha1.ConditionProgressing)
	return progressing != nil && progressing.Reason == "PreHealthCheck" && strings.Contains(progressing.Message, degradable)
}

func awaitCondition(tb testing.TB, userClient client.Client, config *upgradev1alpha1.UpgradeConfig, holds func(*upgradev1alpha1.UpgradeConfig) bool) {
	tb.Helper()
	eventually(tb, 3*time.Minute, "the UpgradeConfig is as wanted", func(ctx context.Context) error {
		var current upgradev1alpha1.UpgradeConfig
		if err := userClient.Get(ctx, client.ObjectKeyFromObject(config), &current); err != nil {
			return err
		}
		if !holds(&current) {
			return fmt.Errorf("its status is %+v", current.Status)
		}
		return nil
	})
}

func createPods(tb testing.TB, userClient client.Client, replicas int) {
	tb.Helper()
	labels := map[string]string{"app": "shop"}
	shop := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "shop", Image: "shop"}},
		}},
	}}
	if err := userClient.Create(tb.Context(), shop); err != nil {
		tb.Fatal(err)
	}
	eventually(tb, 5*time.Minute, "the pods are ready", func(ctx context.Context) error {
		if err := userClient.Get(ctx, client.ObjectKeyFromObject(shop), shop); err != nil {
			return err
		}
		if int(shop.Status.ReadyReplicas) != replicas {
			return fmt.Errorf("%d of %d are", shop.Status.ReadyReplicas, replicas)
		}
		return nil
	})
}

// reconcileCount returns the number of reconciles of UpgradeConfigs, from the metrics of the
// operator.
func reconcileCount(tb testing.TB, operator *devcluster.Operator) int {
	tb.Helper()
	text, err := operator.Replicas()[0].Metrics(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	total := 0.0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, `controller_runtime_reconcile_total{controller="upgrade`) {
			value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:len(line)-1], 64)
			if err != nil {
				tb.Fatal(err)
			}
			total += value
		}
	}
	return int(total)
}

// statusOf returns a memory figure of a process from /proc, in KiB: VmRSS is resident memory, VmHWM
// its peak.
func statusOf(tb testing.TB, pid int, field string) int {
	tb.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, os.ErrNotExist) {
		tb.Skip("resident memory is known on Linux only")
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == field+":" {
			size, err := strconv.Atoi(fields[1])
			if err != nil {
				tb.Fatal(err)
			}
			return size
		}
	}
	tb.Fatal("the process has no " + field)
	return 0
}

func sleep(tb testing.TB, d time.Duration) {
	tb.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-tb.Context().Done():
		tb.Fatal(context.Cause(tb.Context()))
	}
}

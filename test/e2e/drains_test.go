// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
)

// maxMemoryManyNodes is the limit of resident memory, in KiB, while 500 nodes with 5,000 pods are
// drained.
const maxMemoryManyNodes = 150 << 10

func TestDrain_lists_pods_by_node(t *testing.T) {
	t.Parallel()
	measureDrains(t, openshiftsim.ClusterSpec{Speed: 120}, 2, time.Second)
}

func BenchmarkFiveHundredNodes(b *testing.B) {
	b.Log("Method: requests in the API server's audit log while an upgrade is Pending, and while it drains all workers, a tenth of them at a time; on each node ten pods," +
		" all of which a budget guards and have to be forced. VmHWM, the most that was ever resident, is read at the end.")
	tenth := intstr.FromString("10%")
	for b.Loop() {
		f := measureDrains(b, openshiftsim.ClusterSpec{
			Speed: 600, Masters: 3, Workers: 497, Pools: []machineconfig.Pool{{Name: machineconfig.Worker, MaxUnavailable: &tenth}},
		}, 10, 2*time.Minute)
		b.ReportMetric(0, "ns/op") // is of no interest
		b.ReportMetric(float64(f.idle), "requests-idle")
		b.ReportMetric(float64(f.forced), "forced")
		b.ReportMetric(float64(f.lists), "pod-lists")
		b.ReportMetric(float64(f.memory)/1024, "MiB")
		if f.memory > maxMemoryManyNodes {
			b.Errorf("%d KiB were resident, want at most %d", f.memory, maxMemoryManyNodes)
		}
	}
}

type drainFigures struct {
	idle   int // requests
	forced int // pods
	lists  int // of the pods on a node
	memory int // KiB, at most
}

// measureDrains keeps an upgrade Pending for a duration. Then the upgrade drains workers whose pods
// are protected by PDBs.
func measureDrains(tb testing.TB, spec openshiftsim.ClusterSpec, podsEach int, idle time.Duration) drainFigures {
	tb.Helper()
	cluster := startCluster(tb, spec)
	userClient := newUserClient(tb, cluster)
	workers := cluster.Spec().Workers
	createGuardedPods(tb, userClient, workers, podsEach)
	operator := startOperator(tb, cluster, devcluster.OperatorOptions{})
	var f drainFigures

	config := upgradeTo("4.20.6")
	config.Spec.PDBForceDrainTimeout = new(int32(0))
	config.Spec.UpgradeAt = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	config = applyUpgrade(tb, userClient, config)
	awaitCondition(tb, userClient, config, func(c *upgradev1alpha1.UpgradeConfig) bool { return c.Status.NextTime != nil })
	_, made := disturb(tb, cluster, userClient, operator, idle)
	tb.Logf("Pending for %s:\n%s", idle, tally(made))
	if f.idle = len(made); f.idle > 0 {
		tb.Errorf("a Pending upgrade made %d requests, want none", f.idle)
	}

	began := time.Now()
	config.Spec.UpgradeAt = began.UTC().Format(time.RFC3339)
	applyUpgrade(tb, userClient, config)
	eventually(tb, 20*time.Minute, "the upgrade is over", func(ctx context.Context) error {
		if err := userClient.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil {
			return err
		}
		if !isFinished(config, "4.20.6") {
			return fmt.Errorf("its status is %+v", config.Status.Conditions)
		}
		return nil
	})
	made = requests(tb, cluster, began)
	tb.Logf("An upgrade with %d pods that are guarded, in %s:\n%s", workers*podsEach, time.Since(began).Round(time.Second), tally(made))
	for _, r := range made {
		if r.Verb == "list" && r.Object.Resource == "pods" {
			f.lists++
			if !strings.Contains(r.URI, "fieldSelector=spec.nodeName%3Dworker-") && !strings.Contains(r.URI, "fieldSelector=spec.nodeName%3Dmaster-") || !strings.Contains(r.URI, "limit=") {
				tb.Errorf("pods were listed by %s", r.URI)
			}
		}
	}
	f.forced = count(made, "delete pods")
	if f.forced == 0 {
		tb.Error("no pod was forced: nothing was measured")
	}
	f.memory = statusOf(tb, operator.Replicas()[0].PID(), "VmHWM")
	tb.Logf("Resident at most: %d KiB", f.memory)
	return f
}

// createGuardedPods creates pods on each worker, each in a namespace of its own with a PDB that
// allows no disruption.
func createGuardedPods(tb testing.TB, userClient client.Client, workers, podsEach int) {
	tb.Helper()
	var making sync.WaitGroup
	for p := range podsEach {
		name := fmt.Sprintf("shop-%d", p)
		making.Go(func() {
			objects := []client.Object{
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
				&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{
					Selector: &metav1.LabelSelector{}, MinAvailable: new(intstr.FromInt32(int32(workers + 1))),
				}},
			}
			for w := range workers {
				node := fmt.Sprintf("worker-%d", w)
				objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: node}, Spec: corev1.PodSpec{
					NodeName: node, AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "shop", Image: "shop"}},
				}})
			}
			for _, object := range objects {
				if err := userClient.Create(tb.Context(), object); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	making.Wait()
	eventually(tb, 10*time.Minute, "the pods run", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := userClient.List(ctx, &pods); err != nil {
			return err
		}
		running := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running != workers*podsEach {
			return fmt.Errorf("%d of %d do", running, workers*podsEach)
		}
		return nil
	})
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package nodekeeper_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/nodekeeper"
)

// maxDelay is how long after the deadline the last pod may be deleted.
const maxDelay = 5 * time.Second

// BenchmarkForcing drains nodes with PDB-protected pods that share one deadline.
func BenchmarkForcing(b *testing.B) {
	for _, podsEach := range []int{1, 5} {
		b.Run(fmt.Sprintf("100 nodes with %d such pods each", podsEach), func(b *testing.B) {
			b.Log("Method: one process watches all pods. A sample is the time from a node's deadline (PDBForceDrainTimeout after its drain was first seen) to the event that shows" +
				" one of its pods deleted; each pod was refused by the Eviction API before, and two Events were published about its deletion.")
			for b.Loop() {
				delays, requests := measureForcing(b, 100, podsEach)
				b.ReportMetric(0, "ns/op") // not meaningful here
				b.ReportMetric(float64(len(delays)), "pods")
				b.ReportMetric(float64(requests), "requests")
				b.ReportMetric(float64(delays[0].Milliseconds()), "ms-first")
				b.ReportMetric(float64(delays[len(delays)/2].Milliseconds()), "ms-median")
				b.ReportMetric(float64(delays[len(delays)-1].Milliseconds()), "ms-last")
			}
		})
	}
}

func TestForce_follows_the_deadline(t *testing.T) {
	t.Parallel()
	delays, _ := measureForcing(t, 10, 4)
	t.Logf("%d pods: first %s, last %s", len(delays), delays[0], delays[len(delays)-1])
}

// measureForcing returns the sorted delays of all pods and the number of requests that forced them.
func measureForcing(tb testing.TB, nodes, podsEach int) ([]time.Duration, int) {
	tb.Helper()
	k := start(tb)
	name := func(node int) string { return fmt.Sprintf("edge-%d", node) }
	for p := range podsEach { // each pod of a node belongs to another app
		name := fmt.Sprintf("shop-%d", p)
		k.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, budget(name, "shop", &metav1.LabelSelector{}))
	}
	var making sync.WaitGroup
	for node := range nodes {
		k.addNode(name(node))
		making.Go(func() {
			for p := range podsEach {
				if err := k.userClient.Create(tb.Context(), pod(name(node), fmt.Sprintf("shop-%d", p), name(node))); err != nil {
					tb.Error(err)
				}
			}
		})
	}
	making.Wait()
	k.waitUntilReady()
	k.upgrade(1)
	k.run(config.NodeDrain{TimeOut: config.Duration{Duration: 45 * time.Minute}})

	for node := range nodes {
		k.cluster.Kubelets.SetDown(name(node), true) // kubelets terminate pods, and none run on this machine
		k.requestDrain(name(node), time.Now().Add(-time.Hour))
	}
	k.eventually("each drain is seen on a node that is not ready", func() string {
		var list corev1.NodeList
		if err := k.userClient.List(tb.Context(), &list); err != nil {
			tb.Fatal(err)
		}
		count := 0
		for i := range list.Items {
			n := &list.Items[i]
			notReady := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
			})
			if n.Annotations[nodekeeper.AnnotationDrainFirstSeen] != "" && notReady {
				count++
			}
		}
		if count == nodes {
			return ""
		}
		return fmt.Sprintf("%d of %d", count, nodes)
	})
	k.requests.reset()
	k.clock.advance(5 * time.Minute)
	deadline := time.Now()
	k.triggerReconcile()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	delays := deletions(ctx, tb, k, nodes*podsEach, deadline)
	slices.Sort(delays)
	if first, last := delays[0], delays[len(delays)-1]; first < 0 || last > maxDelay {
		tb.Errorf("pods were deleted from %s to %s after the deadline, want at most %s", first, last, maxDelay)
	}
	return delays, len(k.requests.reset())
}

// deletions waits until that many pods are deleted and returns each pod's delay after the deadline.
func deletions(ctx context.Context, tb testing.TB, k *testEnv, pods int, deadline time.Time) []time.Duration {
	tb.Helper()
	watching, err := client.NewWithWatch(k.cluster.RESTConfig(), client.Options{Scheme: k.userClient.Scheme()})
	if err != nil {
		tb.Fatal(err)
	}
	events, err := watching.Watch(ctx, &corev1.PodList{})
	if err != nil {
		tb.Fatal(err)
	}
	defer events.Stop()
	seen := map[types.UID]bool{}
	var delays []time.Duration
	for event := range events.ResultChan() {
		p, is := event.Object.(*corev1.Pod)
		if is && (p.DeletionTimestamp != nil || event.Type == watch.Deleted) && !seen[p.UID] {
			seen[p.UID] = true
			delays = append(delays, time.Since(deadline))
		}
		if len(delays) == pods {
			return delays
		}
	}
	tb.Fatalf("%d of %d pods were deleted", len(delays), pods)
	return nil
}

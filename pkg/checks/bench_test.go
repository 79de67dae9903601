// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// newLargeCluster returns a cluster with the given number of nodes in 20 pools, in the middle of an update: a
// tenth of the nodes is being drained, and half of them are updated.
func newLargeCluster(nodes int) *cluster {
	c := newCluster()
	clear(c.nodes)
	for i := range 18 {
		c.addPool(fmt.Sprintf("pool%d", i))
	}
	c.complete()
	for i := range nodes {
		name, pool := fmt.Sprintf("node-%04d", i), fmt.Sprintf("pool%d", i%18)
		c.addNode(pool, name, "worker")
		switch {
		case i%10 == 0:
			c.drain(pool, name, time.Hour)
		case i%2 == 0:
			c.update(pool, name)
		case i%50 == 1:
			c.condition(name, corev1.NodeReady, corev1.ConditionFalse, time.Hour)
		}
	}
	return c
}

// cached returns a reader that does not copy nodes, like a cache, so benchmarks do not measure the
// simulation.
func cached(tb testing.TB, c *cluster) client.Reader {
	tb.Helper()
	objects := simulation.NewFakeClient(tb, c.objects()...)
	var nodes corev1.NodeList
	if err := objects.List(tb.Context(), &nodes); err != nil {
		tb.Fatal(err)
	}
	return interceptor.NewClient(objects, interceptor.Funcs{
		List: func(ctx context.Context, cl client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if into, ok := list.(*corev1.NodeList); ok {
				into.Items = append([]corev1.Node(nil), nodes.Items...)
				return nil
			}
			return cl.List(ctx, list, opts...)
		},
	})
}

// BenchmarkInformers measures a pass of all informers, with and without gathering the facts. Target: a pass
// over 2,000 nodes takes at most 12 times as long as over 200 nodes, and less than 50 ms.
func BenchmarkInformers(b *testing.B) {
	b.Log("Method: 20 pools, a tenth of the nodes draining, half of them updated; facts read without a network, nodes shared with the cache.")
	for _, nodes := range []int{200, 2000} {
		c := newLargeCluster(nodes)
		reader := cached(b, c)
		readers := checks.Readers{Reader: reader, Live: reader, Clock: clocktesting.NewFakePassiveClock(now)}
		readers.Sources = checks.NewSources(readers.Clock)
		b.Run(fmt.Sprintf("find/%d_nodes", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				facts := checks.Gather(b.Context(), checks.Update, readers)
				b.StartTimer()
				findAll(facts)
			}
		})
		b.Run(fmt.Sprintf("gather_and_find/%d_nodes", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				findAll(checks.Gather(b.Context(), checks.Update, readers))
			}
		})
	}
}

func findAll(facts checks.Facts) {
	for _, informer := range checks.Informers() {
		_ = informer.Find(facts)
	}
}

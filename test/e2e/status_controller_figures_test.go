// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/informer"
)

// The limits with 50 informers and 50 nodes.
const (
	maxInformerGap           = 30 * time.Second // two intervals between requests of an active update
	maxStatusMemory          = 96 << 10         // KiB, if all informers are well-behaved
	maxStatusMemoryOfHostile = 200 << 10        // KiB, if 10 hang and 5 answer 1 MiB
)

func BenchmarkStatusController(b *testing.B) {
	b.Log("Method: the program with its deployed permissions on an API server with 50 nodes, during an update, queries 50 informers, which are real HTTPS" +
		" servers, for three minutes. The gap is the longest time between two requests to one informer that is well-behaved, by its own count." +
		" VmHWM is read at the end.")
	for name, tc := range map[string]struct{ hang, large, memory int }{
		"well-behaved":              {0, 0, maxStatusMemory},
		"10_hang_and_5_answer_1MiB": {10, 5, maxStatusMemoryOfHostile},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				gap, memory := measureInformers(b, tc.hang, tc.large, 3*time.Minute)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(gap.Seconds(), "s-gap")
				b.ReportMetric(float64(memory)/1024, "MiB-VmHWM")
				if gap > maxInformerGap || memory > tc.memory {
					b.Errorf("the longest gap is %s, want at most %s; VmHWM is %d KiB, want at most %d", gap, maxInformerGap, memory, tc.memory)
				}
			}
		})
	}
}

// measureInformers returns the longest time between two requests to one of the informers that neither hang
// nor answer a megabyte, and the peak of resident memory in KiB.
func measureInformers(tb testing.TB, hang, large int, during time.Duration) (gap time.Duration, memory int) {
	tb.Helper()
	const informers, nodes = 50, 50
	w := newStatusWorld(tb)
	w.createOperator()
	w.createVersion()
	for i := range nodes {
		mustSucceed(tb, w.typed.Create(tb.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%02d", i)}}))
	}
	var well []*informer.Server
	for i := range informers {
		server, err := informer.Start(tb.Context(), w.client, "shop", fmt.Sprintf("informer-%02d", i))
		mustSucceed(tb, err)
		tb.Cleanup(func() { _ = server.Stop() })
		switch {
		case i < hang:
			server.Behave(informer.Behavior{Hang: true})
		case i < hang+large:
			server.Behave(informer.Behavior{Insights: megabyte(i)})
		default:
			server.Behave(informer.Behavior{Insights: smallInsights(i)})
			well = append(well, server)
		}
	}
	w.start()
	waitUntil(tb, "all well-behaved informers are queried", func(context.Context) bool {
		for _, server := range well {
			if server.Requests(hooksv1alpha.UpdateInsightsPath) == 0 {
				return false
			}
		}
		return true
	})
	type seen struct {
		requests int
		at       time.Time
	}
	last := make([]seen, len(well))
	begin := time.Now()
	for time.Since(begin) < during {
		for i, server := range well {
			now, requests := time.Now(), server.Requests(hooksv1alpha.UpdateInsightsPath)
			if !last[i].at.IsZero() {
				gap = max(gap, now.Sub(last[i].at))
			}
			if requests != last[i].requests {
				last[i] = seen{requests, now}
			}
		}
		sleep(tb, 100*time.Millisecond)
	}
	return gap, statusOf(tb, w.binary.process.PID(), "VmHWM")
}

// smallInsights returns what a usual informer reports.
func smallInsights(informer int) []hooksv1alpha.Insight {
	return []hooksv1alpha.Insight{{
		UID: "disk", Scope: updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane},
		Impact: updatev1beta1.InsightImpact{Level: updatev1beta1.LevelWarning, Summary: fmt.Sprintf("Disk %d is slow", informer)},
	}}
}

// megabyte returns insights that are nearly a megabyte as JSON.
func megabyte(informer int) []hooksv1alpha.Insight {
	var all []hooksv1alpha.Insight
	for i := range 300 {
		all = append(all, hooksv1alpha.Insight{
			UID: fmt.Sprintf("disk-%d", i), Scope: updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane},
			Impact: updatev1beta1.InsightImpact{
				Level: updatev1beta1.LevelWarning, Summary: fmt.Sprintf("Disk %d is slow", informer), Description: strings.Repeat("slow ", 640),
			},
		})
	}
	return all
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// The fleet of the figures.
const (
	fleetSize     = 3500
	fleetInFlight = 500
)

// fleet returns members of ten groups in their order, with 500 in flight.
func fleet() []rollout.Member {
	list := make([]rollout.Member, fleetSize)
	for i := range list {
		m := &list[i]
		*m = rollout.Member{Name: fmt.Sprintf("store-%04d", i), Group: i * 10 / fleetSize, State: rollout.NotStarted}
		switch {
		case i < 1200:
			m.State, m.SoakedUntil = rollout.Complete, now
		case i < 1200+fleetInFlight-1: // one slot is free
			m.State, m.Deadline = rollout.PartialUpgrade, at(i)
		}
	}
	return list
}

// maxDecide limits the processor time of a decision about 3,500 clusters.
const maxDecide = 500 * time.Microsecond

func BenchmarkDecide(b *testing.B) {
	for _, kind := range []rollout.Type{rollout.Progressive, rollout.ProgressivePerGroup} {
		b.Run(string(kind), func(b *testing.B) {
			plan := rollout.Plan{Type: kind, MaxConcurrency: number(fleetInFlight), MaxFailures: percent("2%")}
			list := fleet()
			decide := func() {
				if d := rollout.Decide(plan, list, now); kind == rollout.Progressive && len(d.Admit) != 1 {
					b.Fatalf("%+v", d)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				decide()
			}
			fastest := simulation.FastestPass(b, 100, decide)
			b.ReportMetric(float64(fastest.Microseconds())/1000, "best-ms")
			if fastest > maxDecide {
				b.Errorf("a decision takes %s of processor time, limit %s", fastest, maxDecide)
			}
		})
	}
}

// TestDecideAllocations limits the allocations of a decision: they do not grow with the fleet.
func TestDecideAllocations(t *testing.T) {
	plan := rollout.Plan{MaxConcurrency: number(fleetInFlight)}
	list := fleet()
	if n := testing.AllocsPerRun(10, func() { rollout.Decide(plan, list, now) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

// durations returns how many steps each cluster takes: 1,000, and 4,000 for 5 % stragglers.
func durations(seed uint64) []int {
	random := rand.New(rand.NewPCG(seed, 2))
	list := make([]int, fleetSize)
	for i := range list {
		list[i] = 10
		if random.IntN(20) == 0 {
			list[i] = 40
		}
	}
	return list
}

// makespan returns how long the rollout takes if Decide admits clusters.
func makespan(takes []int) int {
	plan := rollout.Plan{MaxConcurrency: number(fleetInFlight)}
	list := make([]rollout.Member, len(takes))
	index := map[string]int{}
	for i := range list {
		list[i] = rollout.Member{Name: fmt.Sprintf("store-%04d", i), State: rollout.NotStarted}
		index[list[i].Name] = i
	}
	ends := map[int][]int{}
	for step := 0; ; step++ {
		for _, i := range ends[step] {
			list[i].State = rollout.Complete
		}
		d := rollout.Decide(plan, list, now.Add(time.Duration(step)*time.Minute))
		if d.Stopped.Reason == fleetv1beta1.ReasonFinished && d.InUse == 0 {
			return step
		}
		for _, name := range d.Admit {
			i := index[name]
			list[i].State = rollout.PartialUpgrade
			ends[step+takes[i]] = append(ends[step+takes[i]], i)
		}
	}
}

// barriers returns how long it takes in batches that begin when the batch before is over.
func barriers(takes []int) int {
	total := 0
	for start := 0; start < len(takes); start += fleetInFlight {
		longest := 0
		for _, d := range takes[start:min(start+fleetInFlight, len(takes))] {
			longest = max(longest, d)
		}
		total += longest
	}
	return total
}

// TestMakespan bounds the time of a rollout with stragglers, compared with barrier batches.
func TestMakespan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		takes := durations(seed)
		if ratio := float64(makespan(takes)) / float64(barriers(takes)); ratio > 0.5 {
			t.Errorf("seed %d: %.2f of the time of barrier batches", seed, ratio)
		}
	}
}

func BenchmarkMakespan(b *testing.B) {
	takes := durations(0)
	var ratio float64
	for b.Loop() {
		ratio = float64(makespan(takes)) / float64(barriers(takes))
	}
	b.ReportMetric(ratio, "of-barriers")
}

func BenchmarkHistories(b *testing.B) {
	seed := uint64(1_000_000)
	for b.Loop() {
		if err := newHistory(seed).run(); err != nil {
			b.Fatal(seed, err)
		}
		seed++
	}
	b.ReportMetric(float64(b.N)*60/b.Elapsed().Seconds(), "histories/min")
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	cmpint "cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	soak  = flag.Duration("soak", 0, "run histories of fresh seeds for this long")
	count = flag.Uint64("histories", 0, "run the histories of exactly this many fresh seeds, instead of -soak")
	from  = flag.Uint64("from", 0, "the first seed of -soak and -histories; 0 chooses one")
	seed  = flag.Uint64("seed", 0, "run the history of this seed alone and print its log")
	kinds = flag.Int("actions", 0, "with -seed: use that many actions, as a kept seed does; 0 uses all")
	kind  = flag.String("kind", "", "the kind of the upgrades of -soak, -histories, and -seed: UpgradeConfig, UpgradeJob, or ManagedClustersUpgrade; empty means these kinds in turn, by the remainder of the seed and 3")
	first = flag.Bool("first", false, "with -soak and -histories: stop at the first seed that fails")
	fixed = flag.Bool("fixed", false, "run the histories of the fixed seeds")
)

// fixedSeeds is the number of seeds, starting at 1, that make test runs. They take less than 20 s
// on two processors.
const fixedSeeds = 60

// fixedSeedsOfJobs is the number of fixed seeds for UpgradeJobs.
const fixedSeedsOfJobs = 12

// fixedSeedsOfFleets is the number of fixed seeds for ManagedClustersUpgrades.
const fixedSeedsOfFleets = 24

// TestFixedSeeds runs histories with the same seeds every time: all of them with -fixed, otherwise
// a few.
func TestFixedSeeds(t *testing.T) {
	t.Parallel()
	last := map[Kind]uint64{UpgradeConfigs: 2, UpgradeJobs: 1, ManagedClustersUpgrades: 2}
	if *fixed {
		last = map[Kind]uint64{UpgradeConfigs: fixedSeeds, UpgradeJobs: fixedSeedsOfJobs, ManagedClustersUpgrades: fixedSeedsOfFleets}
	}
	for _, of := range allKinds {
		seeds := make(chan uint64)
		go func() {
			defer close(seeds)
			for s := range last[of] {
				seeds <- s + 1
			}
		}()
		reports := runAll(seeds, func(uint64) Kind { return of }, func(report Report) { check(t, report) })
		t.Logf("%s: %s", of, summarize(reports, 0))
	}
}

// allKinds lists the kinds of histories.
var allKinds = []Kind{UpgradeConfigs, UpgradeJobs, ManagedClustersUpgrades}

// TestOneSeedHasOneHistory runs the same history twice.
func TestOneSeedHasOneHistory(t *testing.T) {
	t.Parallel()
	seeds := []uint64{1, 2, 3}
	if testing.Short() {
		seeds = seeds[:1]
	}
	for i, s := range seeds {
		of := allKinds[i]
		if diff := cmp.Diff(Run(s, of).Log, Run(s, of).Log); diff != "" {
			t.Errorf("seed %d of %s has two histories:\n%s", s, of, diff)
		}
	}
}

// TestSoak runs histories with new seeds, either -histories of them or for the duration -soak, or
// replays a single history.
func TestSoak(t *testing.T) {
	switch {
	case *seed != 0:
		of := kindOf(*seed)
		report := run(*seed, of, *kinds)
		t.Log(strings.Join(report.Log, "\n"))
		check(t, report)
	case *count > 0:
		soakFrom(t, func(n uint64, _ time.Duration) bool { return n < *count })
	case *soak > 0:
		soakFrom(t, func(_ uint64, took time.Duration) bool { return took < *soak })
	default:
		t.Skip("-histories sets how many, -soak for how long")
	}
}

// soakFrom runs histories starting at the seed given by -from. It continues as long as more returns
// true for the number of histories so far and the elapsed time.
func soakFrom(t *testing.T, more func(n uint64, took time.Duration) bool) {
	t.Helper()
	began, start := time.Now(), cmpint.Or(*from, rand.Uint64N(1<<40))
	seeds := make(chan uint64)
	go func() {
		defer close(seeds)
		for n := uint64(0); more(n, time.Since(began)) && (!*first || !t.Failed()); n++ {
			seeds <- start + n
		}
	}()
	reports := runAll(seeds, kindOf, func(report Report) {
		t.Logf("seed %d: %d actions, %d writes, %d violations", report.Seed, report.Actions, report.Writes, len(report.Violations))
		check(t, report)
	})
	t.Log(summarize(reports, time.Since(began)))
}

// kindOf returns the kind of a seed's history: -kind if set, otherwise each kind in turn.
func kindOf(seed uint64) Kind {
	if *kind != "" {
		return Kind(*kind)
	}
	return allKinds[seed%uint64(len(allKinds))]
}

// runAll runs the histories of the seeds on all processors and returns the reports ordered by seed.
// It calls ended immediately for each report, so a timeout of the test loses none.
func runAll(seeds <-chan uint64, kindOf func(seed uint64) Kind, ended func(Report)) []Report {
	var mutex sync.Mutex
	var reports []Report
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for s := range seeds {
				report := Run(s, kindOf(s))
				report.Log = nil
				mutex.Lock()
				reports = append(reports, report)
				ended(report)
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	slices.SortFunc(reports, func(a, b Report) int { return cmpint.Compare(a.Seed, b.Seed) })
	return reports
}

// summarize returns statistics about histories.
func summarize(reports []Report, took time.Duration) string {
	var commit, workers, cleanup, deletion, interleaved, writes int
	var sizes []int
	for _, r := range reports {
		writes += r.Writes
		sizes = append(sizes, r.Writes)
		for n, reached := range map[*int]bool{&commit: r.Commit, &workers: r.Workers, &cleanup: r.Cleanup, &deletion: r.Deletion, &interleaved: r.Interleaved} {
			if reached {
				*n++
			}
		}
	}
	slices.Sort(sizes)
	share := func(n int) int { return 100 * n / max(1, len(reports)) }
	return fmt.Sprintf("%d histories from seed %d in %s: %d checked writes, %.0f a minute (%.0f in a minute of two processors), median %d a history; commit %d%%, workers %d%%, cleanup %d%%, deletion %d%%; the requests of two leaders were scheduled in %d",
		len(reports), reports[0].Seed, took.Round(time.Second), writes, float64(writes)/max(took, time.Second).Minutes(), float64(writes)/(processorTime().Minutes()/2), sizes[len(sizes)/2],
		share(commit), share(workers), share(cleanup), share(deletion), interleaved)
}

// processorTime returns the processor time used by this process.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func check(t *testing.T, report Report) {
	t.Helper()
	for _, violation := range report.Violations {
		t.Errorf("seed %d: %s\nreplay: go test ./pkg/simulation/histories -run TestSoak -seed=%d -kind=%s -v", report.Seed, violation, report.Seed, report.Kind)
	}
}

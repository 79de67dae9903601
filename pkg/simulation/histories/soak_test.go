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
	kinds = flag.Int("actions", 0, "with -seed: use that many actions, as a seed of TestFailedSeeds does; 0 uses all")
	kind  = flag.String("kind", "", "the kind of the upgrades of -soak, -histories, and -seed: UpgradeConfig, UpgradeJob, or ManagedClustersUpgrade; empty means these kinds in turn, by the remainder of the seed and 3")
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

// failedSeed is a history that has found a defect.
type failedSeed struct {
	defect  string
	seed    uint64
	actions int // the number of actions that existed at the time
}

// failedSeedsOfJobs are the failed seeds for UpgradeJobs.
var failedSeedsOfJobs = []failedSeed{
	{"the request of another client is requested again without a pause", 2, 34},
	{"an UpgradeJob commences while the workers roll out the release before", 88, 35},
	{"a retry that is requested while an attempt ends is not noticed", 3299458423, 35},
}

// failedSeedsOfFleets are the failed seeds for ManagedClustersUpgrades.
var failedSeedsOfFleets = []failedSeed{
	{"two leaders whose clocks differ deliver a request and withdraw it in turn", 7124, 30},
	{"a hub writes when a canary could have stopped a rollout that is cancelled", 881000090100, 47},
	{"a cluster that a clock ahead has admitted waits for the time of that clock", 15, 36},
	{"a cluster that is held since a time in the future keeps its slot", 2221509203, 47},
	{"the hub is at rest before a cluster that has come back is selected again", 2221509275, 47},
	{"the failure of a canary that was refused is forgotten before its status shows it", 1638709370, 47},
	{"a late success is written again each minute", 214972172, 47},
	{"the admission of a cluster is withdrawn that had accepted the release before a pause withdrew the request", 918274233, 47},
	{"an upgrade that is complete does not rest while a dry run is requested", 693620897, 47},
	{"a canary without which a person continues in one attempt is none in the next one", 260000190, 50},
	{"a soak ends although a silent agent has not given up a work that another client has removed", 260000254, 50},
	{"a work of a dry run is created for another process after the upgrade was deleted, and stays", 268000727, 50},
	{"two hubs whose caches differ add and remove the finalizer of a run in turn", 550103, 50},
}

var failedSeeds = []failedSeed{
	{"an extra node is left after its record was replaced", 473354915562, 42},
	{"the lock is held by an upgrade that was deleted at once", 473354915582, 42},
	{"Upgraded is reported while a pool is behind", 40015, 42},
	{"a failed upgrade that is deleted is said to go on", 30020, 42},
	{"two leaders overwrite each other's results of pre-checks", 473354915523, 42},
	{"two leaders overwrite each other's statuses", 40014, 42},
	{"two leaders whose clocks differ overwrite each other's heartbeats", 930005, 42},
	{"a request is not withdrawn after its record was replaced", 473354915545, 42},
	{"the lock is held by an upgrade that the cache showed late", 473354915595, 42},
	{"an upgrade starts before its window by a forged status", 216, 42},
	{"what another client requests is withdrawn", 910015, 42},
	{"pods are not forced after the clock was a day ahead", 910011, 42},
	{"an upgrade starts beside another one whose lock was deleted", 930181, 42},
	{"the channel is not restored if an earlier attempt had commenced", 970206, 48},
	{"the cleanup of an upgrade that an earlier release started is cut short", 960113, 48},
	{"a request is not withdrawn after its record was replaced twice", 731789905383, 48},
	{"an upgrade fails at the end of its window although another client has started its target", 79693749945, 51},
	{"what another client requests between a read and the write is withdrawn", 67063348, 51},
	{"two leaders whose clocks differ overwrite each other's answer whether the window is open", 2000082, 51},
	{"an upgrade that has ended keeps its lock while another one waits", 31, 52},
	{"an upgrade that has ended keeps its lock for the longest time between two retries", 3705185442, 52},
	{"two leaders whose clocks differ overwrite each other's end of the window of an upgrade that waits", 799345750, 52},
	{"the channel that another client has set while the upgrade was held is restored", 4170922763, 51},
	{"two leaders whose clocks differ request the version and withdraw it in turn", 1155744897, 52},
	{"an upgrade that goes on is deleted before its record replaces the one before", 2533075668, 52},
	{"a silence lasts for as long as the clock was ahead that has extended it", 1638709515, 53},
	{"a request is made after a fence whose note is taken back only later", 3179025537, 53},
	{"an upgrade whose object is created again in mid-upgrade has another commence time", 5033, 54},
	{"an upgrade whose object is created again before the health check is not continued", 5040, 54},
	{"two leaders whose clocks differ restore and replace the time of the last progress in turn", 28001106, 53},
	{"an upgrade that goes on without its object is forgotten once another one acquires its lock", 880319, 58},
	{"two leaders whose clocks differ save in turn that a step is slow", 990465, 58},
	{"the extra nodes of an upgrade stay whose record and Lease were lost while the operator was down", 3555771828, 58},
	{"the extra nodes of an upgrade stay whose record was forged and whose Lease was lost while the operator was down", 869484390, 58},
}

// TestFailedSeeds replays histories that have found a defect, to keep it from returning: all of
// them with -fixed, otherwise two.
func TestFailedSeeds(t *testing.T) {
	t.Parallel()
	replayed := failedSeeds
	if !*fixed {
		replayed = failedSeeds[:2]
	}
	for of, seeds := range map[Kind][]failedSeed{UpgradeConfigs: replayed, UpgradeJobs: failedSeedsOfJobs, ManagedClustersUpgrades: failedSeedsOfFleets} {
		for _, tc := range seeds {
			t.Run(tc.defect, func(t *testing.T) {
				t.Parallel()
				if cell := cells[tc.defect]; cell != "" {
					t.Log("its cell of the tables of the commit:", cell)
				}
				check(t, run(tc.seed, of, tc.actions))
			})
		}
	}
}

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
	began, first := time.Now(), cmpint.Or(*from, rand.Uint64N(1<<40))
	seeds := make(chan uint64)
	go func() {
		defer close(seeds)
		for n := uint64(0); more(n, time.Since(began)); n++ {
			seeds <- first + n
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

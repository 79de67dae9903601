// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// simulation is one update in virtual time. The control plane takes as long as earlier updates. After that,
// the nodes of one pool are updated several at a time. Node times are log-normal, and one node takes four
// times as long.
type simulation struct {
	start      time.Time
	planeTakes time.Duration
	slots      int
	// begins and ends hold the times when the update of each node begins and ends.
	begins, ends []time.Time
	end          time.Time
	history      []time.Duration
	past         []updatev1beta1.PastUpdate
}

const (
	simulatedNodes = 12
	straggler      = 4
	planeMedian    = 60 * time.Minute
	nodeMedian     = 11 * time.Minute
)

func logNormal(r *rand.Rand, median time.Duration, sigma float64) time.Duration {
	return time.Duration(float64(median) * math.Exp(sigma*r.NormFloat64())).Truncate(time.Second)
}

// nodeTimes draws the durations of the nodes in one update.
func nodeTimes(r *rand.Rand) []time.Duration {
	took := make([]time.Duration, simulatedNodes)
	for i := range took {
		took[i] = logNormal(r, nodeMedian, 0.25)
	}
	took[r.IntN(len(took))] *= straggler
	return took
}

func newSimulation(seed uint64) *simulation {
	r := rand.New(rand.NewPCG(seed, 20))
	s := &simulation{start: now, slots: 2, planeTakes: logNormal(r, planeMedian, 0.12)}
	for i := range 5 {
		took := logNormal(r, planeMedian, 0.12)
		s.history = append(s.history, took)
		nodes := nodeTimes(r)
		slices.Sort(nodes)
		quantile := func(q float64) int32 { return int32(nodes[int(q*float64(len(nodes)-1))] / time.Second) }
		past := updatev1beta1.PastUpdate{
			ToRelease: fmt.Sprintf("4.20.%d", 5-i), StartedTime: at(before(time.Duration(i+1) * 30 * 24 * time.Hour)),
			Pools: []updatev1beta1.PoolDurations{{
				Name: worker, Nodes: simulatedNodes, LowerSeconds: quantile(0.25), MedianSeconds: quantile(0.5), UpperSeconds: quantile(0.75), LongestSeconds: quantile(1),
			}},
		}
		past.CompletionTime = at(past.StartedTime.Add(took))
		for k := range 33 {
			past.Operators = append(past.Operators, updatev1beta1.OperatorOffset{
				Name: fmt.Sprintf("operator-%02d", k), Seconds: int32(s.operatorOffset(k, took) / time.Second),
			})
		}
		s.past = append(s.past, past)
	}
	free := slices.Repeat([]time.Time{s.start.Add(s.planeTakes)}, s.slots)
	for _, took := range nodeTimes(r) {
		slot := 0
		for i := range free {
			if free[i].Before(free[slot]) {
				slot = i
			}
		}
		s.begins = append(s.begins, free[slot])
		free[slot] = free[slot].Add(took)
		s.ends = append(s.ends, free[slot])
	}
	s.end = slices.MaxFunc(free, time.Time.Compare)
	return s
}

// operatorOffset returns when the k-th operator is updated in an update of the given duration.
func (*simulation) operatorOffset(k int, took time.Duration) time.Duration {
	return took * time.Duration(k+1) / 33
}

// at returns the cluster at the given time.
func (s *simulation) at(t time.Time, previous *updatev1beta1.Assessment) *fixture {
	f := newFixture("4.20.6")
	f.now, f.slots[worker] = t, s.slots
	f.history = f.history[:1]
	f.history[0].StartedTime = at(s.start)
	for i, took := range s.history {
		start := s.past[i].StartedTime.Time
		f.addHistory(s.past[i].ToRelease, start, start.Add(took))
	}
	for k := range f.operators {
		if done := s.start.Add(s.operatorOffset(k, s.planeTakes)); t.Before(done) {
			f.operators[k].Version = "old"
		} else {
			f.operators[k].Progressing.Since = done
		}
	}
	if planeEnd := s.start.Add(s.planeTakes); t.Before(planeEnd) {
		pending(f.plane())
	} else {
		f.history[0].State, f.history[0].CompletionTime = "Completed", new(at(planeEnd))
		reconciled(f.plane())
	}
	s.addNodes(f, t)
	if t.Before(s.end) {
		pending(f.pool())
	} else {
		reconciled(f.pool())
	}
	f.status.PastUpdates, f.in.Previous = s.past, previous
	return f
}

// addNodes adds the nodes in their state at the given time. Each node is drained first and then reboots.
func (s *simulation) addNodes(f *fixture, t time.Time) {
	f.addNodes(worker, simulatedNodes, 0)
	for i := range s.begins {
		name := fmt.Sprintf("%s-%d", worker, i)
		rebootsAt := s.begins[i].Add(s.ends[i].Sub(s.begins[i]) / 3)
		switch {
		case t.Before(s.begins[i]):
		case t.Before(rebootsAt):
			f.drain(name, s.begins[i])
			f.insight(f.pool(), checks.InformerNodes, newInsight(updatev1beta1.LevelStatus, "NodeDraining", "nodes being drained", s.begins[i], ref("Node", "", name)))
		case t.Before(s.ends[i]):
			f.reboot(worker, name)
			f.insight(f.pool(), checks.InformerNodes, newInsight(updatev1beta1.LevelStatus, "NodeRebooting", "nodes rebooting", rebootsAt, ref("Node", "", name)))
		default:
			node := f.node(name)
			for _, key := range []string{"currentConfig", "desiredConfig"} {
				node.Annotations["machineconfiguration.openshift.io/"+key] = "rendered-worker-new"
			}
			node.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: at(s.ends[i])}
		}
	}
}

// outcome measures the quality of the estimates of one update.
type outcome struct {
	firstHit bool
	// hits counts the ranges that contain the real end, out of prints.
	hits, prints int
	// unexplained counts how often the latest end moved to a later time without a reason.
	unexplained, extended int
	widths, middles       []float64
	notes                 []string
}

func (s *simulation) run(tb testing.TB) outcome {
	tb.Helper()
	var o outcome
	var previous *updatev1beta1.Assessment
	for at := s.start.Add(30 * time.Second); at.Before(s.end); at = at.Add(time.Minute) {
		got := s.at(at, previous).assess()
		e := got.Estimate
		if got.State == progressing && (e == nil || e.Earliest == nil || e.Latest == nil) {
			tb.Fatalf("%s: no estimate: %+v", at.Sub(s.start), e)
		}
		if e != nil && e.Earliest != nil {
			hit := !s.end.Before(e.Earliest.Time) && !s.end.After(e.Latest.Time)
			if o.prints == 0 {
				o.firstHit = hit
				o.notes = append(o.notes, fmt.Sprintf("first %s to %s, real %s", e.Earliest.Sub(s.start), e.Latest.Sub(s.start), s.end.Sub(s.start)))
			}
			o.prints++
			if hit {
				o.hits++
			}
			o.widths = append(o.widths, e.Latest.Sub(e.Earliest.Time).Minutes())
			o.middles = append(o.middles, e.Latest.Sub(at).Minutes()/2+e.Earliest.Sub(at).Minutes()/2)
			s.checkExtension(tb, &o, previous, e, at)
		}
		previous = &got
	}
	return o
}

func (s *simulation) checkExtension(tb testing.TB, o *outcome, previous *updatev1beta1.Assessment, e *updatev1beta1.Estimate, at time.Time) {
	tb.Helper()
	if previous == nil || previous.Estimate == nil || previous.Estimate.Latest == nil || !e.Latest.After(previous.Estimate.Latest.Time) {
		return
	}
	o.extended++
	o.notes = append(o.notes, fmt.Sprintf("%s: later by %s: %s", at.Sub(s.start), e.Latest.Sub(previous.Estimate.Latest.Time), e.Extended))
	if e.Extended == "" || e.Extended == previous.Estimate.Extended {
		o.unexplained++
	}
}

// estimateFigures measures the quality of the estimates of ten updates with a history.
type estimateFigures struct {
	first, hits, prints, unexplained int
	width, middle                    float64 // medians in minutes
}

// simulateUpdates simulates ten updates with fixed seeds.
func simulateUpdates(tb testing.TB) estimateFigures {
	tb.Helper()
	var f estimateFigures
	var widths, middles []float64
	for seed := range uint64(10) {
		o := newSimulation(seed).run(tb)
		if o.firstHit {
			f.first++
		}
		f.hits, f.prints, f.unexplained = f.hits+o.hits, f.prints+o.prints, f.unexplained+o.unexplained
		widths, middles = append(widths, o.widths...), append(middles, o.middles...)
		tb.Logf("update %d: real end in the first range: %t, in %d of %d ranges; %v", seed, o.firstHit, o.hits, o.prints, o.notes)
	}
	slices.Sort(widths)
	slices.Sort(middles)
	f.width, f.middle = widths[len(widths)/2], middles[len(middles)/2]
	return f
}

func (f estimateFigures) check(tb testing.TB) {
	tb.Helper()
	if f.first < 8 || f.hits*3 < f.prints*2 {
		tb.Errorf("the real end is in the first range of %d of 10 updates and in %d of %d ranges, not in 8 of 10 and 2 of 3", f.first, f.hits, f.prints)
	}
	if f.width > 2*f.middle {
		tb.Errorf("the median range of %.0fm is longer than twice the median estimate of %.0fm", f.width, f.middle)
	}
	if f.unexplained > 0 {
		tb.Errorf("the latest end moved to a later time %d times without a reason", f.unexplained)
	}
}

// TestEstimates_of_simulated_updates checks the quality of the estimates of ten updates with a history.
func TestEstimates_of_simulated_updates(t *testing.T) {
	t.Parallel()
	simulateUpdates(t).check(t)
}

// BenchmarkEstimates reports the figures that TestEstimates_of_simulated_updates checks.
func BenchmarkEstimates(b *testing.B) {
	b.Log("Method: ten simulated updates with a history of five, fixed seeds, an estimate each minute. The durations of the nodes are log-normal, and one node takes four " +
		"times as long. Limits: the real end in the first range of 8 of 10 updates, and in two thirds of all ranges; a median range of twice the median estimate; " +
		"the latest end is never moved without a shown reason.")
	for b.Loop() {
		f := simulateUpdates(b)
		f.check(b)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(f.first), "first-of-10")
		b.ReportMetric(100*float64(f.hits)/float64(f.prints), "%-of-ranges")
		b.ReportMetric(f.width, "min-range")
		b.ReportMetric(f.middle, "min-estimate")
		b.ReportMetric(float64(f.unexplained), "unexplained")
	}
}

// TestUnchanged_cluster_changes_its_assessment_once_a_minute computes the assessment every five seconds while
// one of two nodes that can be updated in parallel is being drained. Each change would be a write.
func TestUnchanged_cluster_changes_its_assessment_once_a_minute(t *testing.T) {
	t.Parallel()
	for name, cluster := range map[string]func() *fixture{
		"pool that has not begun": progressingCluster, "stuck": stuckDrainCluster, "waiting": waitingCluster, "idle": idleCluster,
		"one node of two": func() *fixture {
			f := nodeUnchanged("NodeDraining", 2*time.Minute)
			f.slots[worker] = 2
			f.status.PastUpdates = pastWorker()
			return f
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := cluster()
			last := f.assess()
			changes := 0
			for range 120 {
				f.now = f.now.Add(5 * time.Second)
				f.in.Previous = &last
				got := f.assess()
				if diff := cmp.Diff(last, got); diff != "" {
					changes++
					t.Log(diff)
				}
				last = got
			}
			if changes > 10 {
				t.Errorf("%d changes in 10 minutes", changes)
			}
		})
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	type want struct {
		from          updatev1beta1.EstimateBase
		reason        string
		min, max      int64
		known         bool
		first, latest time.Duration
	}
	noHistory := func() *fixture {
		f := progressingCluster()
		f.history = f.history[:2]
		f.history[1].CompletionTime = nil
		return f
	}
	for name, tc := range map[string]struct {
		cluster *fixture
		want    want
	}{
		"three updates of the same kind": {progressingCluster(), want{from: updatev1beta1.EstimateFromNow, known: true, first: 27 * time.Minute, latest: 72 * time.Minute}},
		"earlier updates of another kind": {func() *fixture {
			f := progressingCluster()
			for i, version := range []string{"4.20.5", "4.19.9", "4.18.9", "4.17.9", "4.16.9"} {
				f.history[i+1].Version = version
			}
			return f
		}(), want{from: updatev1beta1.EstimateFromNow, known: true, first: 27 * time.Minute, latest: 72 * time.Minute}},
		"no earlier update": {noHistory(), want{from: updatev1beta1.EstimateFromNow, reason: "no earlier update of this cluster is known"}},
		"pool that was never observed": {func() *fixture {
			f := progressingCluster()
			f.status.PastUpdates = nil
			return f
		}(), want{from: updatev1beta1.EstimateFromNow, reason: "no update of pool worker was observed"}},
		"no free place": {func() *fixture {
			f := nodeUnchanged("NodeDraining", time.Minute)
			f.status.PastUpdates = pastWorker()
			f.node("worker-5").Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: at(f.now)}
			return f
		}(), want{from: updatev1beta1.EstimateFromNow, reason: "too many nodes of pool worker are not available"}},
		"paused without an end": {func() *fixture {
			f := pausedCluster(updatev1beta1.ReasonPaused)
			f.status.PastUpdates = pastWorker()
			return f
		}(), want{from: updatev1beta1.EstimateFromRemedy, reason: "the update is paused without an end"}},
		"pool that resumes after the control plane": {windowed(3 * time.Hour), want{
			from: updatev1beta1.EstimateFromNow, known: true, first: 3*time.Hour + 27*time.Minute, latest: 3*time.Hour + 39*time.Minute,
		}},
		"pool that resumes at an unknown time": {windowed(0), want{from: updatev1beta1.EstimateFromNow, reason: "it is not known when pool worker resumes"}},
		"two pools that resume at different times": {func() *fixture {
			f := waitingCluster()
			infra := f.status.WorkerPools[0]
			infra.Name = "infra"
			f.pools, f.status.WorkerPools = append(f.pools, "infra"), append(f.status.WorkerPools, infra)
			f.addNodes("infra", 1, 0)
			f.status.PastUpdates[0].Pools = append(f.status.PastUpdates[0].Pools, updatev1beta1.PoolDurations{Name: "infra", Nodes: 1, LowerSeconds: 600, UpperSeconds: 600, LongestSeconds: 600})
			f.in.Resumes[updatev1beta1.ResourceReference{APIVersion: infra.APIVersion, Kind: infra.Kind, Name: "infra"}] = now.Add(151 * time.Hour)
			return f
		}(), want{from: updatev1beta1.EstimateFromResumption, min: 610 * 60, max: 610 * 60}},
		"stuck":   {stuckDrainCluster(), want{from: updatev1beta1.EstimateFromRemedy, reason: "the update is stuck", min: 72 * 60, max: 104 * 60}},
		"waiting": {waitingCluster(), want{from: updatev1beta1.EstimateFromResumption, min: 108 * 60, max: 156 * 60}},
		"insight that expects a later end": {func() *fixture {
			f := progressingCluster()
			i := newInsight(updatev1beta1.LevelStatus, "Odd", "a database is migrated", before(time.Minute))
			i.Remediation.EstimatedFinish = "5h"
			f.insight(f.pool(), "stranger", i)
			return f
		}(), want{from: updatev1beta1.EstimateFromNow, known: true, first: 27 * time.Minute, latest: 5 * time.Hour}},
		"insight that expects an earlier end": {func() *fixture {
			f := progressingCluster()
			i := newInsight(updatev1beta1.LevelStatus, "Odd", "all is well", before(time.Minute))
			i.Remediation.EstimatedFinish = "2026-11-22T12:01:00Z"
			f.insight(f.pool(), "stranger", i)
			return f
		}(), want{from: updatev1beta1.EstimateFromNow, known: true, first: 27 * time.Minute, latest: 72 * time.Minute}},
		"insight that expects an absurd end": {func() *fixture {
			f := progressingCluster()
			i := newInsight(updatev1beta1.LevelStatus, "Odd", "never", before(time.Minute))
			i.Remediation.EstimatedFinish = "9999-12-31T00:00:00Z"
			f.insight(f.pool(), "stranger", i)
			return f
		}(), want{from: updatev1beta1.EstimateFromNow, known: true, first: 27 * time.Minute, latest: 72 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := tc.cluster.assess().Estimate
			if e == nil {
				t.Fatal("no estimate")
			}
			got := want{from: e.From, reason: e.Reason, min: e.MinSeconds, max: e.MaxSeconds, known: e.Latest != nil}
			if e.Latest != nil {
				got.first, got.latest = e.Earliest.Sub(now), e.Latest.Sub(now)
			}
			if got != tc.want {
				t.Errorf("got %+v, not %+v", got, tc.want)
			}
		})
	}
}

// windowed returns a cluster whose control plane is being updated and whose pool waits for a window that
// begins after the given time. 0 makes the beginning unknown.
func windowed(begins time.Duration) *fixture {
	f := progressingCluster()
	f.pool().Conditions = nil
	pausedBy(f.pool(), updatev1beta1.ReasonAwaitingWindow)
	if begins > 0 {
		f.in.Resumes = map[updatev1beta1.ResourceReference]time.Time{
			{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: worker}: now.Add(begins),
		}
	}
	return f
}

// TestLatest_end_is_later_only_for_a_reason changes the cluster between two assessments.
func TestLatest_end_is_later_only_for_a_reason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*fixture)
		reason string
	}{
		"slower nodes in past updates": {func(f *fixture) { f.status.PastUpdates[0].Pools[0].UpperSeconds *= 3 }, ""},
		"a longer earlier update": {func(f *fixture) {
			f.history[1].CompletionTime = new(at(f.history[1].CompletionTime.Add(30 * time.Minute)))
		}, ""},
		"more nodes":            {func(f *fixture) { f.nodes = nil; f.addNodes(worker, 12, 0) }, "pool worker has 12 nodes instead of 6"},
		"fewer nodes at a time": {func(f *fixture) { f.slots[worker] = 1 }, "pool worker updates 1 node at a time instead of 2"},
		"a window that begins later": {func(f *fixture) {
			later := windowed(3 * time.Hour)
			f.status, f.in.Resumes = later.status, later.in.Resumes
		}, "worker is paused until 2026-11-22 15:00 UTC"},
		"a pool that is new": {func(f *fixture) {
			f.pools = append(f.pools, "infra")
			f.addNodes("infra", 2, 0)
			infra := f.status.WorkerPools[0]
			infra.Name = "infra"
			f.status.WorkerPools = append(f.status.WorkerPools, infra)
			f.status.PastUpdates[0].Pools = append(f.status.PastUpdates[0].Pools, updatev1beta1.PoolDurations{Name: "infra", Nodes: 2, LowerSeconds: 6000, UpperSeconds: 6000, LongestSeconds: 6000})
		}, "pool infra is new"},
		"an update that was stuck": {func(f *fixture) { f.in.Previous.State = stuck; f.status.PastUpdates[0].Pools[0].UpperSeconds *= 3 }, "the update was stuck"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := progressingCluster()
			first := f.assess()
			f.in.Previous = &first
			before := *first.Estimate.Latest
			tc.change(f)
			e := f.assess().Estimate
			if e.Extended != tc.reason || e.Latest.After(before.Time) != (tc.reason != "") {
				t.Errorf("latest %s after %s, extended: %q, not %q", e.Latest, before, e.Extended, tc.reason)
			}
		})
	}
}

// TestLatest_end_is_compared_with_the_last_known_one assesses an update three times: with progress, without
// an end, and with progress on slower nodes.
func TestLatest_end_is_compared_with_the_last_known_one(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		between func(*fixture)
		state   updatev1beta1.AssessmentState
		reason  string
	}{
		"stuck": {func(f *fixture) {
			f.insight(f.plane(), checks.InformerUpgrades, newInsight(updatev1beta1.LevelError, "UpgradeFailed", "upgrades that failed", before(time.Minute), ref("UpgradeJob", "ops", "weekly")))
		}, stuck, "the update was stuck"},
		"data missing": {func(f *fixture) {
			f.facts.Missing = map[checks.FactSource]checks.Missing{checks.SourceNodes: {Message: "no answer"}}
		}, unknown, ""},
		"times per node missing": {func(f *fixture) { f.status.PastUpdates = nil }, progressing, "the end was unknown: no update of pool worker was observed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := progressingCluster().assess()
			f := progressingCluster()
			f.in.Previous = &first
			tc.between(f)
			between := f.assess()
			if between.State != tc.state || between.Estimate.Earliest != nil {
				t.Fatalf("%s, estimate %+v", between.State, between.Estimate)
			}
			f = progressingCluster()
			f.in.Previous = &between
			f.status.PastUpdates[0].Pools[0].UpperSeconds *= 3
			e, before := f.assess().Estimate, first.Estimate.Latest
			if e.Extended != tc.reason || e.Latest.After(before.Time) != (tc.reason != "") {
				t.Errorf("latest %s after %s, extended: %q, not %q", e.Latest, before, e.Extended, tc.reason)
			}
		})
	}
}

// TestEstimate_from_the_nodes_of_this_update checks that the nodes of this update take precedence over the
// last update and are named as the basis.
func TestEstimate_from_the_nodes_of_this_update(t *testing.T) {
	t.Parallel()
	f := poolUnchanged(time.Minute)
	f.status.PastUpdates = pastWorker()
	f.in.Previous.Sections[0].NodeSeconds = []int32{240, 300, 360, 420}
	sections := f.assess().Estimate.Sections
	if got := sections[len(sections)-1]; got.Basis != "5m to 6m per node in this update" {
		t.Errorf("pool worker: %+v", got)
	}
}

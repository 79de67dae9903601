// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"
	ocmv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	handler "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"
	tracker "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// ocmSoak is the soak of a plan for the rollout handler. It counts from the success of a cluster.
const ocmSoak = time.Hour

// ocm returns the clusters that the rollout handler of Open Cluster Management lets begin.
func ocm(t *testing.T, plan rollout.Plan, members []rollout.Member) []string {
	t.Helper()
	begin := []string{}
	for _, c := range ocmDecision(t, plan, members)() {
		if i := slices.IndexFunc(members, func(m rollout.Member) bool { return m.Name == c.ClusterName }); members[i].State == rollout.NotStarted {
			begin = append(begin, c.ClusterName)
		}
	}
	slices.Sort(begin)
	return begin
}

// ocmDecision returns a function that returns the clusters that begin or are in flight, by the rollout
// handler of Open Cluster Management.
func ocmDecision(tb testing.TB, plan rollout.Plan, members []rollout.Member) func() []handler.ClusterRolloutStatus {
	tb.Helper()
	handler.RolloutClock = clocktesting.NewFakeClock(now)
	groups := tracker.ClusterGroupsMap{}
	var statuses []handler.ClusterRolloutStatus
	for i := range members {
		m := &members[i]
		key := tracker.GroupKey{GroupIndex: int32(m.Group)}
		if groups[key] == nil {
			groups[key] = sets.New[string]()
		}
		if m.DeselectedSince.IsZero() {
			groups[key].Insert(m.Name)
		}
		status := handler.ClusterRolloutStatus{ClusterName: m.Name, GroupKey: key, LastTransitionTime: new(metav1.NewTime(now.Add(-24 * time.Hour)))}
		switch m.State {
		case rollout.NotStarted:
			status.Status = handler.ToApply
		case rollout.Complete:
			status.Status = handler.Succeeded
			if !m.SoakedUntil.IsZero() {
				status.LastTransitionTime = new(metav1.NewTime(m.SoakedUntil.Add(-ocmSoak)))
			}
		case rollout.Failed:
			status.Status = handler.Failed
		case rollout.Initialized, rollout.PartialUpgrade:
			status.Status, status.LastTransitionTime = handler.Progressing, new(metav1.NewTime(now))
		}
		statuses = append(statuses, status)
	}
	statusOf := func(string, struct{}) (handler.ClusterRolloutStatus, error) {
		return handler.ClusterRolloutStatus{}, nil
	}
	rollouts, err := handler.NewRolloutHandler(tracker.NewPlacementDecisionClustersTrackerWithGroups(nil, nil, groups), statusOf)
	if err != nil {
		tb.Fatal(err)
	}
	strategy := ocmStrategy(plan)
	return func() []handler.ClusterRolloutStatus {
		_, result, err := rollouts.GetRolloutCluster(strategy, statuses)
		if err != nil {
			tb.Fatal(err)
		}
		return result.ClustersToRollout
	}
}

// ocmStrategy returns a plan in the terms of Open Cluster Management. A failure is final there only once a
// deadline is over.
func ocmStrategy(plan rollout.Plan) ocmv1alpha1.RolloutStrategy {
	config := ocmv1alpha1.RolloutConfig{ProgressDeadline: "1h", MinSuccessTime: metav1.Duration{Duration: ocmSoak}}
	if plan.MaxFailures != nil {
		config.MaxFailures = *plan.MaxFailures
	}
	concurrency := intstr.IntOrString{}
	if plan.MaxConcurrency != nil {
		concurrency = *plan.MaxConcurrency
	}
	switch plan.Type {
	case rollout.ProgressivePerGroup:
		return ocmv1alpha1.RolloutStrategy{Type: ocmv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &ocmv1alpha1.RolloutProgressivePerGroup{RolloutConfig: config}}
	case rollout.All:
		return ocmv1alpha1.RolloutStrategy{Type: ocmv1alpha1.All, All: &ocmv1alpha1.RolloutAll{RolloutConfig: config}}
	case rollout.Progressive:
	}
	return ocmv1alpha1.RolloutStrategy{
		Type:        ocmv1alpha1.Progressive,
		Progressive: &ocmv1alpha1.RolloutProgressive{RolloutConfig: config, MaxConcurrency: concurrency},
	}
}

// ours returns the clusters that Decide lets begin.
func ours(plan rollout.Plan, members []rollout.Member) []string {
	begin := append([]string{}, rollout.Decide(plan, members, now).Admit...)
	slices.Sort(begin)
	return begin
}

// TestDecide_agrees_with_OCM compares the clusters that begin with the rollout handler's, for fleets in which none of
// the differences on the page matters.
func TestDecide_agrees_with_OCM(t *testing.T) {
	admitted := 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		n := 1 + random.IntN(30)
		plan := rollout.Plan{MaxConcurrency: number(int32(1 + random.IntN(n))), MaxFailures: number(int32(n))}
		if random.IntN(4) == 0 {
			plan.MaxConcurrency = percent(fmt.Sprintf("%d%%", 1+random.IntN(100)))
		}
		members, begun := make([]rollout.Member, n), random.IntN(n+1)
		for i := range members {
			m := &members[i]
			m.Name, m.State = fmt.Sprintf("c%02d", i), rollout.NotStarted
			switch kind := random.IntN(3); {
			case i >= begun: // clusters begin in their order
			case kind == 0:
				m.State = rollout.PartialUpgrade
			case kind == 1:
				m.State, m.SoakedUntil = rollout.Complete, now.Add(time.Duration(random.IntN(120)-60)*time.Minute/2)
			default:
				m.State = rollout.Complete
			}
		}
		want := ocm(t, plan, members)
		if diff := cmp.Diff(want, ours(plan, members)); diff != "" {
			t.Fatalf("seed %d, concurrency %s, %+v: begin (-OCM +Decide):\n%s", seed, plan.MaxConcurrency, members, diff)
		}
		admitted += len(want)
	}
	if admitted < 2000 {
		t.Errorf("only %d clusters begin", admitted)
	}
}

// states returns members in these states, one letter each: n, i (in flight), c, f.
func states(letters string) []rollout.Member {
	byLetter := map[rune]rollout.MemberState{'n': rollout.NotStarted, 'i': rollout.PartialUpgrade, 'c': rollout.Complete, 'f': rollout.Failed}
	var members []rollout.Member
	for i, letter := range letters {
		members = append(members, rollout.Member{Name: fmt.Sprintf("c%d", i), State: byLetter[letter]})
	}
	return members
}

// grouped sets the groups of members.
func grouped(members []rollout.Member, groups ...int) []rollout.Member {
	for i := range members {
		members[i].Group = groups[i]
	}
	return members
}

// change changes the first member.
func change(members []rollout.Member, edit func(*rollout.Member)) []rollout.Member {
	edit(&members[0])
	return members
}

// TestDifferences_from_OCM has an example of each row of the table on the page. Both sides are checked: it also fails
// for a later release of the handler that decides as Decide does.
func TestDifferences_from_OCM(t *testing.T) {
	cases := map[string]struct {
		plan      rollout.Plan
		members   []rollout.Member
		ocm, ours string
	}{
		"failures come later in the list than clusters that could begin": {
			rollout.Plan{MaxConcurrency: number(2), MaxFailures: number(0)}, states("nnf"), "c0 c1", "",
		},
		"clusters in flight come later in the list than clusters that could begin": {
			rollout.Plan{MaxConcurrency: number(2), MaxFailures: number(3)}, states("nni"), "c0 c1", "c0",
		},
		"`maxFailures` above the number of clusters": {
			rollout.Plan{MaxConcurrency: number(3), MaxFailures: number(9)}, states("fnn"), "", "c1 c2",
		},
		"`maxFailures` absent":    {rollout.Plan{MaxConcurrency: number(3)}, states("fnn"), "", "c1 c2"},
		"`maxConcurrency` absent": {rollout.Plan{}, states("nnn"), "c0 c1 c2", "c0"},
		"`ProgressivePerGroup`": {
			rollout.Plan{Type: rollout.ProgressivePerGroup, MaxConcurrency: number(1)}, grouped(states("nnn"), 0, 0, 1), "c0 c1", "c0",
		},
		"order of clusters with `Progressive`": {rollout.Plan{MaxConcurrency: number(1)}, grouped(states("nn"), 1, 0), "c0", "c1"},
		"a cluster leaves the selection": {
			rollout.Plan{MaxConcurrency: number(1)}, change(states("inn"), func(m *rollout.Member) { m.DeselectedSince = now }), "c1", "",
		},
		"cleanup after a failure": {
			rollout.Plan{MaxConcurrency: number(1), MaxFailures: number(2)}, change(states("fn"), func(m *rollout.Member) { m.CleaningUp = true }), "c1", "",
		},
	}
	for name, tc := range cases {
		if got := strings.Join(ocm(t, tc.plan, tc.members), " "); got != tc.ocm {
			t.Errorf("%s: by the handler %q begin, not %q", name, got, tc.ocm)
		}
		if got := strings.Join(ours(tc.plan, tc.members), " "); got != tc.ours {
			t.Errorf("%s: %q begin, not %q", name, got, tc.ours)
		}
	}
	page, err := os.ReadFile("../../docs/concepts/fleet-rollout.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| case | its handler | here |\n|---|---|---|\n")
	documented := map[string]bool{}
	for line := range strings.Lines(table) {
		if name, _, is := strings.Cut(strings.TrimPrefix(line, "| "), " | "); is {
			documented[name] = true
		}
	}
	for name := range cases {
		if !documented[name] {
			t.Errorf("the page lacks the case %q", name)
		}
		delete(documented, name)
	}
	// They concern what Decide is not called with: the schema refuses zero, canaries and the soak have no
	// counterpart in the input of the handler.
	want := []string{"`maxConcurrency` of zero", "clusters that must succeed first", "the start of the soak is not known"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("cases without an example (-want +got):\n%s", diff)
	}
}

// BenchmarkGetRolloutCluster measures the decision of Open Cluster Management for the fleet of BenchmarkDecide.
func BenchmarkGetRolloutCluster(b *testing.B) {
	decide := ocmDecision(b, rollout.Plan{Type: rollout.Progressive, MaxConcurrency: number(fleetInFlight), MaxFailures: percent("2%")}, fleet())
	b.ReportAllocs()
	for b.Loop() {
		if clusters := decide(); len(clusters) == 0 {
			b.Fatal("no cluster begins")
		}
	}
}

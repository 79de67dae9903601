// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func number(n int32) *intstr.IntOrString { return new(intstr.FromInt32(n)) }

func percent(s string) *intstr.IntOrString { return new(intstr.FromString(s)) }

// at returns the time in that many minutes.
func at(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }

// members returns its arguments.
func members(list ...rollout.Member) []rollout.Member { return list }

func TestDecide(t *testing.T) {
	t.Parallel()
	const (
		n = rollout.NotStarted
		i = rollout.Initialized
		p = rollout.PartialUpgrade
		c = rollout.Complete
		f = rollout.Failed
	)
	for _, tt := range []struct {
		name    string
		plan    rollout.Plan
		members []rollout.Member
		admit   []string
		reason  string
		check   func(t *testing.T, d rollout.Decision)
	}{
		// Rule 1: order.
		{
			name:    "order is canaries, groups, names, hub",
			plan:    rollout.Plan{Type: rollout.All},
			members: members(rollout.Member{Name: "b", State: n}, rollout.Member{Name: "a", Group: 1, State: n}, rollout.Member{Name: "c", State: n}),
			admit:   []string{"b", "c", "a"},
		},
		{
			name:    "hub waits for all other slots",
			plan:    rollout.Plan{MaxConcurrency: number(5)},
			members: members(rollout.Member{Name: "hub", Hub: true, State: n}, rollout.Member{Name: "z", Group: 9, State: p}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
		},
		{
			name:    "hub waits for a cleanup",
			plan:    rollout.Plan{MaxConcurrency: number(5)},
			members: members(rollout.Member{Name: "hub", Hub: true, State: n}, rollout.Member{Name: "z", State: f, CleaningUp: true}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
		},
		{
			name:    "hub begins when it is alone",
			plan:    rollout.Plan{MaxConcurrency: number(5)},
			members: members(rollout.Member{Name: "hub", Hub: true, State: n}, rollout.Member{Name: "z", State: c}),
			admit:   []string{"hub"},
		},
		{
			name:    "nothing begins beside the hub",
			plan:    rollout.Plan{MaxConcurrency: number(5)},
			members: members(rollout.Member{Name: "hub", Hub: true, State: p}, rollout.Member{Name: "late", State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
		},
		{
			name:    "hub is no canary",
			plan:    rollout.Plan{RequireCanaries: true},
			members: members(rollout.Member{Name: "hub", Hub: true, Canary: true, State: n}, rollout.Member{Name: "z", State: n}),
			reason:  fleetv1beta1.ReasonCanaryNotSelected,
		},
		{
			name:    "hub that the canary selector selects is last",
			plan:    rollout.Plan{MaxConcurrency: number(5)},
			members: members(rollout.Member{Name: "hub", Hub: true, Canary: true, State: n}, rollout.Member{Name: "z", State: n}),
			admit:   []string{"z"},
		},
		// Rule 2: canaries.
		{
			name:    "canaries that are missing stop everything",
			plan:    rollout.Plan{RequireCanaries: true},
			members: members(rollout.Member{Name: "a", State: n}),
			reason:  fleetv1beta1.ReasonCanaryNotSelected,
		},
		{
			name:    "canaries obey the concurrency",
			plan:    rollout.Plan{RequireCanaries: true, MaxConcurrency: number(1)},
			members: members(rollout.Member{Name: "a", Canary: true, State: n}, rollout.Member{Name: "b", Canary: true, State: n}),
			admit:   []string{"a"},
		},
		{
			name:    "canaries in flight hold the others",
			plan:    rollout.Plan{RequireCanaries: true, MaxConcurrency: number(9)},
			members: members(rollout.Member{Name: "z", Canary: true, State: p}, rollout.Member{Name: "a", State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
		},
		{
			name:    "canaries that soak hold the others",
			plan:    rollout.Plan{RequireCanaries: true, MaxConcurrency: number(9)},
			members: members(rollout.Member{Name: "z", Canary: true, State: c, SoakedUntil: at(30)}, rollout.Member{Name: "a", State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
			check:   next(at(30)),
		},
		{
			name:    "canaries that have soaked let the others begin",
			plan:    rollout.Plan{RequireCanaries: true, MaxConcurrency: number(9)},
			members: members(rollout.Member{Name: "z", Canary: true, State: c, SoakedUntil: now}, rollout.Member{Name: "a", State: n}),
			admit:   []string{"a"},
		},
		{
			name:    "canary that failed stops the rollout, the other canaries too",
			plan:    rollout.Plan{RequireCanaries: true, MaxConcurrency: number(9)},
			members: members(rollout.Member{Name: "y", Canary: true, State: f}, rollout.Member{Name: "z", Canary: true, State: n}),
			reason:  fleetv1beta1.ReasonCanaryFailed,
		},
		{
			name:    "canary that failed outside the budget stops the rollout",
			plan:    rollout.Plan{MaxFailures: number(5)},
			members: members(rollout.Member{Name: "y", Canary: true, State: f, Exempt: true}, rollout.Member{Name: "a", State: n}),
			reason:  fleetv1beta1.ReasonCanaryFailed,
		},
		// Rule 3: types.
		{
			name:    "progressive fills slots across groups",
			plan:    rollout.Plan{MaxConcurrency: number(3)},
			members: members(rollout.Member{Name: "a", State: p}, rollout.Member{Name: "b", Group: 1, State: n}, rollout.Member{Name: "c", Group: 2, State: n}),
			admit:   []string{"b", "c"},
		},
		{
			name:    "per group waits for the group before",
			plan:    rollout.Plan{Type: rollout.ProgressivePerGroup, MaxConcurrency: number(3)},
			members: members(rollout.Member{Name: "a", State: p}, rollout.Member{Name: "b", Group: 1, State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
		},
		{
			name:    "per group waits for the soak of the group before",
			plan:    rollout.Plan{Type: rollout.ProgressivePerGroup, MaxConcurrency: number(3)},
			members: members(rollout.Member{Name: "a", State: c, SoakedUntil: at(1)}, rollout.Member{Name: "b", Group: 1, State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
			check:   next(at(1)),
		},
		{
			name:    "per group goes on after failures",
			plan:    rollout.Plan{Type: rollout.ProgressivePerGroup, MaxConcurrency: number(3)},
			members: members(rollout.Member{Name: "a", State: f}, rollout.Member{Name: "b", Group: 1, State: n}),
			admit:   []string{"b"},
		},
		{
			name:    "all has no limit by default",
			plan:    rollout.Plan{Type: rollout.All},
			members: members(rollout.Member{Name: "a", State: n}, rollout.Member{Name: "b", Group: 1, State: n}),
			admit:   []string{"a", "b"},
		},
		{
			name:    "all obeys a limit",
			plan:    rollout.Plan{Type: rollout.All, MaxConcurrency: number(1)},
			members: members(rollout.Member{Name: "a", State: n}, rollout.Member{Name: "b", Group: 1, State: n}),
			admit:   []string{"a"},
		},
		// Rule 4: slots.
		{
			name:    "slot is held until cleanup is over",
			plan:    rollout.Plan{},
			members: members(rollout.Member{Name: "a", State: f, CleaningUp: true}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
		},
		{
			name:    "retry waits for the cleanup of the attempt before",
			plan:    rollout.Plan{MaxConcurrency: number(2), MaxFailures: number(0)},
			members: members(rollout.Member{Name: "a", Canary: true, State: n, CleaningUp: true}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
		},
		{
			name:    "retry that is cleaned up holds a slot, and no other cluster",
			plan:    rollout.Plan{MaxConcurrency: number(2), MaxFailures: number(0)},
			members: members(rollout.Member{Name: "a", State: n, CleaningUp: true}, rollout.Member{Name: "b", State: n}, rollout.Member{Name: "c", State: n}),
			admit:   []string{"b"},
		},
		{
			name:    "rollout is not finished while the selection is unstable",
			plan:    rollout.Plan{SelectionUnstable: "1 of 2 decisions"},
			members: members(rollout.Member{Name: "a", State: c}),
			reason:  fleetv1beta1.ReasonSelectionUnstable,
		},
		{
			name:    "slot is held until the soak is over",
			plan:    rollout.Plan{},
			members: members(rollout.Member{Name: "a", State: c, SoakedUntil: at(2)}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
			check:   next(at(2)),
		},
		{
			name:    "slot is held by a state of a newer release",
			plan:    rollout.Plan{},
			members: members(rollout.Member{Name: "a", State: "Resting"}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
		},
		{
			name:    "lowered limit interrupts nothing and admits nothing",
			plan:    rollout.Plan{MaxConcurrency: number(1)},
			members: members(rollout.Member{Name: "a", State: p}, rollout.Member{Name: "b", State: i}, rollout.Member{Name: "c", State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
		},
		// Rule 5: the budget.
		{
			name:    "budget admits while failures are tolerated",
			plan:    rollout.Plan{MaxFailures: number(1)},
			members: members(rollout.Member{Name: "a", State: f}, rollout.Member{Name: "b", State: n}),
			admit:   []string{"b"},
		},
		{
			name:    "budget that is exceeded stops admission",
			plan:    rollout.Plan{MaxFailures: number(1)},
			members: members(rollout.Member{Name: "a", State: f}, rollout.Member{Name: "b", State: f}, rollout.Member{Name: "c", State: n}),
			reason:  fleetv1beta1.ReasonMaxFailuresExceeded,
		},
		{
			name:    "budget counts failures behind the members that could begin",
			plan:    rollout.Plan{MaxFailures: number(0)},
			members: members(rollout.Member{Name: "a", State: n}, rollout.Member{Name: "z", Group: 7, State: f}),
			reason:  fleetv1beta1.ReasonMaxFailuresExceeded,
		},
		{
			name:    "budget counts late successes",
			plan:    rollout.Plan{MaxFailures: number(0)},
			members: members(rollout.Member{Name: "a", State: c, LateSuccess: true}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonMaxFailuresExceeded,
		},
		{
			name:    "budget does not count clusters to which nothing was written",
			plan:    rollout.Plan{MaxFailures: number(0)},
			members: members(rollout.Member{Name: "a", State: f, Exempt: true}, rollout.Member{Name: "b", State: n}),
			admit:   []string{"b"},
		},
		{
			name: "budget per group does not add groups",
			plan: rollout.Plan{Type: rollout.ProgressivePerGroup, MaxFailures: number(1)},
			members: members(rollout.Member{Name: "a", State: f}, rollout.Member{Name: "b", Group: 1, State: f},
				rollout.Member{Name: "c", Group: 1, State: n}),
			admit: []string{"c"},
			check: func(t *testing.T, d rollout.Decision) {
				t.Helper()
				if d.Failures != 1 || d.Tolerated != 1 {
					t.Errorf("failures %d of %d, want 1 of 1", d.Failures, d.Tolerated)
				}
			},
		},
		{
			name: "budget per group that is exceeded stops later groups",
			plan: rollout.Plan{Type: rollout.ProgressivePerGroup, MaxFailures: percent("50%")},
			members: members(rollout.Member{Name: "a", State: f}, rollout.Member{Name: "b", State: f},
				rollout.Member{Name: "c", Group: 1, State: n}, rollout.Member{Name: "d", Group: 1, State: n}),
			reason: fleetv1beta1.ReasonMaxFailuresExceeded,
		},
		{
			name:    "no budget tolerates all failures",
			plan:    rollout.Plan{},
			members: members(rollout.Member{Name: "a", State: f}, rollout.Member{Name: "b", State: f}, rollout.Member{Name: "c", State: n}),
			admit:   []string{"c"},
		},
		// Rule 6: numbers.
		{
			name: "percentage rounds up and leaves canaries out",
			plan: rollout.Plan{MaxConcurrency: percent("34%")}, // of 3: 1.02
			members: members(rollout.Member{Name: "z", Canary: true, State: c}, rollout.Member{Name: "a", State: n},
				rollout.Member{Name: "b", State: n}, rollout.Member{Name: "c", State: n}),
			admit: []string{"a", "b"},
		},
		{
			name:    "concurrency is at least 1",
			plan:    rollout.Plan{MaxConcurrency: percent("1%")},
			members: members(rollout.Member{Name: "z", Canary: true, State: n}),
			admit:   []string{"z"},
		},
		{
			name:    "number above the size means all",
			plan:    rollout.Plan{MaxConcurrency: number(100), MaxFailures: number(100)},
			members: members(rollout.Member{Name: "a", State: f}, rollout.Member{Name: "b", State: n}, rollout.Member{Name: "c", State: n}),
			admit:   []string{"b", "c"},
		},
		{name: "zero concurrency is refused", plan: rollout.Plan{MaxConcurrency: number(0)}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonInvalidStrategy},
		{name: "zero percent concurrency is refused", plan: rollout.Plan{MaxConcurrency: percent("0%")}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonInvalidStrategy},
		{name: "negative concurrency is refused", plan: rollout.Plan{MaxConcurrency: number(-1)}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonInvalidStrategy},
		{name: "concurrency above 100 percent is refused", plan: rollout.Plan{MaxConcurrency: percent("101%")}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonInvalidStrategy},
		{name: "budget without a unit is refused", plan: rollout.Plan{MaxFailures: percent("10")}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonInvalidStrategy},
		{name: "negative budget is refused", plan: rollout.Plan{MaxFailures: number(-1)}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonInvalidStrategy},
		// Rule 7: deadlines.
		{
			name:    "deadline that has come counts as a failure at once",
			plan:    rollout.Plan{MaxConcurrency: number(9), MaxFailures: number(0)},
			members: members(rollout.Member{Name: "a", State: p, Deadline: now}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonMaxFailuresExceeded,
			check: func(t *testing.T, d rollout.Decision) {
				t.Helper()
				if diff := cmp.Diff([]string{"a"}, d.TimedOut); diff != "" {
					t.Errorf("timed out (-want +got):\n%s", diff)
				}
			},
		},
		{
			name:    "deadline of a canary that has come stops the rollout",
			plan:    rollout.Plan{MaxConcurrency: number(9)},
			members: members(rollout.Member{Name: "a", Canary: true, State: i, Deadline: at(-1)}, rollout.Member{Name: "b", Canary: true, State: n}),
			reason:  fleetv1beta1.ReasonCanaryFailed,
		},
		{
			name:    "deadline holds its slot until the run has ended",
			plan:    rollout.Plan{MaxConcurrency: number(1)},
			members: members(rollout.Member{Name: "a", State: p, Deadline: at(-1)}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
		},
		{
			name: "next is the earliest deadline, soak end, or window",
			plan: rollout.Plan{MaxConcurrency: number(9), Window: &rollout.Window{Open: true, Until: at(7)}},
			members: members(rollout.Member{Name: "a", State: p, Deadline: at(9)}, rollout.Member{Name: "b", State: p, Deadline: at(5)},
				rollout.Member{Name: "c", State: c, SoakedUntil: at(6)}, rollout.Member{Name: "d", State: n}),
			admit: []string{"d"},
			check: next(at(5)),
		},
		// Rule 8: late joiners.
		{
			name: "late joiner of an earlier group begins before later groups",
			plan: rollout.Plan{Type: rollout.ProgressivePerGroup, MaxConcurrency: number(9)},
			members: members(rollout.Member{Name: "a", State: c}, rollout.Member{Name: "late", State: n},
				rollout.Member{Name: "b", Group: 1, State: p}, rollout.Member{Name: "c", Group: 1, State: n}),
			admit: []string{"late"},
		},
		{
			name: "late canary begins before the others",
			plan: rollout.Plan{MaxConcurrency: number(9)},
			members: members(rollout.Member{Name: "late", Canary: true, State: n}, rollout.Member{Name: "a", State: p},
				rollout.Member{Name: "b", State: n}),
			admit: []string{"late"},
		},
		// Rule 9: removals.
		{
			name:    "deselected cluster is removed after a minute",
			plan:    rollout.Plan{},
			members: members(rollout.Member{Name: "a", State: n, DeselectedSince: at(-1)}, rollout.Member{Name: "b", State: n}),
			admit:   []string{"b"},
			check: func(t *testing.T, d rollout.Decision) {
				t.Helper()
				if diff := cmp.Diff([]string{"a"}, d.Removed); diff != "" {
					t.Errorf("removed (-want +got):\n%s", diff)
				}
			},
		},
		{
			name:    "deselected cluster is neither removed nor admitted before",
			plan:    rollout.Plan{},
			members: members(rollout.Member{Name: "a", State: n, DeselectedSince: at(-1).Add(time.Second)}),
			reason:  fleetv1beta1.ReasonSelectionUnstable,
			check:   next(now.Add(time.Second)),
		},
		{
			name:    "deselected canary holds the others until it is removed",
			plan:    rollout.Plan{MaxConcurrency: number(9)},
			members: members(rollout.Member{Name: "a", Canary: true, State: n, DeselectedSince: now}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonSelectionUnstable,
		},
		{
			name:    "deselected cluster is not removed by an inconsistent read",
			plan:    rollout.Plan{SelectionUnstable: "3 of 5 decisions"},
			members: members(rollout.Member{Name: "a", State: n, DeselectedSince: at(-9)}),
			reason:  fleetv1beta1.ReasonSelectionUnstable,
			check: func(t *testing.T, d rollout.Decision) {
				t.Helper()
				if len(d.Removed) > 0 {
					t.Errorf("removed %v", d.Removed)
				}
			},
		},
		{
			name:    "deselected cluster that has begun stays",
			plan:    rollout.Plan{},
			members: members(rollout.Member{Name: "a", State: p, DeselectedSince: at(-9)}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
		},
		{
			name:    "deselected canary that failed stops the rollout",
			plan:    rollout.Plan{RequireCanaries: true},
			members: members(rollout.Member{Name: "a", Canary: true, State: f, DeselectedSince: at(-9)}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonCanaryFailed,
		},
		{
			name:    "deselected cluster that failed counts against the budget",
			plan:    rollout.Plan{MaxFailures: number(0)},
			members: members(rollout.Member{Name: "a", State: f, DeselectedSince: at(-9)}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonMaxFailuresExceeded,
		},
		{
			name:    "failure that a person has forgotten does not count",
			plan:    rollout.Plan{MaxFailures: number(0)},
			members: members(rollout.Member{Name: "a", Canary: true, State: f, Forgotten: true}, rollout.Member{Name: "b", State: n}),
			admit:   []string{"b"},
		},
		{
			name:    "deselected failure that a person has forgotten is no member",
			plan:    rollout.Plan{MaxFailures: number(0)},
			members: members(rollout.Member{Name: "a", State: f, Forgotten: true, DeselectedSince: at(-9)}, rollout.Member{Name: "b", State: n}),
			admit:   []string{"b"},
			check: func(t *testing.T, d rollout.Decision) {
				t.Helper()
				if diff := cmp.Diff([]string{"a"}, d.Ignored); diff != "" {
					t.Error(diff)
				}
			},
		},
		{
			name:    "deselected cluster to which nothing was written is no member",
			plan:    rollout.Plan{},
			members: members(rollout.Member{Name: "a", State: f, Exempt: true, DeselectedSince: at(-9)}, rollout.Member{Name: "b", State: n}),
			admit:   []string{"b"},
			check: func(t *testing.T, d rollout.Decision) {
				t.Helper()
				if diff := cmp.Diff([]string{"a"}, d.Ignored); diff != "" {
					t.Error(diff)
				}
			},
		},
		{
			name:    "failures of clusters that are gone count against the budget",
			plan:    rollout.Plan{MaxFailures: number(1), Departed: rollout.Departed{Failures: map[int]int{3: 1}}},
			members: members(rollout.Member{Name: "a", State: f}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonMaxFailuresExceeded,
		},
		{
			name:    "failures of clusters that are gone count against the budget of their group",
			plan:    rollout.Plan{Type: rollout.ProgressivePerGroup, MaxFailures: number(1), Departed: rollout.Departed{Failures: map[int]int{0: 1}}},
			members: members(rollout.Member{Name: "a", State: f, Group: 1}, rollout.Member{Name: "b", State: n, Group: 1}),
			admit:   []string{"b"},
		},
		{
			name:    "canary that is gone and was not complete stops the rollout",
			plan:    rollout.Plan{Departed: rollout.Departed{Canaries: 1, Failures: map[int]int{0: 1}}},
			members: members(rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonCanaryFailed,
		},
		{
			name:    "late success of a canary lifts no stop",
			plan:    rollout.Plan{},
			members: members(rollout.Member{Name: "a", Canary: true, State: c, LateSuccess: true}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonCanaryFailed,
		},
		{
			name:    "stop that the status shows lasts although the budget would tolerate the failures",
			plan:    rollout.Plan{MaxFailures: number(5), Stop: rollout.Stop{Reason: fleetv1beta1.ReasonMaxFailuresExceeded, Message: "3 clusters failed"}},
			members: members(rollout.Member{Name: "a", State: f}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonMaxFailuresExceeded,
			check: func(t *testing.T, d rollout.Decision) {
				t.Helper()
				if !d.MaxFailuresExceeded || d.UntilAttempt.Message != "3 clusters failed" {
					t.Errorf("%+v", d)
				}
			},
		},
		{
			name:    "stop lasts behind a reason that comes first",
			plan:    rollout.Plan{Cancelled: true},
			members: members(rollout.Member{Name: "a", Canary: true, State: f}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonCancelled,
			check: func(t *testing.T, d rollout.Decision) {
				t.Helper()
				if d.UntilAttempt.Reason != fleetv1beta1.ReasonCanaryFailed {
					t.Errorf("%+v", d)
				}
			},
		},
		{
			name:    "deselected cluster that failed holds its slot until cleanup is over",
			plan:    rollout.Plan{},
			members: members(rollout.Member{Name: "a", State: f, CleaningUp: true, DeselectedSince: at(-9)}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
		},
		{
			name:    "deselected cluster of an earlier attempt holds its slot until cleanup is over",
			plan:    rollout.Plan{},
			members: members(rollout.Member{Name: "a", State: n, CleaningUp: true, DeselectedSince: at(-9)}, rollout.Member{Name: "b", State: n}),
			reason:  fleetv1beta1.ReasonNoFreeSlot,
			check: func(t *testing.T, d rollout.Decision) {
				t.Helper()
				if diff := cmp.Diff([]string{"a"}, d.Ignored); diff != "" || len(d.Removed) > 0 {
					t.Errorf("removed %v, ignored (-want +got):\n%s", d.Removed, diff)
				}
			},
		},
		// Rule 10: what holds admission.
		{name: "paused", plan: rollout.Plan{Paused: true}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonPaused},
		{name: "cancelled", plan: rollout.Plan{Cancelled: true, Paused: true}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonCancelled},
		{name: "dry run", plan: rollout.Plan{DryRun: true}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonDryRun},
		{name: "records lost", plan: rollout.Plan{RecordsLost: "1 lost"}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonRecordsLost},
		{name: "records lost of a rollout that looks finished", plan: rollout.Plan{RecordsLost: "1 lost"}, members: members(rollout.Member{Name: "a", State: c}), reason: fleetv1beta1.ReasonRecordsLost},
		{name: "hub without an image", plan: rollout.Plan{NoOperatorImage: "no --image"}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonNoOperatorImage},
		{name: "dependency that is missing", plan: rollout.Plan{DependencyMissing: "hubs does not exist"}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonDependencyMissing},
		{name: "dependency that is incomplete", plan: rollout.Plan{DependencyIncomplete: "hubs is not complete"}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonDependencyIncomplete},
		{
			name:    "outside the window",
			plan:    rollout.Plan{Window: &rollout.Window{Until: at(60)}},
			members: members(rollout.Member{Name: "a", State: n}),
			reason:  fleetv1beta1.ReasonOutsideWindow,
			check:   next(at(60)),
		},
		{name: "window that never opens", plan: rollout.Plan{Window: &rollout.Window{}}, members: members(rollout.Member{Name: "a", State: n}), reason: fleetv1beta1.ReasonOutsideWindow},
		{name: "window that is open", plan: rollout.Plan{Window: &rollout.Window{Open: true}}, members: members(rollout.Member{Name: "a", State: n}), admit: []string{"a"}},
		{
			name:    "held cluster is skipped",
			plan:    rollout.Plan{},
			members: members(rollout.Member{Name: "a", State: n, Hold: "audit"}, rollout.Member{Name: "b", State: n}),
			admit:   []string{"b"},
		},
		{
			name:    "held cluster holds the next group",
			plan:    rollout.Plan{Type: rollout.ProgressivePerGroup},
			members: members(rollout.Member{Name: "a", State: n, Hold: "audit"}, rollout.Member{Name: "b", Group: 1, State: n}),
			reason:  fleetv1beta1.ReasonHeld,
		},
		// The end.
		{name: "finished", plan: rollout.Plan{Paused: true}, members: members(rollout.Member{Name: "a", State: c}, rollout.Member{Name: "b", State: p}), reason: fleetv1beta1.ReasonFinished},
		{name: "no members", plan: rollout.Plan{}, reason: fleetv1beta1.ReasonNoClustersSelected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := rollout.Decide(tt.plan, tt.members, now)
			if diff := cmp.Diff(tt.admit, d.Admit); diff != "" {
				t.Errorf("admitted (-want +got):\n%s", diff)
			}
			if d.Stopped.Reason != tt.reason {
				t.Errorf("stopped by %+v, want %q", d.Stopped, tt.reason)
			}
			if (d.Stopped.Message == "") != (tt.reason == "") {
				t.Errorf("stopped by %+v", d.Stopped)
			}
			if tt.check != nil {
				tt.check(t, d)
			}
		})
	}
}

// next returns a check of the time of the next decision.
func next(want time.Time) func(*testing.T, rollout.Decision) {
	return func(t *testing.T, d rollout.Decision) {
		t.Helper()
		if !d.Next.Equal(want) {
			t.Errorf("next decision at %s, want %s", d.Next, want)
		}
	}
}

// A canary that cannot begin stops the rollout after the stall timeout, which is a time to decide again only while the
// rollout goes on.
func TestDecide_canary_that_cannot_begin(t *testing.T) {
	t.Parallel()
	due := now.Add(45 * time.Minute)
	members := []rollout.Member{
		{Name: "a", Canary: true, State: rollout.NotStarted, Hold: "held", HeldSince: now},
		{Name: "b", State: rollout.NotStarted},
	}
	for name, tc := range map[string]struct {
		edit func(*rollout.Plan)
		next time.Time
		stop string
	}{
		"goes on":   {func(*rollout.Plan) {}, due, fleetv1beta1.ReasonCanaryNotAvailable},
		"paused":    {func(p *rollout.Plan) { p.Paused = true }, time.Time{}, ""},
		"cancelled": {func(p *rollout.Plan) { p.Cancelled = true }, time.Time{}, ""},
		"dry run":   {func(p *rollout.Plan) { p.DryRun = true }, time.Time{}, ""},
		"no image":  {func(p *rollout.Plan) { p.NoOperatorImage = "the hub has none" }, time.Time{}, ""},
		"gone":      {func(p *rollout.Plan) { p.CanariesGone = 1 }, time.Time{}, ""}, // another canary
		"stopped":   {func(p *rollout.Plan) { p.Stop = rollout.Stop{Reason: "CanaryFailed"} }, time.Time{}, "CanaryFailed"},
	} {
		plan := rollout.Plan{RequireCanaries: true, StallTimeout: 45 * time.Minute}
		tc.edit(&plan)
		if d := rollout.Decide(plan, members, now); !d.Next.Equal(tc.next) {
			t.Errorf("%s: the next decision is at %s, want %s", name, d.Next, tc.next)
		}
		if d := rollout.Decide(plan, members, due); d.UntilAttempt.Reason != tc.stop {
			t.Errorf("%s: stopped by %q, want %q", name, d.UntilAttempt.Reason, tc.stop)
		}
	}
}

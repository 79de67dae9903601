// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"time"
)

// Decide lets members begin now, and says when to decide again. Members in the order of Compare are not sorted again: the
// cost is linear in their number.
func Decide(plan Plan, members []Member, now time.Time) Decision {
	if !slices.IsSortedFunc(members, compare) {
		members = slices.Clone(members)
		slices.SortFunc(members, compare)
	}
	t := count(&plan, members, now)
	t.decision.UntilAttempt = t.untilAttempt(&plan)
	t.decision.Stopped = t.stopped(&plan, now)
	if t.decision.Stopped.IsZero() {
		t.admit(&plan, members)
	}
	return t.decision
}

// Compare orders members as they are admitted: canaries, decision groups, names, and the hub last.
func Compare(a, b Member) int { return compare(a, b) }

func compare(a, b Member) int {
	if c := cmp.Compare(rank(&a), rank(&b)); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Group, b.Group); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

// Ranks of members.
const (
	rankCanary = iota
	rankOther
	rankHub
)

func rank(m *Member) int {
	switch {
	case m.Hub:
		return rankHub
	case m.IsCanary():
		return rankCanary
	}
	return rankOther
}

// stage is a set of members that begin without waiting for each other. Stages begin in order.
type stage struct{ rank, group int }

func stageOf(plan *Plan, m *Member) stage {
	s := stage{rank: rank(m)}
	if s.rank == rankOther && plan.Type == ProgressivePerGroup {
		s.group = m.Group
	}
	return s
}

// budget counts failures, of all members or of a group.
type budget struct{ failures, size int }

// tally counts the members before admission.
type tally struct {
	decision Decision
	total    int // members that count
	pending  int // members that count and have not begun
	canaries int // with those that a person waives
	size     int // members that count, without canaries
	// stage is the earliest unfinished stage, and unfinished is whether there is one.
	stage      stage
	unfinished bool
	inStage    int             // unfinished members of that stage that have begun or are cleaned up
	hubInUse   bool            // the hub holds a slot
	budgets    map[int]*budget // by group if each has its own, otherwise all at 0
	worst      int             // the group with the least budget left
	failed     []string        // canaries
	held       heldMember
	missing    []string  // canaries that could not begin for too long
	missingFor string    // why the first of them could not
	missingAt  time.Time // when the first of the others could not for too long
	admissible int       // members of the stage that may begin if there is a slot
	deselected int       // members of the stage whose removal is not confirmed
}

// heldMember is the first member of the stage that must not begin itself.
type heldMember struct {
	count      int
	name, hold string
}

// count counts the members, and notes the earliest unfinished stage.
func count(plan *Plan, members []Member, now time.Time) *tally {
	t := &tally{budgets: map[int]*budget{}}
	for i := range members {
		m := &members[i]
		if m.holdsSlot(now) {
			t.decision.InUse++
			t.hubInUse = t.hubInUse || m.Hub
		}
		if !t.counts(plan, m, now) {
			continue
		}
		t.total++
		b := t.budget(plan, m.Group)
		if m.IsCanary() {
			t.canaries++
		} else {
			t.canaries += waived(m)
			t.size++
			b.size++
		}
		failed := m.hasFailed(t.timing(m, now))
		if failed && !m.Exempt {
			b.failures++
		}
		if failed && m.IsCanary() {
			t.failed = append(t.failed, m.Name)
		}
		t.observeStage(plan, m, now)
	}
	for group, failures := range plan.Departed.Failures {
		t.budget(plan, group).failures += failures
	}
	t.limits(plan)
	return t
}

// counts reports whether the member counts, and lists it if it is removed or ignored.
func (t *tally) counts(plan *Plan, m *Member, now time.Time) bool {
	if m.DeselectedSince.IsZero() || !m.mayLeave() {
		return true
	}
	removal := m.DeselectedSince.Add(RemovalDelay)
	switch {
	case now.Before(removal):
		t.next(removal)
		return true
	case plan.SelectionUnstable != "":
		return true
	case m.State == NotStarted && !m.CleaningUp:
		t.decision.Removed = append(t.decision.Removed, m.Name)
	default:
		t.decision.Ignored = append(t.decision.Ignored, m.Name)
	}
	return false
}

// budget returns the budget of a group.
func (t *tally) budget(plan *Plan, group int) *budget {
	if plan.Type != ProgressivePerGroup {
		group = 0
	}
	b := t.budgets[group]
	if b == nil {
		b = &budget{}
		t.budgets[group] = b
	}
	return b
}

// timing reports whether the member is past its deadline, and notes when it will change by itself.
func (t *tally) timing(m *Member, now time.Time) bool {
	switch {
	case m.soaking(now):
		t.next(m.SoakedUntil)
	case m.InFlight() && !m.Deadline.IsZero():
		if !now.Before(m.Deadline) {
			t.decision.TimedOut = append(t.decision.TimedOut, m.Name)
			return true
		}
		t.next(m.Deadline)
	}
	return false
}

// observeStage notes what the earliest unfinished stage consists of. Members come in their order.
func (t *tally) observeStage(plan *Plan, m *Member, now time.Time) {
	if m.State == NotStarted {
		t.pending++
	}
	if m.finished(now) {
		return
	}
	s := stageOf(plan, m)
	if !t.unfinished {
		t.stage, t.unfinished = s, true
	}
	if s != t.stage {
		return
	}
	switch {
	case m.State != NotStarted || m.CleaningUp:
		t.inStage++
	case !m.DeselectedSince.IsZero() && m.mayLeave():
		t.deselected++
	case m.Hold != "":
		if t.held.count++; t.held.count == 1 {
			t.held.name, t.held.hold = m.Name, m.Hold
		}
		t.observeHeld(plan, m, now)
	default:
		t.admissible++
	}
}

// observeHeld notes whether a canary could not begin for too long.
func (t *tally) observeHeld(plan *Plan, m *Member, now time.Time) {
	if !m.IsCanary() || plan.StallTimeout <= 0 || m.HeldSince.IsZero() {
		return
	}
	switch until := m.HeldSince.Add(plan.StallTimeout); {
	case !now.Before(until):
		t.missing = append(t.missing, m.Name)
		t.missingFor = cmp.Or(t.missingFor, m.Hold)
	case t.missingAt.IsZero(), until.Before(t.missingAt):
		t.missingAt = until
	}
}

func waived(m *Member) int {
	if m.Canary && !m.Hub && m.Waived {
		return 1
	}
	return 0
}

// next notes when the decision changes by itself.
func (t *tally) next(at time.Time) {
	if t.decision.Next.IsZero() || at.Before(t.decision.Next) {
		t.decision.Next = at
	}
}

// admit names the members of the earliest unfinished stage that get the free slots.
func (t *tally) admit(plan *Plan, members []Member) {
	free := t.free()
	first, _ := slices.BinarySearchFunc(members, t.stage, func(m Member, s stage) int {
		return compareStages(stageOf(plan, &m), s)
	})
	for i := first; i < len(members) && free > 0 && stageOf(plan, &members[i]) == t.stage; i++ {
		m := &members[i]
		if m.State == NotStarted && !m.CleaningUp && m.DeselectedSince.IsZero() && m.Hold == "" {
			t.decision.Admit = append(t.decision.Admit, m.Name)
			free--
		}
	}
}

func compareStages(a, b stage) int {
	if c := cmp.Compare(a.rank, b.rank); c != 0 {
		return c
	}
	return cmp.Compare(a.group, b.group)
}

// free returns how many slots are free for the earliest unfinished stage. The hub is alone: it
// waits for all slots, and nothing begins while it holds one.
func (t *tally) free() int {
	alone := t.hubInUse || t.stage.rank == rankHub && t.decision.InUse > 0
	switch {
	case alone:
		return 0
	case t.decision.Slots == Unlimited:
		return t.admissible
	}
	return max(0, t.decision.Slots-t.decision.InUse)
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// The length of a history.
const (
	historyMembers = 20
	historyEvents  = 60
)

// history is a fleet with random events. After each event it decides, compares the
// decision with the model, checks the invariants, and applies the decision.
type history struct {
	random  *rand.Rand
	plan    rollout.Plan
	members []rollout.Member
	now     time.Time
	names   int
	begun   map[string]bool
	events  []func() string // describe what happened
}

func newHistory(seed uint64) *history {
	h := &history{random: rand.New(rand.NewPCG(seed, 1)), now: now, begun: map[string]bool{}}
	h.plan.Type = []rollout.Type{"", rollout.All, rollout.Progressive, rollout.ProgressivePerGroup}[h.random.IntN(4)]
	h.plan.RequireCanaries = h.random.IntN(3) > 0
	h.changeLimits()
	for range historyMembers {
		h.join()
	}
	if h.random.IntN(3) == 0 {
		h.members[0].Hub = true
	}
	return h
}

func (h *history) note(format string, args ...any) {
	h.events = append(h.events, func() string { return fmt.Sprintf(format, args...) })
}

func (h *history) join() {
	h.names++
	h.members = append(h.members, rollout.Member{
		Name: fmt.Sprintf("c%02d", h.random.IntN(100)*1000+h.names), Group: h.random.IntN(4),
		Canary: h.plan.RequireCanaries && h.random.IntN(8) == 0, State: rollout.NotStarted,
	})
	h.note("join")
}

func (h *history) changeLimits() {
	limit := func(least int) *intstr.IntOrString {
		switch h.random.IntN(3) {
		case 0:
			return nil
		case 1:
			return number(int32(least + h.random.IntN(8)))
		}
		return percent(fmt.Sprintf("%d%%", least+h.random.IntN(40)))
	}
	h.plan.MaxConcurrency, h.plan.MaxFailures = limit(1), limit(0)
	h.note("limits %v %v", h.plan.MaxConcurrency, h.plan.MaxFailures)
}

// event changes the fleet, the plan, or the time.
func (h *history) event() {
	m := &h.members[h.random.IntN(len(h.members))]
	before := *m
	switch h.random.IntN(24) {
	case 0:
		h.join()
		return
	case 1:
		m.DeselectedSince = h.now
	case 2:
		m.DeselectedSince = time.Time{}
	case 3:
		h.changeLimits()
	case 4:
		h.plan.Paused = h.random.IntN(3) == 0
	case 5:
		h.plan.SelectionUnstable = pick(h, "2 of 3 decisions")
	case 6:
		h.plan.DependencyIncomplete = pick(h, "hubs is incomplete")
	case 7:
		h.plan.Window = nil
		if h.random.IntN(3) == 0 {
			h.plan.Window = &rollout.Window{Open: h.random.IntN(2) == 0, Until: h.now.Add(time.Hour)}
		}
	case 8:
		m.Hold = pick(h, "audit")
	case 9:
		h.retry()
	case 10:
		if m.State == rollout.Failed {
			m.State, m.LateSuccess = rollout.Complete, true
		}
	case 11:
		if m.State == rollout.NotStarted {
			m.State, m.Exempt = rollout.Failed, true
		}
	case 12:
		m.CleaningUp = false
	case 13:
		h.depart(m)
		return
	case 14:
		m.Forgotten = m.State == rollout.Failed || m.State == rollout.Complete && m.LateSuccess
		if m.Forgotten {
			h.plan.Stop = rollout.Stop{} // it is decided again
		}
	case 15, 16, 17:
		h.now = h.now.Add(time.Duration(1+h.random.IntN(50)) * time.Minute / 2)
	default:
		h.progress(m)
	}
	h.note("%s: %+v -> %+v", h.now, before, *m)
}

func pick(h *history, text string) string {
	if h.random.IntN(3) == 0 {
		return text
	}
	return ""
}

// progress moves a cluster in flight on, rarely to Failed.
func (h *history) progress(m *rollout.Member) {
	for i := range h.members { // a cluster in flight is more interesting than another
		if inFlight(h.members[i]) && h.random.IntN(3) == 0 {
			m = &h.members[i]
			break
		}
	}
	switch {
	case m.State == rollout.Initialized:
		m.State, m.Deadline = rollout.PartialUpgrade, h.now.Add(2*time.Hour)
	case m.State == rollout.PartialUpgrade && h.random.IntN(6) == 0:
		m.State, m.CleaningUp = rollout.Failed, h.random.IntN(2) == 0
	case m.State == rollout.PartialUpgrade:
		m.State, m.SoakedUntil = rollout.Complete, h.now.Add(time.Duration(h.random.IntN(3))*10*time.Minute)
	}
}

// depart deletes a cluster.
func (h *history) depart(m *rollout.Member) {
	if m.Hub || m.State == rollout.NotStarted || m.State == rollout.Complete && !m.LateSuccess {
		return
	}
	gone := *m
	h.note("%s departs: %+v", h.now, gone)
	h.members = slices.DeleteFunc(h.members, func(c rollout.Member) bool { return c.Name == gone.Name })
	if gone.Forgotten || gone.State == rollout.Failed && gone.Exempt {
		return
	}
	if h.plan.Departed.Failures == nil {
		h.plan.Departed.Failures = map[int]int{}
	}
	h.plan.Departed.Failures[gone.Group]++
	if gone.IsCanary() {
		h.plan.Departed.Canaries++
	}
}

// retry raises the attempt.
func (h *history) retry() {
	for i := range h.members {
		if m := &h.members[i]; m.State == rollout.Failed || m.State == rollout.Complete && m.LateSuccess {
			m.State, m.Exempt, m.LateSuccess, m.Forgotten = rollout.NotStarted, false, false, false
			delete(h.begun, m.Name)
		}
	}
	h.plan.Stop, h.plan.Departed = rollout.Stop{}, rollout.Departed{}
}

// decide decides, checks the decision, and applies it.
func (h *history) decide() error {
	members := slices.Clone(h.members)
	h.random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	d := rollout.Decide(h.plan, members, h.now)
	m := &model{plan: h.plan, members: h.members, now: h.now}
	if want := m.admit(); !slices.Equal(want, d.Admit) {
		return fmt.Errorf("admitted (-model +got):\n%s", cmp.Diff(want, d.Admit))
	}
	if err := h.invariants(m, d); err != nil {
		return err
	}
	if !h.plan.Stop.IsZero() && len(d.Admit) > 0 {
		return fmt.Errorf("admits %v after %+v", d.Admit, h.plan.Stop)
	}
	h.plan.Stop = d.UntilAttempt
	h.apply(d)
	if again := rollout.Decide(h.plan, h.members, h.now); len(again.Removed) > 0 || len(again.Admit) > 0 {
		return fmt.Errorf("a second decision admits %v and removes %v", again.Admit, again.Removed)
	}
	return nil
}

// invariants checks what holds for every decision.
func (h *history) invariants(m *model, d rollout.Decision) error {
	slots := m.limit()
	switch {
	case d.Stopped.IsZero() != (len(d.Admit) > 0):
		return fmt.Errorf("admits %v, stopped by %+v", d.Admit, d.Stopped)
	case slots >= 0 && len(d.Admit) > 0 && d.InUse+len(d.Admit) > slots:
		return fmt.Errorf("%d in use and %d admitted of %d", d.InUse, len(d.Admit), slots)
	case d.Slots != slots:
		return fmt.Errorf("%d slots, want %d", d.Slots, slots)
	case d.InUse != m.number(m.holdsSlot):
		return fmt.Errorf("%d slots in use", d.InUse)
	case !d.Next.IsZero() && !d.Next.After(h.now):
		return fmt.Errorf("next decision at %s", d.Next)
	case d.MaxFailuresExceeded != (m.overBudget() || h.plan.Stop.Reason == fleetv1beta1.ReasonMaxFailuresExceeded):
		return fmt.Errorf("budget exceeded: %t", d.MaxFailuresExceeded)
	}
	for _, name := range slices.Concat(d.Admit, d.Removed) {
		if h.begun[name] {
			return fmt.Errorf("%s had begun", name)
		}
	}
	for _, c := range h.members {
		if gone := slices.Contains(d.Removed, c.Name) || slices.Contains(d.Ignored, c.Name); gone == m.counts(c) {
			return fmt.Errorf("%s is gone: %t", c.Name, gone)
		}
		if late := inFlight(c) && m.failed(c); late != slices.Contains(d.TimedOut, c.Name) {
			return fmt.Errorf("%s timed out: %t", c.Name, late)
		}
	}
	return nil
}

func (h *history) apply(d rollout.Decision) {
	h.members = slices.DeleteFunc(h.members, func(m rollout.Member) bool { return slices.Contains(d.Removed, m.Name) })
	for i := range h.members {
		if m := &h.members[i]; slices.Contains(d.Admit, m.Name) {
			h.begun[m.Name] = true
			m.State, m.Deadline, m.CleaningUp, m.SoakedUntil = rollout.Initialized, h.now.Add(30*time.Minute), false, time.Time{}
		}
	}
}

// settle removes all that holds the rollout, and lets each cluster in flight complete. It reports
// whether the rollout then ends.
func (h *history) settle() error {
	h.plan.Paused, h.plan.SelectionUnstable, h.plan.DependencyIncomplete, h.plan.Window = false, "", "", nil
	for i := range h.members {
		h.members[i].Hold, h.members[i].DeselectedSince, h.members[i].CleaningUp = "", time.Time{}, false
	}
	h.plan.RequireCanaries, h.plan.MaxFailures, h.plan.Stop, h.plan.Departed = false, nil, rollout.Stop{}, rollout.Departed{}
	var d rollout.Decision
	for range 4 * len(h.members) {
		for i := range h.members {
			m := &h.members[i]
			if m.State != rollout.NotStarted {
				m.State, m.LateSuccess, m.CleaningUp = rollout.Complete, false, false
			}
		}
		h.now = h.now.Add(time.Hour)
		if d = rollout.Decide(h.plan, h.members, h.now); d.Stopped.Reason == fleetv1beta1.ReasonFinished {
			return nil
		}
		h.apply(d)
	}
	return fmt.Errorf("the rollout does not end: %+v", d.Stopped)
}

func (h *history) run() error {
	for range historyEvents {
		for len(h.members) < historyMembers {
			h.join()
		}
		h.event()
		if err := h.decide(); err != nil {
			return err
		}
	}
	return h.settle()
}

func TestDecideHistories(t *testing.T) {
	t.Parallel()
	histories := 500
	if testing.Short() {
		histories = 50
	}
	for seed := range uint64(histories) {
		h := newHistory(seed)
		if err := h.run(); err != nil {
			for _, event := range h.events[max(0, len(h.events)-5):] {
				t.Log(event())
			}
			t.Fatalf("seed %d, event %d, plan %+v: %v", seed, len(h.events), h.plan, err)
		}
	}
}

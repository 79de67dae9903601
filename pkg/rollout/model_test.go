// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// model answers for one cluster at a time whether it may begin, in the words of the rules. It is
// slow: each answer goes through all members again.
type model struct {
	plan    rollout.Plan
	members []rollout.Member
	now     time.Time
	begun   []string // admitted in this decision
}

// admit returns the clusters that may begin, in the order of rule 1.
func (m *model) admit() []string {
	var admitted []string
	for _, c := range m.ordered() {
		if m.mayBegin(c) {
			admitted = append(admitted, c.Name)
			m.begun = admitted
		}
	}
	return admitted
}

// ordered sorts by a text that has the parts of rule 1 in their order.
func (m *model) ordered() []rollout.Member {
	key := func(c rollout.Member) string {
		switch {
		case c.Hub:
			return "3"
		case c.Canary:
			return "1" + strconv.Itoa(1000+c.Group) + c.Name
		}
		return "2" + strconv.Itoa(1000+c.Group) + c.Name
	}
	sorted := slices.Clone(m.members)
	slices.SortFunc(sorted, func(a, b rollout.Member) int { return strings.Compare(key(a), key(b)) })
	return sorted
}

// mayBegin applies each rule to the cluster.
func (m *model) mayBegin(c rollout.Member) bool {
	if c.State != rollout.NotStarted || c.CleaningUp || !c.DeselectedSince.IsZero() || c.Hold != "" {
		return false
	}
	p := m.plan
	rule10 := p.Paused || p.Cancelled || p.DryRun || p.RecordsLost+p.SelectionUnstable+p.DependencyMissing+p.DependencyIncomplete+p.NoOperatorImage != "" ||
		p.Window != nil && !p.Window.Open
	if rule10 {
		return false
	}
	if p.RequireCanaries && m.number(func(o rollout.Member) bool { return m.counts(o) && isCanary(o) }) == 0 {
		return false
	}
	if !isCanary(c) && m.any(func(o rollout.Member) bool { return isCanary(o) && !m.soaked(o) }) {
		return false
	}
	if p.Stop.Reason != "" || p.Departed.Canaries > 0 || m.any(func(o rollout.Member) bool { return isCanary(o) && m.everFailed(o) }) || m.overBudget() {
		return false
	}
	if p.Type == rollout.ProgressivePerGroup && !isCanary(c) && !c.Hub && m.any(func(o rollout.Member) bool {
		return !o.Hub && !isCanary(o) && o.Group < c.Group && !m.terminal(o)
	}) {
		return false
	}
	used := len(m.begun) + m.number(m.holdsSlot)
	if c.Hub {
		return used == 0 && m.limit() != 0 && !m.any(func(o rollout.Member) bool { return !o.Hub && !m.terminal(o) })
	}
	if m.number(func(o rollout.Member) bool { return o.Hub && m.holdsSlot(o) }) > 0 {
		return false
	}
	return m.limit() < 0 || used < m.limit()
}

func isCanary(c rollout.Member) bool { return c.Canary && !c.Hub }

// counts implements rule 9: what has begun is a member, whatever becomes of it, unless a person forgets its failure.
func (m *model) counts(c rollout.Member) bool {
	gone := !c.DeselectedSince.IsZero() && m.now.Sub(c.DeselectedSince) >= time.Minute && m.plan.SelectionUnstable == ""
	switch {
	case !gone:
		return true
	case c.State == rollout.Failed:
		return !c.Exempt && !c.Forgotten
	}
	return c.State != rollout.NotStarted
}

// everFailed reports whether the cluster has failed in this attempt, whatever has become of it since.
func (m *model) everFailed(c rollout.Member) bool {
	return (m.failed(c) || c.State == rollout.Complete && c.LateSuccess) && !c.Forgotten
}

func (m *model) number(is func(rollout.Member) bool) int {
	n := 0
	for _, c := range m.members {
		if is(c) {
			n++
		}
	}
	return n
}

func (m *model) any(is func(rollout.Member) bool) bool {
	return m.number(func(c rollout.Member) bool { return m.counts(c) && is(c) }) > 0
}

func (m *model) soaked(c rollout.Member) bool {
	return c.State == rollout.Complete && !m.now.Before(c.SoakedUntil)
}

func (m *model) terminal(c rollout.Member) bool { return c.State == rollout.Failed || m.soaked(c) }

func (m *model) failed(c rollout.Member) bool {
	return c.State == rollout.Failed || inFlight(c) && !c.Deadline.IsZero() && !m.now.Before(c.Deadline)
}

func inFlight(c rollout.Member) bool {
	return c.State == rollout.Initialized || c.State == rollout.PartialUpgrade
}

func (m *model) holdsSlot(c rollout.Member) bool {
	switch c.State {
	case rollout.Complete:
		return c.CleaningUp || !m.soaked(c)
	case rollout.NotStarted, rollout.Failed:
		return c.CleaningUp
	case rollout.Initialized, rollout.PartialUpgrade:
	}
	return true
}

// overBudget implements rules 5 to 7.
func (m *model) overBudget() bool {
	if m.plan.MaxFailures == nil {
		return false
	}
	for group := range 10 {
		in := func(c rollout.Member) bool {
			return m.counts(c) && (m.plan.Type != rollout.ProgressivePerGroup || c.Group == group)
		}
		failures := m.number(func(c rollout.Member) bool {
			return in(c) && m.everFailed(c) && !c.Exempt
		})
		for of, gone := range m.plan.Departed.Failures {
			if of == group || m.plan.Type != rollout.ProgressivePerGroup {
				failures += gone
			}
		}
		if failures > scaled(*m.plan.MaxFailures, m.number(func(c rollout.Member) bool { return in(c) && !isCanary(c) })) {
			return true
		}
	}
	return false
}

// limit returns the number of slots; negative for no limit.
func (m *model) limit() int {
	switch {
	case m.plan.MaxConcurrency != nil:
		return max(1, scaled(*m.plan.MaxConcurrency, m.number(func(c rollout.Member) bool { return m.counts(c) && !isCanary(c) })))
	case m.plan.Type == rollout.All:
		return -1
	}
	return 1
}

// scaled rounds a percentage up by counting.
func scaled(limit intstr.IntOrString, size int) int {
	if limit.Type == intstr.Int {
		return int(limit.IntVal)
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(limit.StrVal, "%"))
	if err != nil {
		panic(err)
	}
	n := 0
	for n*100 < percent*size {
		n++
	}
	return n
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"maps"
	"slices"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Limits of a cause, in bytes, without an ellipsis.
const (
	maxReason  = 127
	maxMessage = 255
)

func (t *totals) group(m *FleetMember) *fleetv1beta1.GroupStatus {
	g := t.groups[m.Group]
	if g == nil {
		g = &fleetv1beta1.GroupStatus{Index: int32(m.Group) + 1}
		t.groups[m.Group] = g
	}
	if g.Name == "" || m.GroupName != "" && m.GroupName < g.Name {
		g.Name = m.GroupName
	}
	return g
}

// groupStatuses returns the groups in their order. The last one stands for all further groups.
func (t *totals) groupStatuses() []fleetv1beta1.GroupStatus {
	var list []fleetv1beta1.GroupStatus
	for _, index := range slices.Sorted(maps.Keys(t.groups)) {
		g := *t.groups[index]
		if len(list) < fleetv1beta1.MaxGroups {
			list = append(list, g)
			continue
		}
		last := &list[len(list)-1]
		last.Name = ""
		last.Total += g.Total
		last.Initialized += g.Initialized
		last.PartialUpgrade += g.PartialUpgrade
		last.Complete += g.Complete
		last.Finishing += g.Finishing
		last.Failed += g.Failed
		last.Pending += g.Pending
	}
	return list
}

type causeKey struct {
	kind   fleetv1beta1.CauseType
	reason string
}

type source struct {
	count   int32
	names   []string // the first ones, sorted
	message string   // of the first one
}

func (s *source) add(name, message string) {
	s.count++
	at, _ := slices.BinarySearch(s.names, name)
	if at == 0 {
		s.message = message
	}
	if at < fleetv1beta1.MaxCauseClusters {
		s.names = slices.Insert(s.names, at, name)
		s.names = s.names[:min(len(s.names), fleetv1beta1.MaxCauseClusters)]
	}
}

// addCauses notes why the member failed, is stalled, held, or blocked. A condition shows a pause of the whole upgrade.
func (t *totals) addCauses(m *FleetMember) {
	note := func(kind fleetv1beta1.CauseType, reason, message string) {
		key := causeKey{kind, reason}
		if t.sources[key] == nil {
			t.sources[key] = &source{}
		}
		t.sources[key].add(m.Name, message)
	}
	switch {
	case m.State == rollout.Failed:
		reason, message := m.failure()
		note(fleetv1beta1.CauseFailed, reason, message)
	case m.State == rollout.NotStarted && !m.Obstacle.IsZero():
		t.obstacles++
		note(fleetv1beta1.CauseBlocked, m.Obstacle.Reason, m.Obstacle.Message)
	case m.State == rollout.NotStarted && m.Hold != "":
		note(fleetv1beta1.CauseBlocked, cmp.Or(m.HoldReason, fleetv1beta1.ReasonHeld), m.Hold)
	case m.isHeld() && !t.Upgrade.Spec.Paused && !t.Upgrade.Spec.DryRun:
		note(fleetv1beta1.CauseBlocked, fleetv1beta1.ReasonHeld, m.Run.Status.Message)
	}
	if c := m.Stalled(); c != nil {
		t.stalls++
		note(fleetv1beta1.CauseStalled, c.Reason, cmp.Or(m.Run.Record().Step(c.Reason).Message, c.Message)) // the former has no times
	}
}

// causes returns the most frequent causes: failures first, then stalls, then obstacles.
func (t *totals) causes() []fleetv1beta1.Cause {
	list := t.sortedCauses()
	list = list[:min(len(list), fleetv1beta1.MaxCauses)]
	shortenMessages(list, maxMessage)
	return list
}

func (t *totals) sortedCauses() []fleetv1beta1.Cause {
	order := []fleetv1beta1.CauseType{fleetv1beta1.CauseFailed, fleetv1beta1.CauseStalled, fleetv1beta1.CauseBlocked}
	var list []fleetv1beta1.Cause
	for key, s := range t.sources {
		list = append(list, fleetv1beta1.Cause{
			Type: key.kind, Reason: cmp.Or(text.Sanitize(key.reason, maxReason), "Unknown"), Message: s.message,
			Count: s.count, Clusters: s.names,
		})
	}
	slices.SortFunc(list, func(a, b fleetv1beta1.Cause) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Type), slices.Index(order, b.Type)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason),
			slices.Compare(a.Clusters, b.Clusters))
	})
	return list
}

func shortenMessages(causes []fleetv1beta1.Cause, limit int) {
	for i := range causes {
		causes[i].Message = text.Sanitize(causes[i].Message, limit)
	}
}

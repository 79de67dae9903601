// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/telemetry"
)

const (
	// margin is how long a kubelet may be late in telling that a pod has ended.
	margin = time.Minute
	// pace is how long a node is not looked at again once its first deadline has passed.
	pace = time.Minute
)

// deadlines are when the pods that are still on a node have had their time.
type deadlines struct {
	others  time.Time // of those that no budget guards, and of those that were deleted
	guarded time.Time // of those that a budget guards; zero: never
}

// first is when the first pod may have had its time.
func (d deadlines) first() time.Time {
	if d.guarded.IsZero() || d.others.Before(d.guarded) {
		return d.others
	}
	return d.guarded
}

func (d deadlines) equal(other deadlines) bool {
	return d.others.Equal(other.others) && d.guarded.Equal(other.guarded)
}

// guest is a pod on a node that is being drained.
type guest struct {
	cluster.Pod
	budgets []string // those that guard it
	spared  bool     // it is in a namespace that is never touched
}

// task is a pod whose time has come, and what has held it.
type task struct {
	guest
	hold telemetry.Hold
	why  string // it is forced, or cannot be
}

// plan is what is done about the pods on a node.
type plan struct {
	force   []task // in this order
	stuck   []task // they cannot be forced
	blocked bool   // somebody's time is over
	next    time.Time
}

// decide says what is to be done on a node whose first deadline has passed.
func decide(now time.Time, d deadlines, guests []guest) plan {
	p := plan{next: now.Add(pace)}
	wait := func(until time.Time) {
		if until.After(now) && until.Before(p.next) {
			p.next = until
		}
	}
	wait(d.others)
	wait(d.guarded)
	for _, g := range guests {
		hold, deadline := held(g, d)
		if g.Tied || deadline.IsZero() || now.Before(deadline) {
			continue
		}
		p.blocked = true
		ends := g.GoneBy.Add(margin) // of one that was not deleted, long ago
		switch {
		case now.Before(ends):
			wait(ends)
		case g.spared:
			p.stuck = append(p.stuck, task{g, hold, "it is in a namespace that is never touched (nodeDrain.ignoreNamespaces)"})
		case g.Released && len(g.Finalizers) > 0:
			p.stuck = append(p.stuck, task{g, hold, "it has ended and is kept by finalizers, which only their owners may remove: " + cluster.Names(g.Finalizers)})
		default:
			p.force = append(p.force, task{g, hold, because(g, hold)})
		}
	}
	slices.SortStableFunc(p.force, func(a, b task) int { return cmp.Compare(order[a.hold], order[b.hold]) })
	return p
}

// order is who comes first. Those who are ending may yet end while others are forced.
var order = map[telemetry.Hold]int{telemetry.HeldByOther: 0, telemetry.HeldByBudget: 1, telemetry.HeldInTermination: 2}

// held says what holds a pod, and when it has had its time.
func held(g guest, d deadlines) (telemetry.Hold, time.Time) {
	switch {
	case !g.GoneBy.IsZero(): // a budget has had its say
		return telemetry.HeldInTermination, d.others
	case len(g.budgets) > 0:
		return telemetry.HeldByBudget, d.guarded
	}
	return telemetry.HeldByOther, d.others
}

func because(g guest, hold telemetry.Hold) string {
	switch hold {
	case telemetry.HeldInTermination:
		return fmt.Sprintf("its grace period was over at %s, and it has not ended", g.GoneBy.UTC().Format(time.RFC3339))
	case telemetry.HeldByBudget:
		return "it was held by PodDisruptionBudget " + cluster.Names(g.budgets) + " for longer than PDBForceDrainTimeout"
	default:
		return "it was there for longer than nodeDrain.timeOut after the drain had begun"
	}
}

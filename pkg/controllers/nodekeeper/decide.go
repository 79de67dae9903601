// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// recheckInterval is the time between two passes over a node whose first deadline has passed.
const recheckInterval = checks.ForceInterval

// blockedPod is a pod whose time is over.
type blockedPod struct {
	checks.DrainedPod
	heldBy checks.HoldReason
	reason string // why it is forced, or cannot be
}

// plan is what to do about the pods on a node.
type plan struct {
	toForce     []blockedPod // in this order
	cannotForce []blockedPod
	overdue     bool // the time of a pod is over
	next        time.Time
}

// decide returns what to do on a node whose first deadline has passed. Messages name the field that
// sets the timeout of budgets.
func decide(now time.Time, d checks.DrainDeadlines, pdbTimeoutField string, pods []checks.DrainedPod) plan {
	p := plan{next: now.Add(recheckInterval)}
	wait := func(until time.Time) {
		if until.After(now) && until.Before(p.next) {
			p.next = until
		}
	}
	wait(d.Unprotected)
	wait(d.PDB)
	for _, pod := range pods {
		hold := pod.Hold(d)
		if hold.Deadline.IsZero() || now.Before(hold.Deadline) {
			continue
		}
		p.overdue = true
		switch {
		case now.Before(hold.Terminating):
			wait(hold.Terminating)
		case hold.Exempt != "":
			p.cannotForce = append(p.cannotForce, blockedPod{pod, hold.Reason, hold.Exempt})
		default:
			p.toForce = append(p.toForce, blockedPod{pod, hold.Reason, forceReason(pod, hold.Reason, pdbTimeoutField)})
		}
	}
	slices.SortStableFunc(p.toForce, func(a, b blockedPod) int { return cmp.Compare(forceOrder[a.heldBy], forceOrder[b.heldBy]) })
	return p
}

// forceOrder is the order in which pods are forced: those that are terminating come last, since
// they may end meanwhile.
var forceOrder = map[checks.HoldReason]int{checks.HeldByOther: 0, checks.HeldByPDB: 1, checks.HeldByTermination: 2}

func forceReason(pod checks.DrainedPod, heldBy checks.HoldReason, pdbTimeoutField string) string {
	switch heldBy {
	case checks.HeldByTermination:
		return fmt.Sprintf("its grace period ended at %s, and it has not terminated", pod.TerminationDeadline.UTC().Format(time.RFC3339))
	case checks.HeldByPDB:
		return "it was held by PodDisruptionBudget " + text.JoinNames(pod.PDBs) + " for longer than " + pdbTimeoutField
	default:
		return "it was still there nodeDrain.timeOut after the drain had started"
	}
}

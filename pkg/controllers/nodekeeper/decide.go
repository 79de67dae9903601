// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// recheckInterval is the time between two passes over a node after its first deadline.
const recheckInterval = clusterstate.ForceInterval

// blockedPod is a pod whose deadline has passed.
type blockedPod struct {
	clusterstate.DrainedPod
	heldBy clusterstate.HoldReason
	reason string // why it is forced, or cannot be
}

// plan lists the pods on a node by what to do with them.
type plan struct {
	toForce     []blockedPod // in this order
	toEvict     []blockedPod // evictions to retry: refused before, but the pod has more time
	cannotForce []blockedPod
	overdue     bool // the deadline of a pod has passed
	next        time.Time
}

// decide returns the plan for a node after its first deadline. pdbTimeoutField is the name of the
// field that sets the timeout of PDBs, for use in messages.
func decide(now time.Time, d clusterstate.DrainDeadlines, pdbTimeoutField string, pods []clusterstate.DrainedPod) plan {
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
		if hold.Reason == clusterstate.HeldByRefusal && hold.Exempt == "" && (hold.Deadline.IsZero() || now.Before(hold.Deadline)) {
			p.toEvict = append(p.toEvict, blockedPod{pod, hold.Reason, ""})
			continue
		}
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

// forceOrder ranks blocked pods in the order of forcing. Terminating pods come last, because they
// may still end on their own.
var forceOrder = map[clusterstate.HoldReason]int{clusterstate.HeldByOther: 0, clusterstate.HeldByPDB: 1, clusterstate.HeldByRefusal: 1, clusterstate.HeldByTermination: 2}

func forceReason(pod clusterstate.DrainedPod, heldBy clusterstate.HoldReason, pdbTimeoutField string) string {
	switch heldBy {
	case clusterstate.HeldByTermination:
		return fmt.Sprintf("it has not terminated, although its grace period ended at %s", text.FormatTime(pod.TerminationDeadline))
	case clusterstate.HeldByPDB:
		return "it was held by PodDisruptionBudget " + text.JoinNames(pod.PDBs) + " for longer than " + pdbTimeoutField
	case clusterstate.HeldByRefusal:
		return "its eviction was refused for longer than " + pdbTimeoutField + ": " + pod.Refusal
	default:
		return "it was still there nodeDrain.timeOut after the drain had started"
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// recheckInterval is the time between two passes over a node whose first deadline has passed.
const recheckInterval = time.Minute

// deadlines are the times at which the pods that are still on a node are forced.
type deadlines struct {
	unprotected  time.Time // for pods that no PodDisruptionBudget selects, and those that were deleted
	pdbProtected time.Time // for pods that one selects; zero means never
}

// first returns the earlier deadline.
func (d deadlines) first() time.Time {
	if d.pdbProtected.IsZero() || d.unprotected.Before(d.pdbProtected) {
		return d.unprotected
	}
	return d.pdbProtected
}

func (d deadlines) equal(other deadlines) bool {
	return d.unprotected.Equal(other.unprotected) && d.pdbProtected.Equal(other.pdbProtected)
}

// podInfo is a pod on a node that is being drained.
type podInfo struct {
	clusterstate.Pod
	pdbs    []string // the budgets that select it
	ignored bool     // it is in one of nodeDrain.ignoreNamespaces
}

// blockedPod is a pod whose time is over.
type blockedPod struct {
	podInfo
	blockedBy metrics.BlockReason
	reason    string // why it is forced, or cannot be
}

// plan is what to do about the pods on a node.
type plan struct {
	toForce     []blockedPod // in this order
	cannotForce []blockedPod
	overdue     bool // the time of a pod is over
	next        time.Time
}

// decide returns what to do on a node whose first deadline has passed.
func decide(now time.Time, d deadlines, nodeReady bool, pods []podInfo) plan {
	p := plan{next: now.Add(recheckInterval)}
	wait := func(until time.Time) {
		if until.After(now) && until.Before(p.next) {
			p.next = until
		}
	}
	wait(d.unprotected)
	wait(d.pdbProtected)
	for _, pod := range pods {
		hold := pod.hold(d, nodeReady)
		blockedBy := metrics.BlockReason(hold.Reason)
		if pod.IgnoredByDrain || hold.Deadline.IsZero() || now.Before(hold.Deadline) {
			continue
		}
		p.overdue = true
		switch {
		case now.Before(hold.Terminating):
			wait(hold.Terminating)
		case hold.Exempt != "":
			p.cannotForce = append(p.cannotForce, blockedPod{pod, blockedBy, hold.Exempt})
		default:
			p.toForce = append(p.toForce, blockedPod{pod, blockedBy, forceReason(pod, blockedBy)})
		}
	}
	slices.SortStableFunc(p.toForce, func(a, b blockedPod) int { return cmp.Compare(forceOrder[a.blockedBy], forceOrder[b.blockedBy]) })
	return p
}

// hold returns what keeps the pod on the node.
func (p podInfo) hold(d deadlines, nodeReady bool) checks.Hold {
	drained := checks.DrainedPod{Pod: p.Pod, PDBs: p.pdbs, IgnoredNamespace: p.ignored, NodeReady: nodeReady}
	return drained.Hold(checks.DrainDeadlines{Unprotected: d.unprotected, PDB: d.pdbProtected})
}

// forceOrder is the order in which pods are forced: those that are terminating come last, since
// they may end meanwhile.
var forceOrder = map[metrics.BlockReason]int{metrics.BlockedByOther: 0, metrics.BlockedByPDB: 1, metrics.BlockedByTermination: 2}

func forceReason(pod podInfo, blockedBy metrics.BlockReason) string {
	switch blockedBy {
	case metrics.BlockedByTermination:
		return fmt.Sprintf("its grace period ended at %s, and it has not terminated", pod.TerminationDeadline.UTC().Format(time.RFC3339))
	case metrics.BlockedByPDB:
		return "it was held by PodDisruptionBudget " + text.JoinNames(pod.pdbs) + " for longer than PDBForceDrainTimeout"
	default:
		return "it was still there nodeDrain.timeOut after the drain had begun"
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// terminationSlack is how late a kubelet may report that a pod has ended.
	terminationSlack = time.Minute
	// recheckInterval is the time between two passes over a node whose first deadline has passed.
	recheckInterval = time.Minute
)

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
		blockedBy, deadline := blockReason(pod, d)
		if pod.IgnoredByDrain || deadline.IsZero() || now.Before(deadline) {
			continue
		}
		p.overdue = true
		terminationDeadline := pod.TerminationDeadline.Add(terminationSlack) // long ago if the pod was not deleted
		switch {
		case now.Before(terminationDeadline):
			wait(terminationDeadline)
		case pod.ignored:
			p.cannotForce = append(p.cannotForce, blockedPod{pod, blockedBy, "it is in a namespace whose pods are never forced (nodeDrain.ignoreNamespaces)"})
		case pod.KeptByFinalizers && len(pod.Finalizers) > 0:
			p.cannotForce = append(p.cannotForce, blockedPod{pod, blockedBy, "it has ended and is kept by finalizers, which only their owners may remove: " + text.JoinNames(pod.Finalizers)})
		case !nodeReady && (pod.RemovedAtOnce || blockedBy == metrics.BlockedByTermination):
			p.cannotForce = append(p.cannotForce, blockedPod{pod, blockedBy, nodeNotReadyReason})
		default:
			p.toForce = append(p.toForce, blockedPod{pod, blockedBy, forceReason(pod, blockedBy)})
		}
	}
	slices.SortStableFunc(p.toForce, func(a, b blockedPod) int { return cmp.Compare(forceOrder[a.blockedBy], forceOrder[b.blockedBy]) })
	return p
}

// nodeNotReadyReason is why a pod is not removed from a node that does not answer: another pod may
// already use its volumes.
const nodeNotReadyReason = "its node is not ready, so its containers may still be running; " +
	"bring the node back, or power it off and add the taint node.kubernetes.io/out-of-service=nodeshutdown:NoExecute to it"

// forceOrder is the order in which pods are forced: those that are terminating come last, since
// they may end meanwhile.
var forceOrder = map[metrics.BlockReason]int{metrics.BlockedByOther: 0, metrics.BlockedByPDB: 1, metrics.BlockedByTermination: 2}

// blockReason returns what keeps a pod on its node, and when it is forced.
func blockReason(pod podInfo, d deadlines) (metrics.BlockReason, time.Time) {
	switch {
	case !pod.TerminationDeadline.IsZero(): // its budget allowed the disruption
		return metrics.BlockedByTermination, d.unprotected
	case len(pod.pdbs) > 0:
		return metrics.BlockedByPDB, d.pdbProtected
	}
	return metrics.BlockedByOther, d.unprotected
}

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

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
	// terminationSlack is how long a kubelet may be late in telling that a pod has ended.
	terminationSlack = time.Minute
	// recheckInterval is how long a node is not looked at again once its first deadline has passed.
	recheckInterval = time.Minute
)

// deadlines are when the pods that are still on a node have had their time.
type deadlines struct {
	unprotected  time.Time // of those that no budget guards, and of those that were deleted
	pdbProtected time.Time // of those that a budget guards; zero: never
}

// first is when the first pod may have had its time.
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
	pdbs    []string // those that guard it
	ignored bool     // it is in a namespace that is never touched
}

// blockedPod is a pod whose time has come, and what has held it.
type blockedPod struct {
	podInfo
	blockedBy metrics.BlockReason
	reason    string // it is forced, or cannot be
}

// plan is what is done about the pods on a node.
type plan struct {
	toForce     []blockedPod // in this order
	cannotForce []blockedPod // they cannot be forced
	overdue     bool         // somebody's time is over
	next        time.Time
}

// decide says what is to be done on a node whose first deadline has passed.
func decide(now time.Time, d deadlines, pods []podInfo) plan {
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
		terminationDeadline := pod.TerminationDeadline.Add(terminationSlack) // of one that was not deleted, long ago
		switch {
		case now.Before(terminationDeadline):
			wait(terminationDeadline)
		case pod.ignored:
			p.cannotForce = append(p.cannotForce, blockedPod{pod, blockedBy, "it is in a namespace that is never touched (nodeDrain.ignoreNamespaces)"})
		case pod.KeptByFinalizers && len(pod.Finalizers) > 0:
			p.cannotForce = append(p.cannotForce, blockedPod{pod, blockedBy, "it has ended and is kept by finalizers, which only their owners may remove: " + text.JoinNames(pod.Finalizers)})
		default:
			p.toForce = append(p.toForce, blockedPod{pod, blockedBy, forceReason(pod, blockedBy)})
		}
	}
	slices.SortStableFunc(p.toForce, func(a, b blockedPod) int { return cmp.Compare(forceOrder[a.blockedBy], forceOrder[b.blockedBy]) })
	return p
}

// forceOrder is who comes first. Those who are ending may yet end while others are forced.
var forceOrder = map[metrics.BlockReason]int{metrics.BlockedByOther: 0, metrics.BlockedByPDB: 1, metrics.BlockedByTermination: 2}

// blockReason says what holds a pod, and when it has had its time.
func blockReason(pod podInfo, d deadlines) (metrics.BlockReason, time.Time) {
	switch {
	case !pod.TerminationDeadline.IsZero(): // a budget has had its say
		return metrics.BlockedByTermination, d.unprotected
	case len(pod.pdbs) > 0:
		return metrics.BlockedByPDB, d.pdbProtected
	}
	return metrics.BlockedByOther, d.unprotected
}

func forceReason(pod podInfo, blockedBy metrics.BlockReason) string {
	switch blockedBy {
	case metrics.BlockedByTermination:
		return fmt.Sprintf("its grace period was over at %s, and it has not ended", pod.TerminationDeadline.UTC().Format(time.RFC3339))
	case metrics.BlockedByPDB:
		return "it was held by PodDisruptionBudget " + text.JoinNames(pod.pdbs) + " for longer than PDBForceDrainTimeout"
	default:
		return "it was there for longer than nodeDrain.timeOut after the drain had begun"
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// HoldReason describes what keeps a pod on a node that is being drained.
type HoldReason string

const (
	// HeldByPDB is the reason of a pod that a PodDisruptionBudget selects.
	HeldByPDB HoldReason = "PodDisruptionBudget"
	// HeldByRefusal is the reason of a pod that no PodDisruptionBudget selects and whose eviction the API
	// server refuses, for example because an admission webhook protects the pod.
	HeldByRefusal HoldReason = "EvictionRefused"
	// HeldByTermination is the reason of a pod that was deleted and has not terminated.
	HeldByTermination HoldReason = "Termination"
	// HeldByOther is the reason of all other pods.
	HeldByOther HoldReason = "Other"
)

// HoldReasons returns all that may keep a pod on a node.
func HoldReasons() []string {
	return []string{string(HeldByPDB), string(HeldByRefusal), string(HeldByTermination), string(HeldByOther)}
}

// ForceInterval is the time after which a pod is forced again if it could not be deleted.
const ForceInterval = time.Minute

// RefusedAfter is how long after its time a pod that is still there counts as one whose deletion was refused:
// the first attempt, another one, and the time that the requests take.
const RefusedAfter = 3 * ForceInterval

// TerminationSlack is how late a kubelet may report that a pod has ended.
const TerminationSlack = time.Minute

// DrainDeadlines are the times at which the pods that are still on a node are forced; zero means
// never.
type DrainDeadlines struct {
	Unprotected time.Time // for pods that nothing guards, and those that were deleted
	PDB         time.Time // for guarded pods: a PodDisruptionBudget selects them, or their eviction is refused
}

// NewDrainDeadlines returns the deadlines of a drain that started at that time. A negative timeout
// means without limit.
func NewDrainDeadlines(start time.Time, timeout, pdbTimeout time.Duration) DrainDeadlines {
	var d DrainDeadlines
	if timeout >= 0 {
		d.Unprotected = start.Add(timeout)
	}
	if pdbTimeout >= 0 {
		d.PDB = start.Add(pdbTimeout)
	}
	return d
}

// First returns the earlier deadline, or zero if there is none.
func (d DrainDeadlines) First() time.Time {
	if d.Unprotected.IsZero() || !d.PDB.IsZero() && d.PDB.Before(d.Unprotected) {
		return d.PDB
	}
	return d.Unprotected
}

// Equal reports whether both are the same times.
func (d DrainDeadlines) Equal(other DrainDeadlines) bool {
	return d.Unprotected.Equal(other.Unprotected) && d.PDB.Equal(other.PDB)
}

// Hold describes what keeps one pod on a node that is being drained.
type Hold struct {
	Reason HoldReason
	// Deadline is when the pod is forced at the earliest; zero means never.
	Deadline time.Time
	// Terminating is until when a deleted pod may take to terminate; zero if it is not deleted, or
	// its time is unknown.
	Terminating time.Time
	// Exempt explains why the pod is never forced; empty if it may be.
	Exempt string
}

// NodeNotReady is why a pod is not removed from a node that does not answer: another pod may already
// use its volumes.
const NodeNotReady = "its node is not ready, so its containers may still be running; " +
	"bring the node back, or power it off and add the taint node.kubernetes.io/out-of-service=nodeshutdown:NoExecute to it"

// DrainedPod is a pod on a node that is being drained.
type DrainedPod struct {
	Pod
	// PDBs are the namespaces and names of the budgets that select the pod.
	PDBs []string
	// Refused reports that the API server refuses the eviction of the pod, and Refusal is its answer, in
	// one bounded line; empty if the answer is unknown.
	Refused bool
	Refusal string
	// IgnoredNamespace reports that pods in its namespace are never forced.
	IgnoredNamespace bool
	// NodeReady reports that the node is ready.
	NodeReady bool
}

// Hold returns what keeps the pod on its node, and when the pod is forced. It is the only answer to
// that question: forced drains and the message of an upgrade use it.
func (p DrainedPod) Hold(d DrainDeadlines) Hold {
	hold := Hold{Reason: HeldByOther, Deadline: d.Unprotected}
	switch {
	case !p.TerminationDeadline.IsZero(): // its budget allowed the disruption
		hold.Reason, hold.Terminating = HeldByTermination, p.TerminationDeadline.Add(TerminationSlack)
	case len(p.PDBs) > 0:
		hold.Reason, hold.Deadline = HeldByPDB, d.PDB
	case p.Refused:
		hold.Reason, hold.Deadline = HeldByRefusal, d.PDB
	}
	switch {
	case p.IgnoredNamespace:
		hold.Exempt = "it is in a namespace whose pods are never forced (nodeDrain.ignoreNamespaces)"
	case p.KeptByFinalizers && len(p.Finalizers) > 0:
		hold.Exempt = "it has ended and is kept by finalizers, which only their owners may remove: " + text.JoinNames(p.Finalizers)
	case !p.NodeReady && (p.RemovedAtOnce || hold.Reason == HeldByTermination):
		hold.Exempt = NodeNotReady
	}
	return hold
}

// ForcedAt returns when the pod is forced; zero means never.
func (h Hold) ForcedAt() time.Time {
	switch {
	case h.Exempt != "" || h.Deadline.IsZero():
		return time.Time{}
	case h.Terminating.After(h.Deadline):
		return h.Terminating
	}
	return h.Deadline
}

// IsOverdue reports whether the pod should have been deleted by now.
func (h Hold) IsOverdue(now time.Time) bool {
	at := h.ForcedAt()
	return !at.IsZero() && !now.Before(at.Add(RefusedAfter))
}

// DrainedPods lists the pods on nodes that are being drained.
type DrainedPods struct {
	// Reader reads the PodDisruptionBudgets from the cache, and Live the pods from the API server.
	Reader, Live client.Reader
	// IgnoreNamespaces are patterns of the namespaces whose pods are never forced.
	IgnoreNamespaces []string
}

// List returns the pods on a node, except the pods that a drain ignores, and the budgets in their namespaces whose
// selectors are invalid. It reads only the metadata of the pods if the node is ready: on another node, the grace period
// of a pod also matters.
func (l DrainedPods) List(ctx context.Context, node string, ready bool) (drained []DrainedPod, invalid []PDB, err error) {
	list := ListPodsOnNode
	if !ready {
		list = ListWholePodsOnNode
	}
	pods, err := list(ctx, l.Live, node)
	if err != nil {
		return nil, nil, err
	}
	pdbs := map[string][]PDB{} // by namespace
	for _, pod := range pods {
		if _, listed := pdbs[pod.Namespace]; listed || pod.IgnoredByDrain {
			continue
		}
		inNamespace, err := ListPDBs(ctx, l.Reader, pod.Namespace)
		if err != nil {
			return nil, nil, err
		}
		pdbs[pod.Namespace] = inNamespace
		for _, b := range inNamespace {
			if b.SelectorError != "" {
				invalid = append(invalid, b)
			}
		}
	}
	return NewDrainedPods(pods, pdbs, ready, l.IgnoreNamespaces), invalid, nil
}

// NewDrainedPods returns the pods on a node that is being drained, except those that a drain ignores,
// given the PodDisruptionBudgets by namespace.
func NewDrainedPods(pods []Pod, pdbs map[string][]PDB, nodeReady bool, ignoreNamespaces []string) []DrainedPod {
	var drained []DrainedPod
	for _, pod := range pods {
		if pod.IgnoredByDrain {
			continue
		}
		drained = append(drained, DrainedPod{
			Pod: pod, PDBs: selectingPDBs(pod, pdbs[pod.Namespace]), NodeReady: nodeReady,
			IgnoredNamespace: text.MatchesAny(pod.Namespace, ignoreNamespaces),
		})
	}
	return drained
}

// selectingPDBs returns the namespaces and names of the budgets that select a pod.
func selectingPDBs(pod Pod, pdbs []PDB) []string {
	var names []string
	for _, b := range pdbs {
		if b.Selects(pod) {
			names = append(names, b.Namespace+"/"+b.Name)
		}
	}
	return names
}

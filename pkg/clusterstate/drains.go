// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// HoldReason describes what keeps a pod on a node during a drain.
type HoldReason string

const (
	// HeldByPDB is the reason if a PodDisruptionBudget selects the pod.
	HeldByPDB HoldReason = "PodDisruptionBudget"
	// HeldByRefusal is the reason if the API server refuses the eviction although no PodDisruptionBudget
	// selects the pod, for example because an admission webhook protects it.
	HeldByRefusal HoldReason = "EvictionRefused"
	// HeldByTermination is the reason if the pod was deleted but has not terminated.
	HeldByTermination HoldReason = "Termination"
	// HeldByOther is the reason for all other pods.
	HeldByOther HoldReason = "Other"
)

// HoldReasons returns all possible reasons.
func HoldReasons() []string {
	return []string{string(HeldByPDB), string(HeldByRefusal), string(HeldByTermination), string(HeldByOther)}
}

// ForceInterval is the time between attempts to delete a forced pod.
const ForceInterval = time.Minute

// RefusedAfter is how long after its deadline a remaining pod counts as refused: two attempts plus the time
// that the requests take.
const RefusedAfter = 3 * ForceInterval

// TerminationSlack is how late a kubelet may report that a pod has terminated.
const TerminationSlack = time.Minute

// DrainDeadlines holds the times when the remaining pods on a node are forced. A zero deadline disables
// forcing.
type DrainDeadlines struct {
	Unprotected time.Time // for unprotected and deleted pods
	PDB         time.Time // for protected pods: a PodDisruptionBudget selects them, or their eviction is refused
}

// NewDrainDeadlines returns the deadlines of a drain that started at the given time. A negative timeout
// disables the deadline.
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

// Equal reports whether all deadlines are equal.
func (d DrainDeadlines) Equal(other DrainDeadlines) bool {
	return d.Unprotected.Equal(other.Unprotected) && d.PDB.Equal(other.PDB)
}

// Hold describes what keeps a pod on a node during a drain.
type Hold struct {
	Reason HoldReason
	// Deadline is the earliest time when the pod is forced, or zero for never.
	Deadline time.Time
	// Terminating is the time by which a deleted pod should have terminated. It is zero if the pod is not
	// deleted or the time is unknown.
	Terminating time.Time
	// Exempt explains why the pod is never forced. It is empty if the pod may be forced.
	Exempt string
}

// NodeNotReady explains why a pod is not removed from an unresponsive node: its volumes could end up in use
// by two pods.
const NodeNotReady = "its node is not ready, so its containers may still be running; " +
	"bring the node back, or power it off and add the taint node.kubernetes.io/out-of-service=nodeshutdown:NoExecute to it"

// DrainedPod is a pod on a node during a drain.
type DrainedPod struct {
	Pod
	// PDBs lists the PodDisruptionBudgets that select the pod, as namespace/name.
	PDBs []string
	// Refused is set if the API server refuses to evict the pod. Refusal is its response as one line of
	// limited length, or empty if it is unknown.
	Refused bool
	Refusal string
	// IgnoredNamespace is set if pods in this namespace are never forced.
	IgnoredNamespace bool
	// NodeReady is set if the node is ready.
	NodeReady bool
}

// Hold returns what keeps the pod on its node and when the pod is forced. Forced drains and the messages of
// upgrades both rely on it.
func (p DrainedPod) Hold(d DrainDeadlines) Hold {
	hold := Hold{Reason: HeldByOther, Deadline: d.Unprotected}
	switch {
	case !p.TerminationDeadline.IsZero(): // its PodDisruptionBudget allowed the disruption
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

// ForcedAt returns when the pod is forced, or zero for never.
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

// DrainedPods lists the pods on nodes during a drain.
type DrainedPods struct {
	// Reader reads PodDisruptionBudgets from the cache. Live reads pods from the API server.
	Reader, Live client.Reader
	// IgnoreNamespaces lists patterns of namespaces whose pods are never forced.
	IgnoreNamespaces []string
}

// List returns the pods on a node, except pods that a drain ignores, and the PodDisruptionBudgets in their
// namespaces with invalid selectors. If the node is ready, it reads only the metadata of pods. Otherwise it
// also needs their grace periods.
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

// NewDrainedPods converts the pods on a node, except pods that a drain ignores. The PodDisruptionBudgets are
// given by namespace.
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

// selectingPDBs returns the namespace/name of the PodDisruptionBudgets that select a pod.
func selectingPDBs(pod Pod, pdbs []PDB) []string {
	var names []string
	for _, b := range pdbs {
		if b.Selects(pod) {
			names = append(names, b.Namespace+"/"+b.Name)
		}
	}
	return names
}

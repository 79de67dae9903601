// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// HoldReason is what keeps a pod on a node that is being drained.
type HoldReason string

const (
	// HeldByPDB is the reason of a pod that a PodDisruptionBudget selects.
	HeldByPDB HoldReason = "PodDisruptionBudget"
	// HeldByTermination is the reason of a pod that was deleted and has not terminated.
	HeldByTermination HoldReason = "Termination"
	// HeldByOther is the reason of all other pods.
	HeldByOther HoldReason = "Other"
)

// TerminationSlack is how late a kubelet may report that a pod has ended.
const TerminationSlack = time.Minute

// DrainDeadlines are the times at which the pods that are still on a node are forced.
type DrainDeadlines struct {
	Unprotected time.Time // for pods that no PodDisruptionBudget selects, and those that were deleted; zero means never
	PDB         time.Time // for pods that one selects; zero means never
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

// Hold is what keeps one pod on a node that is being drained.
type Hold struct {
	Reason HoldReason
	// Deadline is when the pod is forced at the earliest; zero means never.
	Deadline time.Time
	// Terminating is until when a deleted pod may take to terminate; zero means that it is not
	// deleted, or that its time is unknown.
	Terminating time.Time
	// Exempt explains why the pod is never forced; empty means that it may be.
	Exempt string
}

// NodeNotReady is why a pod is not removed from a node that does not answer: another pod may already
// use its volumes.
const NodeNotReady = "its node is not ready, so its containers may still be running; " +
	"bring the node back, or power it off and add the taint node.kubernetes.io/out-of-service=nodeshutdown:NoExecute to it"

// DrainedPod is a pod on a node that is being drained.
type DrainedPod struct {
	clusterstate.Pod
	// PDBs are the namespaces and names of the budgets that select the pod.
	PDBs []string
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

// SelectingPDBs returns the namespaces and names of the budgets that select a pod.
func SelectingPDBs(pod clusterstate.Pod, pdbs []clusterstate.PDB) []string {
	var names []string
	for _, b := range pdbs {
		if b.Selects(pod) {
			names = append(names, b.Namespace+"/"+b.Name)
		}
	}
	return names
}

const (
	// LongDrain is how long a drain lasts before it is explained.
	LongDrain = 10 * time.Minute
	// drainInterval is how long an explanation is used. Pods are not cached, so that each costs a
	// request.
	drainInterval = 5 * time.Minute
	// maxDrains bounds the explanations that are kept.
	maxDrains = 64
)

// Drains explains what holds the drains of nodes.
type Drains struct {
	// Reader reads the PodDisruptionBudgets from the cache, and Live the pods from the API server. A
	// nil Live means that drains are not explained.
	Reader, Live client.Reader
	// TimeOut is how long a drain may take before pods are forced that no budget selects. PDBTimeout
	// is that time for pods that one selects. Negative means without limit.
	TimeOut, PDBTimeout time.Duration
	// IgnoreNamespaces are patterns of the namespaces whose pods are never forced.
	IgnoreNamespaces []string
	// Explanations keeps the last explanation of each drain. It must not be nil if Live is not.
	Explanations *DrainExplanations
}

// DrainExplanations keeps explanations for five minutes. All upgrades share them.
type DrainExplanations struct {
	mu   sync.Mutex
	last map[string]drainExplanation // by node
}

type drainExplanation struct {
	drain string
	at    time.Time
	text  string
}

// Explain returns which pod and which budgets hold the drain of a node, and when the pod is forced; it
// is empty if nothing holds it or the drain is not a long one yet. The pods are listed once in five
// minutes. The drain counts from the start of the upgrade at the earliest.
func (d Drains) Explain(ctx context.Context, node clusterstate.Node, upgradeStart, now time.Time) string {
	start := later(node.DrainStart, upgradeStart)
	if d.Live == nil || !node.Draining || now.Sub(start) < LongDrain {
		return ""
	}
	drain := node.DrainRequest + " " + start.UTC().Format(time.RFC3339)
	if last, found := d.Explanations.get(node.Name); found && last.drain == drain && !now.Before(last.at) && now.Sub(last.at) < drainInterval {
		return last.text
	}
	explanation := d.explain(ctx, node, NewDrainDeadlines(start, d.TimeOut, d.PDBTimeout))
	if ctx.Err() == nil {
		d.Explanations.set(node.Name, drainExplanation{drain, now, explanation})
	}
	return explanation
}

// NextLongDrain returns when the next drain of a node is a long one; zero means that none will be.
func (d Drains) NextLongDrain(nodes []clusterstate.Node, upgradeStart, now time.Time) time.Time {
	var next time.Time
	for _, node := range nodes {
		at := later(node.DrainStart, upgradeStart).Add(LongDrain)
		if d.Live != nil && node.Draining && at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

func (d Drains) explain(ctx context.Context, node clusterstate.Node, deadlines DrainDeadlines) string {
	holders, err := d.holders(ctx, node, deadlines)
	switch {
	case err != nil:
		return "what holds it is unknown: " + text.Reason(err.Error())
	case len(holders) == 0:
		return ""
	case len(holders) > 1:
		return fmt.Sprintf("%s; %d more pods", holders[0], len(holders)-1)
	}
	return holders[0].String()
}

// holder is a pod that holds a drain.
type holder struct {
	DrainedPod
	Hold
}

// holders returns the pods that hold a drain, those that are forced last or never first.
func (d Drains) holders(ctx context.Context, node clusterstate.Node, deadlines DrainDeadlines) ([]holder, error) {
	pods, err := clusterstate.ListPodsOnNode(ctx, d.Live, node.Name)
	if err != nil {
		return nil, err
	}
	pdbs := map[string][]clusterstate.PDB{} // by namespace
	var found []holder
	for _, pod := range pods {
		if pod.IgnoredByDrain {
			continue
		}
		if _, listed := pdbs[pod.Namespace]; !listed {
			if pdbs[pod.Namespace], err = clusterstate.ListPDBs(ctx, d.Reader, pod.Namespace); err != nil {
				return nil, err
			}
		}
		drained := DrainedPod{
			Pod: pod, PDBs: SelectingPDBs(pod, pdbs[pod.Namespace]),
			IgnoredNamespace: text.MatchesAny(pod.Namespace, d.IgnoreNamespaces), NodeReady: node.Ready,
		}
		found = append(found, holder{drained, drained.Hold(deadlines)})
	}
	slices.SortStableFunc(found, func(a, b holder) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), b.ForcedAt().Compare(a.ForcedAt()))
	})
	return found, nil
}

// rank orders the pods by how firmly they hold a drain.
func (h holder) rank() int {
	switch {
	case h.ForcedAt().IsZero():
		return 3
	case h.Reason == HeldByPDB:
		return 2
	case h.Reason == HeldByTermination:
		return 1
	}
	return 0
}

// String returns the pod, what holds it, and when it is forced.
func (h holder) String() string {
	message := "pod " + h.Namespace + "/" + h.Name
	switch {
	case h.Exempt != "" && len(h.PDBs) == 0:
		return message + " cannot be forced: " + h.Exempt
	case h.Reason == HeldByPDB && len(h.PDBs) > 1:
		message += " is held by PodDisruptionBudgets " + text.JoinNames(h.PDBs)
	case h.Reason == HeldByPDB:
		message += " is held by PodDisruptionBudget " + text.JoinNames(h.PDBs)
	case h.Reason == HeldByTermination:
		message += " is terminating"
	default:
		message += " is not evicted yet"
	}
	switch at := h.ForcedAt(); {
	case h.Exempt != "":
		return message + ", cannot be forced: " + h.Exempt
	case at.IsZero():
		return message + ", never forced"
	default:
		return message + ", forced at " + at.UTC().Format(time.RFC3339)
	}
}

func (e *DrainExplanations) get(node string) (drainExplanation, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, found := e.last[node]
	return last, found
}

func (e *DrainExplanations) set(node string, explanation drainExplanation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last == nil || len(e.last) >= maxDrains {
		e.last = map[string]drainExplanation{}
	}
	e.last[node] = explanation
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

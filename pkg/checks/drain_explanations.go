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

const (
	// LongDrain is how long a drain lasts before it is explained.
	LongDrain = 10 * time.Minute
	// drainInterval is how long an explanation is used. Pods are not cached, so each costs a
	// request.
	drainInterval = 5 * time.Minute
	// unknownInterval is how long it is not tried again to read what holds a drain.
	unknownInterval = time.Minute
	// maxDrains bounds the explanations that are kept.
	maxDrains = 64
	// maxHolderNames bounds the names of a pod or of budgets in an explanation, in bytes.
	maxHolderNames = 160
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

// DrainExplanations keeps explanations for five minutes at most. All upgrades share them.
type DrainExplanations struct {
	mu   sync.Mutex
	last map[string]drainExplanation // by node
}

type drainExplanation struct {
	of        string    // what it depends on
	at, until time.Time // when it was read, and when it is read again
	text      string
	pods      []clusterstate.DrainedPod // that are left on the node
}

// isValid reports whether the explanation holds now for what it depends on.
func (e drainExplanation) isValid(of string, now time.Time) bool {
	return e.of == of && !now.Before(e.at) && now.Before(e.until)
}

// IsLong reports whether the drain of a node is explained: it takes long.
func (d Drains) IsLong(node clusterstate.Node, upgradeStart, now time.Time) bool {
	start, active := d.start(node, upgradeStart, now)
	return active && now.Sub(start) >= LongDrain
}

// Explain returns which pod and which budgets hold the drain of a node, and when the pod is forced; it
// is empty if nothing holds it or the drain is not a long one yet. The pods are listed once in five
// minutes, and earlier if an answer is missing, if it depends on something that changed, or if a pod
// should be gone. The drain counts from the start of the upgrade at the earliest.
func (d Drains) Explain(ctx context.Context, node clusterstate.Node, upgradeStart, now time.Time) string {
	if !d.IsLong(node, upgradeStart, now) {
		return ""
	}
	start, _ := d.start(node, upgradeStart, now)
	of := d.dependencies(node, start)
	if last, found := d.Explanations.get(node.Name); found && last.isValid(of, now) {
		return last.text
	}
	explanation := d.explain(ctx, node, clusterstate.NewDrainDeadlines(start, d.TimeOut, d.PDBTimeout), now)
	explanation.of, explanation.at = of, now
	if ctx.Err() == nil {
		d.Explanations.set(node.Name, explanation)
	}
	return explanation.text
}

// Left returns the pods that the last explanation of the drain of a node has found there.
func (d Drains) Left(node clusterstate.Node) []clusterstate.DrainedPod {
	if d.Live == nil || !node.Drain.Active {
		return nil
	}
	last, _ := d.Explanations.get(node.Name)
	return last.pods
}

// NextChange returns when a drain of these nodes becomes a long one, or its explanation is read again
// earlier than usual; zero means neither.
func (d Drains) NextChange(nodes []clusterstate.Node, upgradeStart, now time.Time) time.Time {
	var next time.Time
	for _, node := range nodes {
		start, active := d.start(node, upgradeStart, now)
		if !active {
			continue
		}
		at := start.Add(LongDrain)
		if last, found := d.Explanations.get(node.Name); found && last.isValid(d.dependencies(node, start), now) && last.until.Sub(last.at) < drainInterval {
			at = last.until
		}
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// start returns when the drain of a node began to count; false if it is not explained.
func (d Drains) start(node clusterstate.Node, upgradeStart, now time.Time) (time.Time, bool) {
	if d.Live == nil || !node.Drain.Active {
		return time.Time{}, false
	}
	start := node.Drain.Start(upgradeStart, now)
	return start, !start.IsZero()
}

// dependencies returns what an explanation depends on, apart from the pods and the budgets.
func (d Drains) dependencies(node clusterstate.Node, start time.Time) string {
	return fmt.Sprintf("%s %d %d %d %t %q", node.Drain.Request, start.UnixNano(), d.TimeOut, d.PDBTimeout, node.Ready, d.IgnoreNamespaces)
}

// explain returns what holds the drain of a node, and until when that is an answer.
func (d Drains) explain(ctx context.Context, node clusterstate.Node, deadlines clusterstate.DrainDeadlines, now time.Time) drainExplanation {
	holders, err := d.holders(ctx, node, deadlines, now)
	if err != nil {
		return drainExplanation{until: now.Add(unknownInterval), text: "what holds it is unknown: " + text.Reason(err.Error())}
	}
	explanation := drainExplanation{until: now.Add(drainInterval)}
	for _, h := range holders {
		explanation.pods = append(explanation.pods, h.DrainedPod)
		if at := h.ForcedAt().Add(clusterstate.RefusedAfter); at.After(now) && at.Before(explanation.until) {
			explanation.until = at
		}
	}
	if len(holders) > 0 {
		explanation.text = holders[0].String()
	}
	if others := len(holders) - 1; others > 0 {
		explanation.text += "; " + text.Plural(others, "more pod", "more pods")
	}
	return explanation
}

// holder is a pod that holds a drain.
type holder struct {
	clusterstate.DrainedPod
	clusterstate.Hold

	refused bool // it should be gone
}

// holders returns the pods that hold a drain: first those that should be gone, then those that are
// never forced or forced last.
func (d Drains) holders(ctx context.Context, node clusterstate.Node, deadlines clusterstate.DrainDeadlines, now time.Time) ([]holder, error) {
	lister := clusterstate.DrainedPods{Reader: d.Reader, Live: d.Live, IgnoreNamespaces: d.IgnoreNamespaces}
	pods, _, err := lister.List(ctx, node.Name, node.Ready)
	if err != nil {
		return nil, err
	}
	found := make([]holder, 0, len(pods))
	for _, pod := range pods {
		hold := pod.Hold(deadlines)
		if hold.Reason == clusterstate.HeldByOther && hold.IsOverdue(now) { // it was to be evicted, and is only deleted later
			pod.Refused = true
			hold = pod.Hold(deadlines)
		}
		found = append(found, holder{pod, hold, hold.IsOverdue(now)})
	}
	slices.SortStableFunc(found, func(a, b holder) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), b.ForcedAt().Compare(a.ForcedAt()))
	})
	return found, nil
}

// rank orders the pods by how firmly they hold a drain.
func (h holder) rank() int {
	switch {
	case h.refused:
		return 4
	case h.ForcedAt().IsZero():
		return 3
	case h.Reason == clusterstate.HeldByPDB, h.Reason == clusterstate.HeldByRefusal:
		return 2
	case h.Reason == clusterstate.HeldByTermination:
		return 1
	}
	return 0
}

// String returns the pod, what holds it, and when it is forced.
func (h holder) String() string {
	message := "pod " + text.Truncate(h.Namespace+"/"+h.Name, maxHolderNames)
	switch {
	case h.Exempt != "" && len(h.PDBs) == 0:
		return message + " cannot be forced: " + h.Exempt
	case h.Reason == clusterstate.HeldByPDB:
		message += " is held by " + h.budgets()
	case h.Reason == clusterstate.HeldByRefusal:
		message += " is held by the API server, which refuses its eviction (see the Events DrainBlocked of the node)"
	case h.Reason == clusterstate.HeldByTermination:
		message += " is terminating"
	default:
		message += " is not evicted yet"
	}
	at := h.ForcedAt()
	switch {
	case h.Exempt != "":
		return message + ", cannot be forced: " + h.Exempt
	case at.IsZero():
		return message + ", never forced"
	case h.refused:
		return message + ", was to be forced at " + text.FormatTime(at) +
			": the deletion was refused and is tried again every minute, see the Events DrainBlocked of the node"
	default:
		return message + ", forced at " + text.FormatTime(at)
	}
}

// budgets returns the budgets that select the pod: all of them if the names are short.
func (h holder) budgets() string {
	names := text.JoinNames(h.PDBs)
	switch others := len(h.PDBs) - 1; {
	case others == 0:
		return "PodDisruptionBudget " + text.Truncate(names, maxHolderNames)
	case len(names) <= maxHolderNames:
		return "PodDisruptionBudgets " + names
	default:
		return fmt.Sprintf("PodDisruptionBudgets %s and %d more", text.Truncate(slices.Min(h.PDBs), maxHolderNames), others)
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

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
	// drainInterval is how long an explanation is reused. Each one costs a request because pods are not
	// cached.
	drainInterval = 5 * time.Minute
	// unknownInterval is the time before a failed explanation is retried.
	unknownInterval = time.Minute
	// maxDrains limits the number of cached explanations.
	maxDrains = 64
	// maxHolderNames limits the length of pod and budget names in an explanation, in bytes.
	maxHolderNames = 160
)

// Drains explains what blocks the drains of nodes.
type Drains struct {
	// Reader reads PodDisruptionBudgets from the cache. Live reads pods from the API server.
	Reader, Live client.Reader
	// TimeOut is how long a drain may take before pods without a PodDisruptionBudget are forced. PDBTimeout
	// is the time for pods with one. A negative value disables the limit.
	TimeOut, PDBTimeout time.Duration
	// IgnoreNamespaces lists patterns of namespaces whose pods are never forced.
	IgnoreNamespaces []string
	// Explanations caches the last explanation of each drain. If it is nil, drains are not explained.
	Explanations *DrainExplanations
}

// DrainExplanations caches explanations for up to five minutes. All upgrades share it.
type DrainExplanations struct {
	mu   sync.Mutex
	last map[string]drainExplanation // by node
}

type drainExplanation struct {
	of        string    // the inputs
	at, until time.Time // when it was read and when to read again
	text      string
	pods      []clusterstate.DrainedPod // pods left on the node
}

// isValid reports whether the explanation is current and was made for the same inputs.
func (e drainExplanation) isValid(of string, now time.Time) bool {
	return e.of == of && !now.Before(e.at) && now.Before(e.until)
}

// IsLong reports whether a drain has taken long enough to be explained.
func (d Drains) IsLong(node clusterstate.Node, upgradeStart, now time.Time) bool {
	start, active := d.start(node, upgradeStart, now)
	return active && now.Sub(start) >= LongDrain
}

// Explain says which pod and PodDisruptionBudgets block the drain of a node and when the pod is forced. It
// returns "" if nothing blocks the drain or it is not a long one yet. Pods are listed once every five
// minutes, or earlier if the last attempt failed, an input changed, or a pod should be gone. The drain counts
// from the start of the upgrade at the earliest.
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

// Left returns the pods on the node that the last explanation of its drain found.
func (d Drains) Left(node clusterstate.Node) []clusterstate.DrainedPod {
	if d.Explanations == nil || !node.Drain.Active {
		return nil
	}
	last, _ := d.Explanations.get(node.Name)
	return last.pods
}

// NextChange returns the next time when a drain becomes long or an explanation must be read ahead of the
// regular interval. Zero stands for neither.
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

// start returns when the drain of a node started to count, or false if it is not explained.
func (d Drains) start(node clusterstate.Node, upgradeStart, now time.Time) (time.Time, bool) {
	if d.Explanations == nil || !node.Drain.Active {
		return time.Time{}, false
	}
	start := node.Drain.Start(upgradeStart, now)
	return start, !start.IsZero()
}

// dependencies returns the inputs of an explanation other than pods and PodDisruptionBudgets.
func (d Drains) dependencies(node clusterstate.Node, start time.Time) string {
	return fmt.Sprintf("%s %d %d %d %t %q", node.Drain.Request, start.UnixNano(), d.TimeOut, d.PDBTimeout, node.Ready, d.IgnoreNamespaces)
}

// explain reads what blocks the drain of a node and sets how long the explanation is valid.
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

// holder is a pod that blocks a drain.
type holder struct {
	clusterstate.DrainedPod
	clusterstate.Hold

	refused bool // should be gone
}

// holders returns the pods that block a drain. Pods that should be gone come first, then pods that are never
// forced or forced last.
func (d Drains) holders(ctx context.Context, node clusterstate.Node, deadlines clusterstate.DrainDeadlines, now time.Time) ([]holder, error) {
	lister := clusterstate.DrainedPods{Reader: d.Reader, Live: d.Live, IgnoreNamespaces: d.IgnoreNamespaces}
	pods, _, err := lister.List(ctx, node.Name, node.Ready)
	if err != nil {
		return nil, err
	}
	found := make([]holder, 0, len(pods))
	for _, pod := range pods {
		hold := pod.Hold(deadlines)
		if hold.Reason == clusterstate.HeldByOther && hold.IsOverdue(now) { // was to be evicted and is only deleted later
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

// rank orders pods by how strongly they block a drain.
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

// String names the pod, what blocks its eviction, and when it is forced.
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

// budgets names the PodDisruptionBudgets that select the pod. It names all of them if the names are short.
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

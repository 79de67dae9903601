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
	start := node.Drain.Start(upgradeStart, now)
	if d.Live == nil || !node.Drain.Active || start.IsZero() || now.Sub(start) < LongDrain {
		return ""
	}
	drain := node.Drain.Request + " " + start.UTC().Format(time.RFC3339)
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
		start := node.Drain.Start(upgradeStart, now)
		if d.Live == nil || !node.Drain.Active || start.IsZero() {
			continue
		}
		if at := start.Add(LongDrain); at.After(now) && (next.IsZero() || at.Before(next)) {
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
	lister := DrainedPods{Reader: d.Reader, Live: d.Live, IgnoreNamespaces: d.IgnoreNamespaces}
	pods, _, err := lister.List(ctx, node.Name, node.Ready)
	if err != nil {
		return nil, err
	}
	found := make([]holder, 0, len(pods))
	for _, pod := range pods {
		found = append(found, holder{pod, pod.Hold(deadlines)})
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

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxLists limits the lists of one pass, not counting further pages.
const maxLists = 12

// readDrains reads the pods of nodes that are being drained for the update, longest drains first. It reads as
// many as the list limit allows, but at least one, and leaves one list for the pods of a budget.
func (g *gathering) readDrains(ctx context.Context) {
	var drains []DrainingNode
	ready := map[string]bool{}
	start := g.facts.NewestUpdate().Start
	for _, pool := range g.facts.Rollouts() {
		for i := range pool.Nodes {
			if n := &pool.Nodes[i]; n.Step == clusterstate.StepDraining {
				drains = append(drains, DrainingNode{Node: n.Node.Name, Start: n.Node.Drain.Start(start, g.facts.Now)})
				ready[n.Node.Name] = n.Node.Ready
			}
		}
	}
	if len(drains) == 0 {
		return
	}
	slices.SortFunc(drains, func(a, b DrainingNode) int {
		// Unknown start times are zero and sort first, because such a drain may be a long one.
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Node, b.Node))
	})
	pdbs := map[string][]clusterstate.PDB{}
	for _, b := range g.facts.PDBs {
		pdbs[b.Namespace] = append(pdbs[b.Namespace], b)
	}
	g.facts.Drains = make(map[string]DrainingNode, len(drains))
	left := max(maxLists-g.lists-1, 1)
	for i, drain := range drains {
		if i < left {
			g.lists++
			pods, err := once(ctx, g.Sources, query{queryPodsOfNode, drain.Node}, func(ctx context.Context) ([]clusterstate.Pod, error) {
				return clusterstate.ListPodsOnNode(ctx, g.Live, drain.Node)
			})
			if err != nil {
				g.facts.Missing[SourcePods] = missingOf(err)
			} else {
				drain.Read, drain.Pods = true, clusterstate.NewDrainedPods(pods, pdbs, ready[drain.Node], nil)
			}
		}
		g.facts.Drains[drain.Node] = drain
	}
	g.readBudgetPods(ctx, drains)
	if g.facts.Has(SourcePods) {
		g.facts.Read = append(g.facts.Read, SourcePods)
	}
}

// readBudgetPods reads the pods that share a budget with a pod that blocks a long drain, to find out whether
// another replica would help. Each namespace takes one list, up to the list limit.
func (g *gathering) readBudgetPods(ctx context.Context, drains []DrainingNode) {
	if !g.facts.Has(SourcePods) || !g.facts.Has(SourcePDBs) {
		return
	}
	g.facts.BudgetPods = map[string][]clusterstate.Pod{}
	for _, namespace := range g.namespacesHeldByBudgets(drains) {
		if g.lists >= maxLists {
			return
		}
		g.lists++
		pods, err := g.podsIn(ctx, namespace)
		if err != nil {
			return // the drain is explained without them
		}
		g.facts.BudgetPods[namespace] = pods
	}
}

// namespacesHeldByBudgets returns the namespaces of pods that block a long drain because of a budget, in the
// order of the drains.
func (g *gathering) namespacesHeldByBudgets(drains []DrainingNode) []string {
	var namespaces []string
	for _, drain := range drains {
		drain = g.facts.Drains[drain.Node]
		if !g.facts.isLong(drain) {
			continue
		}
		for i := range drain.Pods {
			pod := &drain.Pods[i]
			if pod.Hold(clusterstate.DrainDeadlines{}).Reason == clusterstate.HeldByPDB && !slices.Contains(namespaces, pod.Namespace) {
				namespaces = append(namespaces, pod.Namespace)
			}
		}
	}
	return namespaces
}

// readAlerts reads all alerts. Gates query only critical alerts, elsewhere.
func readAlerts(ctx context.Context, g *gathering) error {
	switch {
	case g.phase == Gate:
		return nil
	case g.Prometheus == nil:
		return errNoPrometheus
	}
	alerts, err := once(ctx, g.Sources, query{kind: queryActiveAlerts}, g.Prometheus.ActiveAlerts)
	g.facts.Alerts = alerts
	if err != nil { // the error is unrelated to the kinds of the API server
		return errors.New(text.Reason(err.Error()))
	}
	return nil
}

// podsIn returns the pods of a namespace that are selected by budgets.
func (g *gathering) podsIn(ctx context.Context, namespace string) ([]clusterstate.Pod, error) {
	budgets := slices.DeleteFunc(slices.Clone(g.facts.PDBs), func(b clusterstate.PDB) bool { return b.Namespace != namespace })
	return once(ctx, g.Sources, query{queryPodsIn, namespace}, func(ctx context.Context) ([]clusterstate.Pod, error) {
		pods, err := clusterstate.ListPodsIn(ctx, g.Live, namespace)
		return slices.DeleteFunc(pods, func(p clusterstate.Pod) bool {
			return !slices.ContainsFunc(budgets, func(b clusterstate.PDB) bool { return b.Selects(p) })
		}), err
	})
}

// forgetPods drops pods that this pass did not need: pods of nodes whose drain has ended, and of namespaces
// whose budgets do not block a drain.
func (g *gathering) forgetPods() {
	if g.Sources == nil {
		return
	}
	g.Sources.mu.Lock()
	defer g.Sources.mu.Unlock()
	maps.DeleteFunc(g.Sources.last, func(q query, _ idler) bool {
		_, isDraining := g.facts.Drains[q.id]
		_, isHeld := g.facts.BudgetPods[q.id]
		return q.kind == queryPodsOfNode && !isDraining || q.kind == queryPodsIn && !isHeld
	})
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"context"
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxLists bounds the lists of one pass, apart from their pages.
const maxLists = 12

// readDrains reads the pods of the nodes that are being drained for the update, the longest drains first:
// as many of them as the bound of the lists allows, and at least one. One list is left for the pods of a
// budget.
func (g *gathering) readDrains(ctx context.Context) {
	var drains []Drain
	ready := map[string]bool{}
	start := g.facts.NewestUpdate().Start
	for _, pool := range g.facts.Rollouts() {
		for i := range pool.Nodes {
			if n := &pool.Nodes[i]; n.Step == checks.StepDraining {
				drains = append(drains, Drain{Node: n.Node.Name, Start: n.Node.Drain.Start(start, g.facts.Now)})
				ready[n.Node.Name] = n.Node.Ready
			}
		}
	}
	if len(drains) == 0 {
		return
	}
	slices.SortFunc(drains, func(a, b Drain) int {
		// An unknown time is zero, thus first: it may be a long one.
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Node, b.Node))
	})
	pdbs := map[string][]clusterstate.PDB{}
	for _, b := range g.facts.PDBs {
		pdbs[b.Namespace] = append(pdbs[b.Namespace], b)
	}
	g.facts.Drains = make(map[string]Drain, len(drains))
	left := max(maxLists-g.lists-1, 1)
	for i, drain := range drains {
		if i < left {
			g.lists++
			pods, err := g.Memory.podsOn(ctx, g.Readers, drain.Node)
			if err != nil {
				g.facts.Missing[SourcePods] = missingOf(err)
			} else {
				drain.Read, drain.Pods = true, checks.NewDrainedPods(pods, pdbs, ready[drain.Node], nil)
			}
		}
		g.facts.Drains[drain.Node] = drain
	}
	g.readBudgetPods(ctx, drains)
	g.Memory.forgetPods(g.facts.Drains, g.facts.BudgetPods)
	if g.facts.Has(SourcePods) {
		g.facts.Read = append(g.facts.Read, SourcePods)
	}
}

// readBudgetPods reads the pods that share a budget with a pod that holds a long drain: they show whether
// one more replica would help. It reads one namespace by one list, for as long as the bound of the lists
// allows.
func (g *gathering) readBudgetPods(ctx context.Context, drains []Drain) {
	if !g.facts.Has(SourcePods) || !g.facts.Has(SourcePDBs) {
		return
	}
	g.facts.BudgetPods = map[string][]clusterstate.Pod{}
	for _, namespace := range g.namespacesHeldByBudgets(drains) {
		if g.lists >= maxLists {
			return
		}
		g.lists++
		pods, err := g.Memory.podsIn(ctx, g.Readers, namespace, g.budgetsIn(namespace))
		if err != nil {
			return // what holds the drain is known without them
		}
		g.facts.BudgetPods[namespace] = pods
	}
}

// namespacesHeldByBudgets returns the namespaces of the pods that hold a long drain because of a budget, in
// the order of the drains.
func (g *gathering) namespacesHeldByBudgets(drains []Drain) []string {
	var namespaces []string
	for _, drain := range drains {
		drain = g.facts.Drains[drain.Node]
		if !g.facts.isLong(drain) {
			continue
		}
		for i := range drain.Pods {
			pod := &drain.Pods[i]
			if pod.Hold(checks.DrainDeadlines{}).Reason == checks.HeldByPDB && !slices.Contains(namespaces, pod.Namespace) {
				namespaces = append(namespaces, pod.Namespace)
			}
		}
	}
	return namespaces
}

func (g *gathering) budgetsIn(namespace string) []*clusterstate.PDB {
	var budgets []*clusterstate.PDB
	for i := range g.facts.PDBs {
		if b := &g.facts.PDBs[i]; b.Namespace == namespace {
			budgets = append(budgets, b)
		}
	}
	return budgets
}

// readAlerts reads the alerts while an update is in progress.
func (g *gathering) readAlerts(ctx context.Context) {
	if !g.Always && !g.facts.Updating() {
		return
	}
	if g.Prometheus == nil {
		g.facts.Missing[SourceAlerts] = Missing{Reason: MissingNotConfigured, Message: "no source of alerts is configured"}
		return
	}
	alerts, err := g.Memory.activeAlerts(ctx, g.Readers)
	if err != nil {
		g.facts.Missing[SourceAlerts] = Missing{Reason: MissingUnavailable, Message: text.Reason(err.Error())}
		return
	}
	g.facts.Alerts, g.facts.Read = alerts, append(g.facts.Read, SourceAlerts)
}

// podsOn returns the pods on a node that are not older than a minute.
func (m *Memory) podsOn(ctx context.Context, r Readers, node string) ([]clusterstate.Pod, error) {
	return m.podsOf(ctx, r, podsKey{node: node}, func() ([]clusterstate.Pod, error) {
		return clusterstate.ListPodsOnNode(ctx, r.Live, node)
	})
}

// podsIn returns the pods of a namespace that budgets select and that are not older than a minute.
func (m *Memory) podsIn(ctx context.Context, r Readers, namespace string, budgets []*clusterstate.PDB) ([]clusterstate.Pod, error) {
	return m.podsOf(ctx, r, podsKey{namespace: namespace}, func() ([]clusterstate.Pod, error) {
		pods, err := clusterstate.ListPodsIn(ctx, r.Live, namespace)
		return slices.DeleteFunc(pods, func(p clusterstate.Pod) bool {
			return !slices.ContainsFunc(budgets, func(b *clusterstate.PDB) bool { return b.Selects(p) })
		}), err
	})
}

// podsOf returns what a read of pods returned in the last minute. A nil Memory reads each time.
func (m *Memory) podsOf(ctx context.Context, r Readers, key podsKey, read func() ([]clusterstate.Pod, error)) ([]clusterstate.Pod, error) {
	if m == nil {
		return read()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := r.Clock.Now()
	if last, found := m.pods[key]; found && last.isValid(now) {
		return last.value, last.err
	}
	pods, err := read()
	if ctx.Err() == nil {
		if m.pods == nil {
			m.pods = map[podsKey]remembered[[]clusterstate.Pod]{}
		}
		m.pods[key] = remembered[[]clusterstate.Pod]{at: now, value: pods, err: err}
	}
	return pods, err
}

// forgetPods drops the pods of nodes that are not being drained any more, and of namespaces whose budgets
// hold no drain.
func (m *Memory) forgetPods(drains map[string]Drain, namespaces map[string][]clusterstate.Pod) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.pods {
		_, draining := drains[key.node]
		if _, held := namespaces[key.namespace]; !draining && !held {
			delete(m.pods, key)
		}
	}
}

// activeAlerts returns alerts that are not older than a minute. A nil Memory queries them each time.
func (m *Memory) activeAlerts(ctx context.Context, r Readers) ([]clusterstate.Alert, error) {
	if m == nil {
		return r.Prometheus.ActiveAlerts(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := r.Clock.Now()
	if m.alerts.isValid(now) {
		return m.alerts.value, m.alerts.err
	}
	alerts, err := r.Prometheus.ActiveAlerts(ctx)
	if ctx.Err() == nil {
		m.alerts = remembered[[]clusterstate.Alert]{at: now, value: alerts, err: err}
	}
	return alerts, err
}

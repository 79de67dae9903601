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

// readDrains reads the pods of the nodes that are being drained for the update, the longest drains first: as many of
// them as the bound of the lists allows, and at least one.
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
	left := max(maxLists-g.lists, 1)
	for i, drain := range drains {
		if i < left {
			pods, err := g.Memory.podsOn(ctx, g.Readers, drain.Node)
			if err != nil {
				g.facts.Missing[SourcePods] = missingOf(err)
			} else {
				drain.Read, drain.Pods = true, checks.NewDrainedPods(pods, pdbs, ready[drain.Node], nil)
			}
		}
		g.facts.Drains[drain.Node] = drain
	}
	g.Memory.forgetPods(g.facts.Drains)
	if g.facts.Has(SourcePods) {
		g.facts.Read = append(g.facts.Read, SourcePods)
	}
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

// podsOn returns the pods on a node that are not older than a minute. A nil Memory reads them each
// time.
func (m *Memory) podsOn(ctx context.Context, r Readers, node string) ([]clusterstate.Pod, error) {
	if m == nil {
		return clusterstate.ListPodsOnNode(ctx, r.Live, node)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := r.Clock.Now()
	if last, found := m.pods[node]; found && last.isValid(now) {
		return last.value, last.err
	}
	pods, err := clusterstate.ListPodsOnNode(ctx, r.Live, node)
	if ctx.Err() == nil {
		if m.pods == nil {
			m.pods = map[string]remembered[[]clusterstate.Pod]{}
		}
		m.pods[node] = remembered[[]clusterstate.Pod]{at: now, value: pods, err: err}
	}
	return pods, err
}

// forgetPods drops the pods of nodes that are not being drained any more.
func (m *Memory) forgetPods(drains map[string]Drain) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for node := range m.pods {
		if _, draining := drains[node]; !draining {
			delete(m.pods, node)
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

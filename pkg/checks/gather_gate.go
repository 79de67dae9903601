// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Reads returns the kinds that gates read from the cache, without duplicates.
func Reads() []client.Object {
	var kinds []client.Object
	for _, rule := range rulesOf(Gate) {
		for _, source := range rule.Needs {
			if kind := sources[source].cached; kind != nil && !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

func (r Runner) gathering() *gathering {
	g := newGathering(Gate, Readers{Reader: r.Reader, Live: r.Live, Sources: r.Sources})
	g.facts.Now, g.facts.Options = r.Sources.now(), r.Options
	return g
}

// readMachines determines which Machines are being deleted, if that may explain a cordoned node.
func readMachines(ctx context.Context, g *gathering) error {
	if g.Live == nil {
		return nil
	}
	for i := range g.facts.Nodes {
		node := &g.facts.Nodes[i]
		if node.Machine == "" || !node.CordonedByHand() || text.MatchesAny(node.Name, g.facts.Options.ExcludeNodes) {
			continue
		}
		machines, err := once(ctx, g.Sources, query{kind: queryMachines}, func(ctx context.Context) (map[string]bool, error) {
			return clusterstate.ListDeletingMachines(ctx, g.Live)
		})
		if err != nil {
			return fmt.Errorf("determining why node %s is cordoned: %w", node.Name, err)
		}
		g.facts.DeletingMachines = machines
		return nil
	}
	return nil
}

// maxCompared limits the namespaces whose pods are read to compare the budgets for a plan.
const maxCompared = 8

// readOverlaps finds overlapping budgets. It reads the pods of a namespace if selectors and counts are
// inconclusive. An exempt budget does not block evictions by itself but does in combination with another
// budget.
func readOverlaps(ctx context.Context, g *gathering) error {
	exempts := g.facts.Options.exemptsPDB
	sorted := slices.Clone(g.facts.PDBs)
	slices.SortStableFunc(sorted, func(a, b clusterstate.PDB) int { // exempt budgets last within a namespace
		switch exempt := exempts(a); {
		case a.Namespace != b.Namespace || exempt == exempts(b):
			return 0
		case exempt:
			return 1
		}
		return -1
	})
	pairs, undecided := clusterstate.OverlappingPDBs(sorted)
	var errs []error
	for i, group := range undecided {
		var more []clusterstate.PDBPair
		err := errTooManyNamespaces
		if i < maxCompared || g.phase == Gate {
			more, err = g.overlapsOnPods(ctx, group)
		}
		if pairs = append(pairs, more...); err != nil {
			g.facts.UncomparedPDBs, errs = append(g.facts.UncomparedPDBs, group[0].Namespace), append(errs, err)
		}
	}
	g.facts.PDBOverlaps = pairs
	return errors.Join(errs...)
}

var errTooManyNamespaces = errors.New("there are too many namespaces")

// overlapsOnPods returns the pairs of budgets in a namespace that select a common pod. Pods are listed at
// most once per interval unless a budget changes.
func (g *gathering) overlapsOnPods(ctx context.Context, pdbs []clusterstate.PDB) ([]clusterstate.PDBPair, error) {
	namespace := pdbs[0].Namespace
	if g.Live == nil {
		return nil, fmt.Errorf("determining whether PodDisruptionBudgets in namespace %s overlap: no access to the API server", namespace)
	}
	var budgets strings.Builder
	for _, pdb := range pdbs {
		budgets.WriteString(pdb.Name + "\n" + pdb.Selector() + "\n")
	}
	return once(ctx, g.Sources, query{queryOverlaps, namespace + "/" + text.Hash(budgets.String(), 16)}, func(ctx context.Context) ([]clusterstate.PDBPair, error) {
		pods, err := clusterstate.ListPodsIn(ctx, g.Live, namespace)
		if err != nil {
			return nil, err
		}
		return clusterstate.OverlapsOn(pods, pdbs), nil
	})
}

func readCriticalAlerts(ctx context.Context, g *gathering) error {
	if g.Sources != nil && g.Sources.AlertsDisabled {
		g.facts.AlertsDisabled = true
		return nil
	}
	prometheus, err := g.Sources.prometheus()
	if err != nil {
		return err
	}
	blocks := func(alerts []clusterstate.Alert) bool { return len(g.facts.Options.blockingAlerts(alerts)) > 0 }
	g.facts.CriticalAlerts, err = ask(ctx, g, query{kind: queryCriticalAlerts}, blocks, prometheus.CriticalAlerts)
	return err
}

// maxFailedQueries is the number of failed queries per upgrade object after which the rest is skipped,
// because an unresponsive source must not delay the pass by one timeout per query.
const maxFailedQueries = 3

func eachQuery[T any](queries []T, send func(T) error) error {
	var errs []error
	for i := range queries {
		if err := send(queries[i]); err != nil {
			if errs = append(errs, err); len(errs) == maxFailedQueries {
				break
			}
		}
	}
	return errors.Join(errs...)
}

func readQueries(ctx context.Context, g *gathering) error {
	return eachQuery(g.facts.Options.Queries, func(expression string) error {
		prometheus, err := g.Sources.prometheus()
		hasSamples := false
		if err == nil {
			hasSamples, err = ask(ctx, g, query{querySamples, text.Hash(expression, 32)}, func(samples bool) bool { return samples },
				func(ctx context.Context) (bool, error) { return prometheus.HasSamples(ctx, expression) })
		}
		if err != nil {
			return fmt.Errorf("custom query %s: %w", text.Excerpt(expression), err)
		}
		if hasSamples {
			g.facts.QueriesWithSamples = append(g.facts.QueriesWithSamples, expression)
		}
		return nil
	})
}

// ask returns the last result of a gate's query, or sends the query. An outdated result is sufficient if it
// blocks or if an earlier rule blocks anyway. Any other outdated result keeps the gate closed until it is
// renewed.
func ask[T any](ctx context.Context, g *gathering, q query, blocks func(T) bool, send func(context.Context) (T, error)) (T, error) {
	last, err := remember(ctx, g.Sources, q, func(outdated T) bool { return g.urgent && !blocks(outdated) }, send)
	switch {
	case err != nil || blocks(last.value) || !last.fresh && !g.urgent:
		g.retryAfter(last.repeatIn)
	case !last.fresh:
		g.retryAfter(last.urgentIn)
	}
	return last.value, err
}

// retryAfter records when a newer result is available. The time is 0 if this result can open a gate.
func (g *gathering) retryAfter(after time.Duration) {
	if after > 0 && (g.retry == 0 || after < g.retry) {
		g.retry = after
	}
}

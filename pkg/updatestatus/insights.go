// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
)

// maxInformers limits how many informers are shown, not counting built-in ones.
const maxInformers = 64

func applyBuiltIn(state insight.Store, facts checks.Facts) {
	var answers []insight.Answer
	var lists [][]updatev1beta1.Insight
	brief := map[string]time.Duration{} // how long these insights must last
	for _, informer := range checks.Informers() {
		answer := insight.Answer{Informer: informer.Name, Result: insight.Success, At: facts.Now, Live: true, Unread: facts.Unread(checks.Update)}
		if slices.ContainsFunc(informer.Requires, func(s checks.FactSource) bool { return !facts.Has(s) }) ||
			informer.OnlyDuringUpdate && !facts.Updating() { // what it has found may still apply
			answer.Result = insight.Failure
		}
		for _, finding := range informer.Find(facts) {
			made := insight.FromFinding(informer.Name, finding, facts.Now)
			if finding.MinDuration > 0 {
				brief[made.UUID] = finding.MinDuration
			}
			answer.Insights = append(answer.Insights, made)
		}
		answers = append(answers, answer)
	}
	since := state.KnownSince(slices.Collect(maps.Keys(brief)), facts.Now)
	for i := range answers {
		answers[i].Insights = slices.DeleteFunc(answers[i].Insights, func(made updatev1beta1.Insight) bool {
			return facts.Now.Sub(since[made.UUID]) < brief[made.UUID]
		})
		lists = append(lists, answers[i].Insights)
	}
	insight.Link(lists...)
	for _, answer := range answers {
		state.Apply(answer, facts.Now)
	}
}

// addInsights adds the insights to their sections, within the limits.
func (c *computation) addInsights() {
	c.dropped = map[string]int{}
	retained := map[string]bool{}
	for _, r := range c.afterUpdate() {
		retained[r.Insight.UUID] = true
	}
	all, others := boundInformers(c.Insights.Insights())
	for _, of := range all {
		sections := map[*updatev1beta1.Section][]updatev1beta1.Insight{}
		for i := range of.Insights {
			if retained[of.Insights[i].UUID] {
				continue
			}
			for _, section := range c.sectionsOf(&of.Insights[i]) {
				sections[section] = append(sections[section], of.Insights[i])
			}
		}
		c.place(&c.controlPlane, of.Name, sections[&c.controlPlane], insight.MaxControlPlane)
		for _, p := range c.pools {
			c.place(&p.status.Section, of.Name, sections[&p.status.Section], insight.MaxPool)
		}
	}
	poolsDropped := c.boundPools()
	if others > 0 {
		c.truncated("informers", fmt.Sprintf("The insights of %d informers beyond the limit of %d are not shown.", others, maxInformers))
	}
	for _, name := range slices.Sorted(maps.Keys(c.dropped)) {
		c.truncated(name, insight.NotShown(name, c.dropped[name]))
	}
	if poolsDropped > 0 {
		c.truncated("pools", fmt.Sprintf("%d pools beyond the limit of %d are not shown.", poolsDropped, maxPools))
	}
}

// boundInformers returns the insights of the built-in informers and of up to maxInformers others, and the
// number of informers left out. Informers with more severe insights take precedence.
func boundInformers(all []updatev1beta1.InformerInsights) (kept []updatev1beta1.InformerInsights, dropped int) {
	worst := func(of updatev1beta1.InformerInsights) int {
		if insight.IsBuiltIn(of.Name) {
			return math.MaxInt
		}
		return of.Insights[0].Impact.Level.Rank() // sorted by severity
	}
	builtIn := 0
	for i := range all {
		if insight.IsBuiltIn(all[i].Name) {
			builtIn++
		}
	}
	limit := maxInformers + builtIn
	if len(all) <= limit {
		return all, 0
	}
	kept = slices.SortedStableFunc(slices.Values(all), func(a, b updatev1beta1.InformerInsights) int { return cmp.Compare(worst(b), worst(a)) })[:limit]
	slices.SortFunc(kept, func(a, b updatev1beta1.InformerInsights) int { return cmp.Compare(a.Name, b.Name) })
	return kept, len(all) - limit
}

func (c *computation) place(section *updatev1beta1.Section, informer string, insights []updatev1beta1.Insight, limit int) {
	if len(insights) == 0 {
		return
	}
	kept, dropped := insight.Keep(insights, limit)
	if dropped > 0 {
		c.dropped[informer] += dropped
	}
	section.UpdateInformers = append(section.UpdateInformers, updatev1beta1.InformerInsights{Name: informer, Insights: kept})
}

// sectionsOf returns the sections that should show an insight: the pools that it names or the pools of its
// nodes. If there are none, it returns the control plane so the insight is not lost.
func (c *computation) sectionsOf(of *updatev1beta1.Insight) []*updatev1beta1.Section {
	if of.Scope.Type != updatev1beta1.ScopeWorkerPool {
		return []*updatev1beta1.Section{&c.controlPlane}
	}
	var sections []*updatev1beta1.Section
	for _, p := range c.pools {
		named := slices.ContainsFunc(of.Scope.WorkerPool, func(r updatev1beta1.ResourceReference) bool {
			return p.status.Kind != "" && sameObject(r, p.ref())
		})
		if named || len(of.Scope.WorkerPool) == 0 && c.involvesNodeOf(of, p) {
			sections = append(sections, &p.status.Section)
		}
	}
	if len(sections) == 0 {
		return []*updatev1beta1.Section{&c.controlPlane}
	}
	return sections
}

func (c *computation) involvesNodeOf(of *updatev1beta1.Insight, p *pool) bool {
	return slices.ContainsFunc(of.Scope.Resources, func(r updatev1beta1.ResourceReference) bool {
		return r.Kind == "Node" && p.nodes[r.Name] && (p.status.Kind == poolKind || p.status.Kind == "" || !c.inConfigPool(r.Name))
	})
}

// inConfigPool reports whether a node belongs to a MachineConfigPool other than the control plane pool.
func (c *computation) inConfigPool(node string) bool {
	return slices.ContainsFunc(c.pools, func(p *pool) bool {
		return p.status.Kind == poolKind && p.nodes[node]
	})
}

func (c *computation) truncated(name, summary string) {
	made := insight.About(name, updatev1beta1.ReasonTruncated, updatev1beta1.LevelInfo, summary, "", c.now)
	c.controlPlane.UpdateInformers = insight.AddOwn(c.controlPlane.UpdateInformers, made, c.Previous.ControlPlane)
}

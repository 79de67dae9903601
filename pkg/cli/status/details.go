// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// reported pairs an insight with its informer.
type reported struct {
	informer string
	insight  updatev1beta1.Insight
}

// renderDetails returns the selected insights with descriptions. If selected is nil, it returns all.
func (s *statusScreen) renderDetails(selected func(updatev1beta1.Insight) bool) string {
	if control := s.status.ControlPlane; control != nil {
		s.section("Control plane", control.Section, selected)
	}
	for i := range s.status.WorkerPools {
		pool := &s.status.WorkerPools[i]
		name := reference(updatev1beta1.ResourceReference{Kind: pool.Kind, Namespace: pool.Namespace, Name: pool.Name})
		s.section(strings.TrimSpace(name), pool.Section, selected)
	}
	if len(s.Lines) == 0 {
		s.Lines = append(s.Lines, "There are no insights about the selected objects.")
	}
	return s.String()
}

// section adds the insights and conditions of a section.
func (s *statusScreen) section(name string, section updatev1beta1.Section, selected func(updatev1beta1.Insight) bool) {
	var found []reported
	for _, informer := range section.UpdateInformers {
		for i := range informer.Insights {
			if selected == nil || selected(informer.Insights[i]) {
				found = append(found, reported{informer.Name, informer.Insights[i]})
			}
		}
	}
	if len(found) == 0 && (selected != nil || len(section.Conditions) == 0) {
		return
	}
	slices.SortStableFunc(found, func(a, b reported) int {
		return cmp.Compare(b.insight.Impact.Level.Rank(), a.insight.Impact.Level.Rank())
	})
	if len(s.Lines) > 0 {
		s.Lines = append(s.Lines, "")
	}
	s.Hang("", name)
	if selected == nil {
		for _, condition := range section.Conditions {
			s.Text("", fmt.Sprintf("%s %s (%s): %s", screen.Clean(condition.Type), condition.Status, screen.Clean(condition.Reason), screen.Clean(condition.Message)))
		}
	}
	for _, r := range found {
		s.insight(r)
	}
}

// renderParts returns the operators that are not updated and all nodes. If they cannot be read, it says why.
func (s *statusScreen) renderParts(facts checks.Facts) string {
	var operators, nodes [][3]string
	all, _ := facts.ReleaseOperators()
	for i := range all {
		if o := &all[i]; facts.Has(checks.SourceClusterVersion) && !facts.IsOperatorUpdated(*o) {
			state, message := operatorState(o)
			operators = append(operators, [3]string{screen.Clean(o.Name), screen.OrDefault(screen.Clean(o.Version), "no version"), strings.TrimSuffix(state+": "+screen.Clean(message), ": ")})
		}
	}
	s.partsTable("Operators that are not updated", operators, facts.Missing[checks.SourceOperators])
	rollouts := map[string]clusterstate.NodeProgress{}
	for _, rollout := range facts.Rollouts() {
		for _, n := range rollout.Nodes {
			rollouts[n.Node.Name] = n
		}
	}
	for _, node := range facts.Nodes {
		pool := clusterstate.PoolOf(facts.Pools, &node)
		nodes = append(nodes, [3]string{screen.Clean(node.Name), screen.OrDefault(screen.Clean(pool), "no pool"), nodeState(node, rollouts)})
	}
	slices.SortStableFunc(nodes, func(a, b [3]string) int { return cmp.Or(cmp.Compare(a[1], b[1]), cmp.Compare(a[0], b[0])) })
	s.partsTable("Nodes", nodes, facts.Missing[checks.SourceNodes])
	if len(s.Lines) == 0 {
		s.Hang("", "No node is known.")
	}
	return s.String()
}

// partsTable adds a table with a heading, or explains why it cannot be read.
func (s *statusScreen) partsTable(heading string, rows [][3]string, missing checks.Missing) {
	if missing.Message != "" {
		heading += ": " + screen.Clean(missing.Message)
	} else if len(rows) == 0 {
		return
	}
	if len(s.Lines) > 0 {
		s.Lines = append(s.Lines, "")
	}
	s.Hang("", heading)
	s.Table("", rows)
}

// operatorState returns the state and the message of an operator that is not updated.
func operatorState(o *clusterstate.ClusterOperator) (state, message string) {
	switch {
	case o.IsUnavailable():
		return "not available", o.Available.MessageOrReason()
	case o.IsDegraded():
		return "degraded", o.Degraded.MessageOrReason()
	case o.Progressing.IsTrue():
		return "updating", o.Progressing.MessageOrReason()
	}
	return "pending", ""
}

// nodeState describes a node's progress in its pool's rollout and its problems.
func nodeState(node clusterstate.Node, rollouts map[string]clusterstate.NodeProgress) string {
	states := []string{"not updated with the release"}
	if n, found := rollouts[node.Name]; found {
		switch {
		case n.Updated():
			states[0] = "updated"
		case n.Step == clusterstate.StepNone:
			states[0] = "pending"
		default:
			states[0] = strings.ToLower(string(n.Step))
		}
	}
	for _, flag := range []struct {
		is   bool
		name string
	}{{!node.Ready, "not ready"}, {node.Degraded(), "degraded"}, {node.Cordoned, "cordoned"}, {node.BeingDeleted, "being deleted"}} {
		if flag.is {
			states = append(states, flag.name)
		}
	}
	return strings.Join(states, ", ")
}

// insight adds an insight with its summary, objects, description, and reference.
func (s *statusScreen) insight(r reported) {
	i := r.insight
	facts := []string{screen.Clean(r.informer)}
	if !i.FirstObservedTime.IsZero() {
		facts = append(facts, s.age(i.FirstObservedTime.Time))
	}
	if i.StaleSince != nil {
		facts = append(facts, "not confirmed"+s.forSince(i.StaleSince))
	}
	if i.Flaps > 0 {
		facts = append(facts, fmt.Sprintf("returned %d times", i.Flaps))
	}
	s.Text(screen.Clean(string(i.Impact.Level)), screen.Clean(i.Impact.Summary)+" ("+strings.Join(facts, ", ")+")")
	var objects []string
	for _, object := range i.Scope.Resources {
		objects = append(objects, reference(object))
	}
	for _, more := range []string{strings.Join(objects, ", "), screen.Clean(i.Impact.Description), screen.Clean(i.Remediation.Reference)} {
		if more != "" {
			s.Hang(screen.Blank(screen.LabelWidth+screen.ColumnGap), more)
		}
	}
}

// renderSources returns the sources of the assessment and the recently resolved insights.
func (s *statusScreen) renderSources() string {
	s.Hang("", "Sources")
	for _, source := range s.assessment.Sources {
		state := "current"
		if !source.Current {
			state = "missing"
		}
		line := screen.Clean(source.Name)
		if source.Message != "" {
			line += ": " + screen.Clean(source.Message) + s.forSince(source.Since)
		} else if source.ObservedTime != nil {
			line += ", read " + s.ago(source.ObservedTime.Time)
		}
		if source.Detail != "" {
			line += " (" + screen.Clean(source.Detail) + ")"
		}
		s.Text(state, line)
	}
	for i, resolved := range s.status.RecentlyResolved {
		if i == 0 {
			s.Lines = append(s.Lines, "", "Recently resolved")
		}
		line := fmt.Sprintf("%s (%s, %s)", screen.Clean(resolved.Summary), screen.Clean(resolved.UpdateInformer), s.ago(resolved.ResolvedTime.Time))
		if resolved.Reason != updatev1beta1.ResolutionResolved {
			line += ": " + screen.Clean(string(resolved.Reason)) + ", it may still apply"
		}
		s.Text(screen.Clean(string(resolved.Level)), line)
	}
	return s.String()
}

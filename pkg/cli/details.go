// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// levels are the severities of insights, the most severe first.
var levels = []updatev1beta1.Level{
	updatev1beta1.LevelCritical, updatev1beta1.LevelError, updatev1beta1.LevelWarning, updatev1beta1.LevelInfo, updatev1beta1.LevelStatus,
}

// reported is an insight, and the informer that reports it.
type reported struct {
	informer string
	insight  updatev1beta1.Insight
}

// renderDetails returns the insights that are selected, with their descriptions; select nil means all.
func (s *screen) renderDetails(selected func(updatev1beta1.Insight) bool) string {
	if control := s.status.ControlPlane; control != nil {
		s.section("Control plane", control.Section, selected)
	}
	for i := range s.status.WorkerPools {
		pool := &s.status.WorkerPools[i]
		name := reference(updatev1beta1.ResourceReference{Kind: pool.Kind, Namespace: pool.Namespace, Name: pool.Name})
		s.section(strings.TrimSpace(name), pool.Section, selected)
	}
	if len(s.lines) == 0 {
		s.lines = append(s.lines, "There are no insights about the selected objects.")
	}
	return s.String()
}

// section adds the insights and conditions of a section.
func (s *screen) section(name string, section updatev1beta1.Section, selected func(updatev1beta1.Insight) bool) {
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
		return cmp.Compare(slices.Index(levels, a.insight.Impact.Level), slices.Index(levels, b.insight.Impact.Level))
	})
	if len(s.lines) > 0 {
		s.lines = append(s.lines, "")
	}
	s.hang("", name)
	if selected == nil {
		for _, condition := range section.Conditions {
			s.text("", fmt.Sprintf("%s %s (%s): %s", clean(condition.Type), condition.Status, clean(condition.Reason), clean(condition.Message)))
		}
	}
	for _, r := range found {
		s.insight(r)
	}
}

// insight adds an insight: its summary, objects, description, and reference.
func (s *screen) insight(r reported) {
	i := r.insight
	facts := []string{clean(r.informer)}
	if !i.FirstObservedTime.IsZero() {
		facts = append(facts, s.age(i.FirstObservedTime.Time))
	}
	if i.StaleSince != nil {
		facts = append(facts, "not confirmed"+s.forSince(i.StaleSince))
	}
	if i.Flaps > 0 {
		facts = append(facts, fmt.Sprintf("returned %d times", i.Flaps))
	}
	s.text(clean(string(i.Impact.Level)), clean(i.Impact.Summary)+" ("+strings.Join(facts, ", ")+")")
	var objects []string
	for _, object := range i.Scope.Resources {
		objects = append(objects, reference(object))
	}
	for _, more := range []string{strings.Join(objects, ", "), clean(i.Impact.Description), clean(i.Remediation.Reference)} {
		if more != "" {
			s.hang(blank(labelWidth+columnGap), more)
		}
	}
}

// renderSources returns the sources of the assessment, and what was resolved recently.
func (s *screen) renderSources() string {
	s.hang("", "Sources")
	for _, source := range s.assessment.Sources {
		state := "current"
		if !source.Current {
			state = "missing"
		}
		line := clean(source.Name)
		if source.Message != "" {
			line += ": " + clean(source.Message) + s.forSince(source.Since)
		} else if source.ObservedTime != nil {
			line += ", read " + s.ago(source.ObservedTime.Time)
		}
		if source.Detail != "" {
			line += " (" + clean(source.Detail) + ")"
		}
		s.text(state, line)
	}
	for i, resolved := range s.status.RecentlyResolved {
		if i == 0 {
			s.lines = append(s.lines, "", "Recently resolved")
		}
		line := fmt.Sprintf("%s (%s, %s)", clean(resolved.Summary), clean(resolved.UpdateInformer), s.ago(resolved.ResolvedTime.Time))
		if resolved.Reason != updatev1beta1.ResolutionResolved {
			line += ": " + clean(string(resolved.Reason)) + ", it may still apply"
		}
		s.text(clean(string(resolved.Level)), line)
	}
	return s.String()
}

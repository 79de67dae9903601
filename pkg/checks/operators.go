// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// findOperators returns findings for ClusterOperators that are unavailable or degraded, or that do not report
// these conditions.
func findOperators(in Facts, phase RulePhase) []Finding {
	if phase == Update {
		return in.findOperators()
	}
	var unavailable, degraded []Finding
	var silent []string
	for _, operator := range in.Operators {
		if in.Options.excludesOperator(operator.Name) {
			continue
		}
		if missing := operator.Unreported(); len(missing) > 0 {
			silent = append(silent, text.WithReason(operator.Name, missingConditions(missing)))
		}
		if operator.IsUnavailable() {
			f := newFinding("OperatorUnavailable", "cluster operators unavailable", operatorResource(operator.Name))
			f.Description = text.Excerpt(operator.Available.Reason)
			unavailable = append(unavailable, f)
		}
		if operator.IsDegraded() {
			f := newFinding("OperatorDegraded", "cluster operators degraded", operatorResource(operator.Name))
			f.Description = text.Excerpt(operator.Degraded.Reason)
			degraded = append(degraded, f)
		}
	}
	found := append(unavailable, degraded...)
	if len(silent) > 0 {
		const summary = "cluster operators do not report their state"
		found = append(found, unknownFinding("OperatorStateUnknown", "unreadable/operator", summary, fmt.Errorf(summary+": %s", text.JoinNames(silent))))
	}
	if in.Has(SourceOperators) {
		found = append(found, in.Options.unusedOperatorPatterns(in.Operators)...)
	}
	return found
}

func missingConditions(names []string) string {
	if len(names) == 1 {
		return "no condition " + names[0]
	}
	return "no conditions " + strings.Join(names, " and ")
}

const operatorPrefix = "openshift-"

func (o GateOptions) excludesOperator(name string) bool {
	return text.MatchesAny(name, o.ExcludeOperators) || text.MatchesAny(operatorPrefix+name, o.ExcludeOperators)
}

// unusedOperatorPatterns reports patterns that match no ClusterOperator, for example because of a typo.
func (o GateOptions) unusedOperatorPatterns(operators []clusterstate.ClusterOperator) []Finding {
	var found []Finding
	for _, pattern := range o.ExcludeOperators {
		used := false
		for _, operator := range operators {
			used = used || text.MatchesAny(strings.TrimPrefix(operator.Name, operatorPrefix), []string{pattern, strings.TrimPrefix(pattern, operatorPrefix)})
		}
		if !used {
			f := newFinding("ExclusionUnused", "exclusions that match no cluster operator")
			f.Level, f.Key, f.Description = LevelInfo, pattern, text.Excerpt(pattern)
			found = append(found, f)
		}
	}
	return found
}

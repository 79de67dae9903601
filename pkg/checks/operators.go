// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

var operatorsCheck = Check{
	Name:  NameOperators,
	Doc:   "ClusterOperators are unavailable or degraded.",
	Reads: []client.Object{&configv1.ClusterOperator{}},
	Find:  findOperators,
}

func findOperators(ctx context.Context, in Input) ([]Finding, error) {
	operators, err := clusterstate.ListClusterOperators(ctx, in.Reader)
	if err != nil {
		return nil, err
	}
	found, err := Operators(operators, in.Options)
	return append(found, in.Options.unusedOperatorPatterns(operators)...), err
}

// Operators returns the ClusterOperators that are unavailable or degraded. It treats the status
// Unknown as the cluster version operator does: such an operator is unavailable, and degraded. The
// error names the operators that do not report a condition: nothing is known about these.
func Operators(operators []clusterstate.ClusterOperator, options Options) (found []Finding, err error) {
	var unavailable, degraded []Finding
	var silent []string
	for _, operator := range operators {
		if options.excludesOperator(operator.Name) {
			continue
		}
		resource := Resource{Group: configv1.GroupName, Kind: "ClusterOperator", Name: operator.Name}
		switch {
		case operator.Available.Status == "" || operator.Degraded.Status == "":
			silent = append(silent, text.WithReason(operator.Name, missingConditions(operator)))
		case !operator.Available.IsTrue():
			f := newFinding("OperatorUnavailable", "cluster operators unavailable", resource)
			f.Description = text.Excerpt(operator.Available.Reason)
			unavailable = append(unavailable, f)
		}
		if operator.Degraded.Status != "" && !operator.Degraded.IsFalse() {
			f := newFinding("OperatorDegraded", "cluster operators degraded", resource)
			f.Description = text.Excerpt(operator.Degraded.Reason)
			degraded = append(degraded, f)
		}
	}
	if len(silent) > 0 {
		err = fmt.Errorf("cluster operators do not report their state: %s", text.JoinNames(silent))
	}
	return append(unavailable, degraded...), err
}

func missingConditions(operator clusterstate.ClusterOperator) string {
	switch {
	case operator.Available.Status != "":
		return "no condition Degraded"
	case operator.Degraded.Status != "":
		return "no condition Available"
	}
	return "no conditions Available and Degraded"
}

const operatorPrefix = "openshift-"

func (o Options) excludesOperator(name string) bool {
	return text.MatchesAny(name, o.ExcludeOperators) || text.MatchesAny(operatorPrefix+name, o.ExcludeOperators)
}

// unusedOperatorPatterns reports the patterns that match no ClusterOperator, such as typos.
func (o Options) unusedOperatorPatterns(operators []clusterstate.ClusterOperator) []Finding {
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

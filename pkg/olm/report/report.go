// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report encodes the InstallPlans that determine whether the operators of a cluster are
// upgraded. The program that approves them writes the report to its Job, and the hub reads it.
package report

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// Annotation is the Job annotation with the number of operators in the report.
	Annotation = "upgrade.managed.openshift.io/operators"
	// Parts is the number of annotations with InstallPlans. Their names consist of Annotation and -0,
	// -1, and so on.
	Parts = 32
	// maxPart is the maximum length of such an annotation. A work agent reports values of up to 512
	// bytes.
	maxPart = 500
	// maxPlans is the maximum number of InstallPlans in a report. A ManifestWork contains one or two
	// objects per InstallPlan.
	maxPlans = 400
)

// errLong is returned for a cluster with more InstallPlans than a report can hold.
var errLong = errors.New("too many operators to report: name those to upgrade in the list of operators to include")

// Part returns the name of the i-th annotation with InstallPlans.
func Part(i int) string { return Annotation + "-" + strconv.Itoa(i) }

// Report contains the InstallPlans that determine whether the operators are upgraded.
type Report struct {
	// Operators is the number of operators.
	Operators int
	// Plans are their InstallPlans, sorted. An InstallPlan without a name stands for a namespace in
	// which an operator has no InstallPlan.
	Plans []types.NamespacedName
}

// New returns a report. The InstallPlans may be in any order.
func New(operators int, plans []types.NamespacedName) Report {
	sorted := slices.SortedFunc(slices.Values(plans), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return Report{operators, slices.Compact(sorted)}
}

// Annotations returns the annotations of the Job. Annotations with nil values must be removed.
func (r *Report) Annotations() (map[string]any, error) {
	parts := []string{""}
	for _, plan := range r.Plans {
		last := &parts[len(parts)-1]
		if len(*last)+1+len(plan.String()) > maxPart {
			parts = append(parts, "")
			last = &parts[len(parts)-1]
		}
		*last = strings.TrimLeft(*last+" "+plan.String(), " ")
	}
	if len(parts) > Parts || len(r.Plans) > maxPlans {
		return nil, errLong
	}
	all := map[string]any{Annotation: strconv.Itoa(r.Operators)}
	for i := range Parts {
		all[Part(i)] = nil
		if i < len(parts) && parts[i] != "" {
			all[Part(i)] = parts[i]
		}
	}
	return all, nil
}

// Parse parses the report in annotations: the number of operators and the parts with InstallPlans.
func Parse(operators string, parts []string) (Report, error) {
	n, err := strconv.Atoi(operators)
	if err != nil || n < 0 {
		return Report{}, fmt.Errorf("annotation %s: %q is no number of operators", Annotation, operators)
	}
	report := Report{Operators: n}
	for _, part := range parts {
		for item := range strings.FieldsSeq(part) {
			namespace, name, found := strings.Cut(item, "/")
			if !found || len(validation.IsDNS1123Label(namespace)) > 0 || name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
				return Report{}, fmt.Errorf("annotation %s: %q is no InstallPlan", Annotation, item)
			}
			if len(report.Plans) == maxPlans {
				return Report{}, errLong
			}
			report.Plans = append(report.Plans, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return report, nil
}

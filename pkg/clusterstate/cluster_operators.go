// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MachineConfigOperator is the name of the ClusterOperator that updates the nodes.
const MachineConfigOperator = "machine-config"

// operandOperator is the name under which a ClusterOperator reports its own version.
const operandOperator = "operator"

// operandImage is the name under which a ClusterOperator reports its own image.
const operandImage = "operator-image"

// isProfileAnnotation reports whether an annotation describes which cluster profiles include the
// object.
func isProfileAnnotation(key string) bool {
	return strings.HasPrefix(key, "include.release.openshift.io/") || strings.HasPrefix(key, "exclude.release.openshift.io/")
}

// ClusterOperator holds the facts of a ClusterOperator.
type ClusterOperator struct {
	Name        string
	Version     string // that it has rolled out; empty if it is not reported
	Available   Condition
	Degraded    Condition
	Progressing Condition
	// Image is the image of the operator itself, as it reports it; most do not.
	Image string
	// InRelease reports that the operator comes with the release: the cluster version operator has
	// annotated it with the cluster profiles that include or exclude it.
	InRelease bool
	// Created is when the object was created; zero if unknown.
	Created time.Time
}

// IsUnavailable reports whether the operator reports that it is not available, or that it does not know:
// the cluster version operator treats both alike.
func (o ClusterOperator) IsUnavailable() bool {
	return o.Available.Status != "" && !o.Available.IsTrue()
}

// IsDegraded reports whether the operator reports that it is degraded, or that it does not know.
func (o ClusterOperator) IsDegraded() bool { return o.Degraded.Status != "" && !o.Degraded.IsFalse() }

// Unreported returns which of the conditions Available and Degraded the operator does not report. Without
// one of them, it is unknown how the operator is.
func (o ClusterOperator) Unreported() []string {
	var names []string
	for _, c := range []struct {
		name string
		Condition
	}{{"Available", o.Available}, {"Degraded", o.Degraded}} {
		if c.Status == "" {
			names = append(names, c.name)
		}
	}
	return names
}

// HasRelease reports whether the operator has rolled out a version. It is unknown if either is.
func (o ClusterOperator) HasRelease(version string) Answer {
	switch {
	case version == "" || o.Version == "":
		return Unknown
	case o.Version == version:
		return Yes
	}
	return No
}

// ReleaseOperators returns the ClusterOperators that come with the release: those that the cluster
// version operator has annotated, and those that report the version of a release of the history. If none
// does, these are all of them, and known is false.
func (v Version) ReleaseOperators(all []ClusterOperator) (operators []ClusterOperator, known bool) {
	for i := range all {
		if all[i].InRelease || v.HasRun(all[i].Version) {
			operators = append(operators, all[i])
		}
	}
	if len(operators) == 0 {
		return all, len(all) == 0
	}
	return operators, true
}

// ListClusterOperators lists the ClusterOperators, sorted by name.
func ListClusterOperators(ctx context.Context, r client.Reader) ([]ClusterOperator, error) {
	var list configv1.ClusterOperatorList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the cluster operators: %w", err)
	}
	operators := make([]ClusterOperator, 0, len(list.Items))
	for i := range list.Items {
		operators = append(operators, ClusterOperatorOf(&list.Items[i]))
	}
	slices.SortFunc(operators, func(a, b ClusterOperator) int { return cmp.Compare(a.Name, b.Name) })
	return operators, nil
}

// ClusterOperatorOf returns the facts of a ClusterOperator.
func ClusterOperatorOf(operator *configv1.ClusterOperator) ClusterOperator {
	status := &operator.Status
	facts := ClusterOperator{
		Name:        operator.Name,
		Created:     operator.CreationTimestamp.Time,
		Available:   condition(status.Conditions, configv1.OperatorAvailable),
		Degraded:    condition(status.Conditions, configv1.OperatorDegraded),
		Progressing: condition(status.Conditions, configv1.OperatorProgressing),
	}
	for _, version := range status.Versions {
		switch version.Name {
		case operandOperator:
			facts.Version = version.Version
		case operandImage:
			facts.Image = version.Version
		}
	}
	for key := range operator.Annotations {
		facts.InRelease = facts.InRelease || isProfileAnnotation(key)
	}
	return facts
}

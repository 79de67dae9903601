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

// MachineConfigOperator is the ClusterOperator that updates the nodes.
const MachineConfigOperator = "machine-config"

// operandOperator is the name of a ClusterOperator's own version in its list of versions.
const operandOperator = "operator"

// operandImage is the name of a ClusterOperator's own image in its list of versions.
const operandImage = "operator-image"

// isProfileAnnotation reports whether an annotation says which cluster profiles include or exclude the
// object.
func isProfileAnnotation(key string) bool {
	return strings.HasPrefix(key, "include.release.openshift.io/") || strings.HasPrefix(key, "exclude.release.openshift.io/")
}

// ClusterOperator holds the facts about a ClusterOperator.
type ClusterOperator struct {
	Name        string
	Version     string // version that the operator has rolled out; empty if not reported
	Available   Condition
	Degraded    Condition
	Progressing Condition
	// Image is the operator's own image. Most operators do not report it.
	Image string
	// InRelease is set if the operator is part of the release. In this case the cluster version operator has
	// annotated it with the cluster profiles that include or exclude it.
	InRelease bool
	// Created is when the object was created, or zero if this is unknown.
	Created time.Time
}

// IsUnavailable reports whether the condition Available is False or Unknown. The cluster version operator
// treats both alike.
func (o ClusterOperator) IsUnavailable() bool {
	return o.Available.Status != "" && !o.Available.IsTrue()
}

// IsDegraded reports whether the condition Degraded is True or Unknown.
func (o ClusterOperator) IsDegraded() bool { return o.Degraded.Status != "" && !o.Degraded.IsFalse() }

// Unreported returns the missing ones of the conditions Available and Degraded. If one is missing, the health
// of the operator is unknown.
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

// HasRelease reports whether the operator has rolled out a version. The answer is unknown if either version
// is.
func (o ClusterOperator) HasRelease(version string) Answer {
	switch {
	case version == "" || o.Version == "":
		return Unknown
	case o.Version == version:
		return Yes
	}
	return No
}

// ReleaseOperators returns the ClusterOperators that are part of the release. The cluster version operator
// has annotated them, or they report the version of a release in the history. If there are none, it returns
// all operators, and known is false.
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

// ClusterOperatorOf converts a ClusterOperator.
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

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MachineConfigOperator is the name of the ClusterOperator that updates the nodes.
const MachineConfigOperator = "machine-config"

// operandOperator is the name under which a ClusterOperator reports its own version.
const operandOperator = "operator"

// ClusterOperator holds the facts of a ClusterOperator.
type ClusterOperator struct {
	Name        string
	Version     string // that it has rolled out; empty means that it is not reported
	Available   Condition
	Degraded    Condition
	Progressing Condition
}

// ListClusterOperators lists the ClusterOperators, sorted by name.
func ListClusterOperators(ctx context.Context, r client.Reader) ([]ClusterOperator, error) {
	var list configv1.ClusterOperatorList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the cluster operators: %w", err)
	}
	operators := make([]ClusterOperator, 0, len(list.Items))
	for i := range list.Items {
		operators = append(operators, clusterOperatorOf(&list.Items[i]))
	}
	slices.SortFunc(operators, func(a, b ClusterOperator) int { return cmp.Compare(a.Name, b.Name) })
	return operators, nil
}

func clusterOperatorOf(operator *configv1.ClusterOperator) ClusterOperator {
	status := &operator.Status
	facts := ClusterOperator{
		Name:        operator.Name,
		Available:   condition(status.Conditions, configv1.OperatorAvailable),
		Degraded:    condition(status.Conditions, configv1.OperatorDegraded),
		Progressing: condition(status.Conditions, configv1.OperatorProgressing),
	}
	for _, version := range status.Versions {
		if version.Name == operandOperator {
			facts.Version = version.Version
		}
	}
	return facts
}

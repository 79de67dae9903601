// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

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

// Operator is what a ClusterOperator says.
type Operator struct {
	Name        string
	Version     string // which it has rolled out; empty if it does not say
	Available   Condition
	Degraded    Condition
	Progressing Condition
}

// ReadOperators reads the ClusterOperators, sorted by name.
func ReadOperators(ctx context.Context, r client.Reader) ([]Operator, error) {
	var list configv1.ClusterOperatorList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the cluster operators: %w", err)
	}
	operators := make([]Operator, 0, len(list.Items))
	for i := range list.Items {
		operators = append(operators, operatorOf(&list.Items[i]))
	}
	slices.SortFunc(operators, func(a, b Operator) int { return cmp.Compare(a.Name, b.Name) })
	return operators, nil
}

// ReadOperator reads one ClusterOperator.
func ReadOperator(ctx context.Context, r client.Reader, name string) (Operator, error) {
	var operator configv1.ClusterOperator
	if err := r.Get(ctx, client.ObjectKey{Name: name}, &operator); err != nil {
		return Operator{}, fmt.Errorf("getting cluster operator %s: %w", name, err)
	}
	return operatorOf(&operator), nil
}

func operatorOf(operator *configv1.ClusterOperator) Operator {
	status := &operator.Status
	facts := Operator{
		Name:        operator.Name,
		Available:   condition(status.Conditions, configv1.OperatorAvailable),
		Degraded:    condition(status.Conditions, configv1.OperatorDegraded),
		Progressing: condition(status.Conditions, configv1.OperatorProgressing),
	}
	for _, version := range status.Versions {
		if version.Name == "operator" {
			facts.Version = version.Version
		}
	}
	return facts
}

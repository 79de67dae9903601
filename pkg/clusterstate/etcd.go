// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorv1 "github.com/openshift/api/operator/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// etcdKey is the key of the cluster's Etcd object.
var etcdKey = client.ObjectKey{Name: "cluster"}

// EtcdMembersAvailable is the condition that reports whether etcd has a quorum.
const EtcdMembersAvailable = "EtcdMembersAvailable"

// EtcdCondition is a condition of etcd.
type EtcdCondition struct {
	Type string
	Condition
}

// Unhealthy reports whether the condition indicates a problem: a Degraded condition that is not False, or a
// quorum that is not reported as available.
func (c EtcdCondition) Unhealthy() bool {
	if c.Type == EtcdMembersAvailable {
		return !c.IsTrue()
	}
	return strings.HasSuffix(c.Type, "Degraded") && !c.IsFalse()
}

// ListEtcdConditions returns the conditions of etcd, sorted by type. They always include
// EtcdMembersAvailable, because without it nothing is known about the quorum.
func ListEtcdConditions(ctx context.Context, live client.Reader) ([]EtcdCondition, error) {
	var etcd operatorv1.Etcd
	if err := live.Get(ctx, etcdKey, &etcd); err != nil {
		return nil, fmt.Errorf("getting the Etcd %s: %w", etcdKey.Name, err)
	}
	found := []EtcdCondition{{Type: EtcdMembersAvailable}}
	for i := range etcd.Status.Conditions {
		c := &etcd.Status.Conditions[i]
		facts := Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message}
		if c.Type == EtcdMembersAvailable {
			found[0].Condition = facts
			continue
		}
		found = append(found, EtcdCondition{Type: c.Type, Condition: facts})
	}
	slices.SortFunc(found, func(a, b EtcdCondition) int { return strings.Compare(a.Type, b.Type) })
	return found, nil
}

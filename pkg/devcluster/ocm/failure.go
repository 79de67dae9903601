// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ocm

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/agent"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
)

// Degrade makes a cluster's etcd operator degraded. An upgrade of the cluster then cannot complete
// before Repair.
func (f *Fleet) Degrade(ctx context.Context, name string) error {
	return f.setDegraded(ctx, name, configv1.ConditionTrue)
}

// Repair undoes Degrade.
func (f *Fleet) Repair(ctx context.Context, name string) error {
	return f.setDegraded(ctx, name, configv1.ConditionFalse)
}

func (f *Fleet) setDegraded(ctx context.Context, name string, status configv1.ConditionStatus) error {
	for _, spoke := range f.Spokes {
		if spoke.Name == name {
			return spoke.setDegraded(ctx, status)
		}
	}
	cluster := &clusterv1.ManagedCluster{}
	if err := f.Client.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return fmt.Errorf("getting cluster %s: %w", name, err)
	}
	before := cluster.DeepCopy()
	if delete(cluster.Annotations, agent.FailsAnnotation); status == configv1.ConditionTrue {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, agent.FailsAnnotation, "etcd is degraded")
	}
	if err := f.Client.Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("annotating cluster %s: %w", name, err)
	}
	return nil
}

// setDegraded sets the Degraded condition of the etcd operator.
func (s *Spoke) setDegraded(ctx context.Context, status configv1.ConditionStatus) error {
	operator := &configv1.ClusterOperator{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: "etcd"}, operator); err != nil {
		return fmt.Errorf("getting the cluster operator etcd of %s: %w", s.Name, err)
	}
	before := operator.DeepCopy()
	cvo.SetCondition(operator, configv1.OperatorDegraded, status, "EtcdMembers", "a member does not respond", time.Now())
	if err := s.Client.Status().Patch(ctx, operator, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patching the cluster operator etcd of %s: %w", s.Name, err)
	}
	return nil
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package machineapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reconcileMachineSet creates, deletes, and counts Machines. When a MachineSet is deleted, the
// garbage collector deletes its Machines.
func (s *Simulator) reconcileMachineSet(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var set machinev1beta1.MachineSet
	if err := s.live.Get(ctx, request.NamespacedName, &set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if set.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	var all machinev1beta1.MachineList
	if err := s.live.List(ctx, &all, client.InNamespace(set.Namespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing Machines: %w", err)
	}
	machines := slices.DeleteFunc(ownedMachines(&set, all.Items), func(m machinev1beta1.Machine) bool { return m.DeletionTimestamp != nil })
	if err := s.scale(ctx, &set, machines); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, s.syncStatus(ctx, &set, machines)
}

// scale creates missing Machines or deletes surplus ones, newest first.
func (s *Simulator) scale(ctx context.Context, set *machinev1beta1.MachineSet, machines []machinev1beta1.Machine) error {
	want := int(ptr.Deref(set.Spec.Replicas, 1))
	for range want - len(machines) {
		if err := s.client.Create(ctx, machineFor(set)); err != nil {
			return fmt.Errorf("making a Machine of %s: %w", set.Name, err)
		}
	}
	slices.SortFunc(machines, func(a, b machinev1beta1.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := want; i < len(machines); i++ {
		if err := client.IgnoreNotFound(s.client.Delete(ctx, &machines[i])); err != nil {
			return fmt.Errorf("deleting Machine %s: %w", machines[i].Name, err)
		}
	}
	return nil
}

// syncStatus updates the status.
func (s *Simulator) syncStatus(ctx context.Context, set *machinev1beta1.MachineSet, machines []machinev1beta1.Machine) error {
	before := set.DeepCopy()
	count := int32(len(machines))
	set.Status.Replicas, set.Status.FullyLabeledReplicas, set.Status.ObservedGeneration = count, count, set.Generation
	set.Status.ReadyReplicas = 0
	for i := range machines {
		var node corev1.Node
		err := s.client.Get(ctx, client.ObjectKey{Name: machines[i].Name}, &node)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("getting node %s: %w", machines[i].Name, err)
		}
		if err == nil && ready(&node) {
			set.Status.ReadyReplicas++
		}
	}
	set.Status.AvailableReplicas = set.Status.ReadyReplicas
	if equality.Semantic.DeepEqual(before.Status, set.Status) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, set, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patching the status of MachineSet %s: %w", set.Name, err)
	}
	return nil
}

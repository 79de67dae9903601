// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package machineapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
)

// reconcileMachine installs or removes a Machine, one action per call.
func (s *Simulator) reconcileMachine(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var machine machinev1beta1.Machine
	if err := s.client.Get(ctx, request.NamespacedName, &machine); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if machine.DeletionTimestamp != nil {
		return s.remove(ctx, &machine)
	}
	if before := machine.DeepCopy(); controllerutil.AddFinalizer(&machine, machinev1beta1.MachineFinalizer) {
		machine.Spec.ProviderID = new(providerID(machine.Name))
		if err := s.client.Patch(ctx, &machine, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, fmt.Errorf("patching Machine %s: %w", machine.Name, err)
		}
	}
	if machine.Status.NodeRef != nil {
		return reconcile.Result{}, nil
	}
	return s.install(ctx, &machine)
}

// install creates an instance in the simulated cloud and registers the node when the installation
// is complete.
func (s *Simulator) install(ctx context.Context, machine *machinev1beta1.Machine) (reconcile.Result, error) {
	provider, err := providerOf(machine)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := machine.DeepCopy()
	var requeueAfter time.Duration
	if provider.Refused != "" {
		reason, message := provider.refusal()
		machine.Status.Phase = new(machinev1beta1.PhaseFailed)
		machine.Status.ErrorReason, machine.Status.ErrorMessage = &reason, &message
	} else if requeueAfter = s.options.Speed.Scale(cmp.Or(provider.InstallTakes, defaultInstallDuration)) - s.options.Clock.Now().Sub(machine.CreationTimestamp.Time); requeueAfter > 0 {
		machine.Status.Phase = new(machinev1beta1.PhaseProvisioning)
	} else {
		s.options.Kubelets.SetDown(machine.Name, provider.NotReady)
		if err := machineconfig.AddNode(ctx, s.client, s.options.Clock.Now(), machine.Name, machine.Spec.Labels, machine.Spec.Taints, !provider.NotReady); err != nil {
			return reconcile.Result{}, err
		}
		setRunning(machine)
	}
	return reconcile.Result{RequeueAfter: max(requeueAfter, 0)}, s.patchStatus(ctx, machine, before)
}

func providerOf(machine *machinev1beta1.Machine) (Provider, error) {
	var provider Provider
	if value := machine.Spec.ProviderSpec.Value; value != nil {
		if err := json.Unmarshal(value.Raw, &provider); err != nil {
			return provider, fmt.Errorf("reading the provider of Machine %s: %w", machine.Name, err)
		}
	}
	return provider, nil
}

// remove drains the node of a deleted Machine if it is ready, then deletes the node and removes the
// finalizer.
func (s *Simulator) remove(ctx context.Context, machine *machinev1beta1.Machine) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(machine, machinev1beta1.MachineFinalizer) {
		return reconcile.Result{}, nil
	}
	before := machine.DeepCopy()
	machine.Status.Phase = new(machinev1beta1.PhaseDeleting)
	if err := s.patchStatus(ctx, machine, before); err != nil {
		return reconcile.Result{}, err
	}
	var node corev1.Node
	switch err := s.client.Get(ctx, client.ObjectKey{Name: machine.Name}, &node); {
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("getting node %s: %w", machine.Name, err)
	case err == nil:
		drained, err := s.drain(ctx, &node)
		if err != nil || !drained {
			return reconcile.Result{RequeueAfter: s.options.DrainRetry}, err
		}
		if err := s.client.Delete(ctx, &node); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("deleting node %s: %w", node.Name, err)
		}
	}
	before = machine.DeepCopy()
	controllerutil.RemoveFinalizer(machine, machinev1beta1.MachineFinalizer)
	if err := s.client.Patch(ctx, machine, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("letting Machine %s go: %w", machine.Name, err)
	}
	return reconcile.Result{}, nil
}

// drain cordons a node and evicts its pods. It reports whether no pods are left. A node that is not
// ready needs no drain.
func (s *Simulator) drain(ctx context.Context, node *corev1.Node) (bool, error) {
	if !node.Spec.Unschedulable {
		before := node.DeepCopy()
		node.Spec.Unschedulable = true
		if err := s.client.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return false, fmt.Errorf("cordoning node %s: %w", node.Name, err)
		}
	}
	if !ready(node) {
		return true, nil
	}
	left, err := machineconfig.Evict(ctx, s.client, node.Name)
	return left == "", err
}

func (s *Simulator) patchStatus(ctx context.Context, machine, before *machinev1beta1.Machine) error {
	if equality.Semantic.DeepEqual(before.Status, machine.Status) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, machine, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching the status of Machine %s: %w", machine.Name, err)
	}
	return nil
}

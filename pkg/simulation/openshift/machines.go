// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"errors"
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// MachineFailure describes a failure of a MachineSet's machine.
type MachineFailure string

// Failures of machines.
const (
	NoFailure       MachineFailure = ""
	NoMachine       MachineFailure = "the MachineSet is invalid"
	NoQuota         MachineFailure = "the cloud refuses the machine"
	NoNode          MachineFailure = "the machine has no node"
	NodeAbsent      MachineFailure = "the node does not exist"
	NodeNotReady    MachineFailure = "the node is not ready"
	NodeWithoutName MachineFailure = "the node has no name"
)

// Machines is a scripted machine API. For each MachineSet with a label, it provides a machine and a
// node, one action per step. It removes both before it lets the MachineSet go.
type Machines struct {
	// Label selects the MachineSets.
	Label string
	// Failures maps name prefixes of MachineSets to failures.
	Failures map[string]MachineFailure
	// KeepDeleted makes deleted objects stay.
	KeepDeleted bool

	world  *simulation.World
	client client.Client
}

// NewMachines returns a machine API without failures.
func NewMachines(w *simulation.World, label string) *Machines {
	return &Machines{Label: label, Failures: map[string]MachineFailure{}, world: w, client: w.Client("machine-api")}
}

// Step performs the next action for each MachineSet.
func (m *Machines) Step() error {
	var sets machinev1beta1.MachineSetList
	if err := m.client.List(context.Background(), &sets, client.HasLabels{m.Label}); err != nil {
		return fmt.Errorf("listing the MachineSets: %w", err)
	}
	var errs []error
	for i := range sets.Items {
		switch set := &sets.Items[i]; {
		case set.DeletionTimestamp == nil:
			errs = append(errs, m.provide(set))
		case !m.KeepDeleted:
			errs = append(errs, m.dispose(set))
		}
	}
	return errors.Join(errs...)
}

// failure returns the failure of a MachineSet's machine.
func (m *Machines) failure(set *machinev1beta1.MachineSet) MachineFailure {
	for prefix, failure := range m.Failures {
		if strings.HasPrefix(set.Name, prefix) {
			return failure
		}
	}
	return NoFailure
}

func (m *Machines) provide(set *machinev1beta1.MachineSet) error {
	failure := m.failure(set)
	var machine machinev1beta1.Machine
	key := client.ObjectKey{Namespace: set.Namespace, Name: set.Name + "-abcde"}
	switch err := m.client.Get(context.Background(), key, &machine); {
	case failure == NoMachine:
		set.Status.ErrorReason, set.Status.ErrorMessage = new(machinev1beta1.InvalidConfigurationMachineSetError), new("no such\ninstance type")
		return m.world.Set(set)
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil:
		machine.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: set.Spec.Template.Labels}
		machine.Spec = set.Spec.Template.Spec
		return m.client.Create(context.Background(), &machine)
	case machine.Status.Phase == nil:
		machine.Status.Phase = new("Provisioning")
		if failure == NoQuota {
			machine.Status.Phase, machine.Status.ErrorReason = new("Failed"), new(machinev1beta1.InsufficientResourcesMachineError)
			machine.Status.ErrorMessage = new("you have reached your quota")
		}
		return m.world.Set(&machine)
	case machine.Status.NodeRef == nil && failure != NoQuota && failure != NoNode:
		return m.join(&machine, "node-"+set.Name, failure)
	}
	return nil
}

// join makes the node of a machine join the cluster.
func (m *Machines) join(machine *machinev1beta1.Machine, name string, failure MachineFailure) error {
	machine.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: name}
	if failure == NodeWithoutName {
		machine.Status.NodeRef.Name = ""
	}
	if err := m.world.Set(machine); err != nil || failure == NodeAbsent || failure == NodeWithoutName {
		return err
	}
	return m.AddNode(name, machine.Spec.Labels, failure != NodeNotReady)
}

// AddNode adds a node.
func (m *Machines) AddNode(name string, labels map[string]string, ready bool) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
	if ready {
		node.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	return m.world.Add(node)
}

// dispose deletes the node, then the machine, and finally the MachineSet.
func (m *Machines) dispose(set *machinev1beta1.MachineSet) error {
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name + "-abcde"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + set.Name}}
	for _, object := range []client.Object{node, machine} {
		if err := m.client.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil || err == nil {
			return err // the next object is deleted in the next step
		}
	}
	set.Finalizers = nil
	return m.client.Update(context.Background(), set)
}

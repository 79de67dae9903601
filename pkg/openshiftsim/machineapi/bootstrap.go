// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package machineapi

import (
	"context"
	"encoding/json"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bootstrap creates MachineSets, and Machines for existing workers, spread over the MachineSets.
func Bootstrap(ctx context.Context, c client.Client, sets []MachineSet, cluster string, workers []string) error {
	for i, set := range sets {
		var nodes []string
		for j := i; j < len(workers); j += len(sets) {
			nodes = append(nodes, workers[j])
		}
		object, err := set.object(cluster, int32(len(nodes)))
		if err != nil {
			return err
		}
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("creating MachineSet %s: %w", set.Name, err)
		}
		for _, node := range nodes {
			if err := bootstrapMachine(ctx, c, object, node); err != nil {
				return fmt.Errorf("creating Machine %s: %w", node, err)
			}
		}
	}
	return nil
}

func (m MachineSet) object(cluster string, replicas int32) (*machinev1beta1.MachineSet, error) {
	provider, err := json.Marshal(m.Provider)
	if err != nil {
		return nil, fmt.Errorf("encoding the provider of MachineSet %s: %w", m.Name, err)
	}
	selector := map[string]string{labelCluster: cluster, labelMachineSet: m.Name}
	object := &machinev1beta1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: m.Name, Labels: map[string]string{labelCluster: cluster}},
		Spec:       machinev1beta1.MachineSetSpec{Replicas: &replicas, Selector: metav1.LabelSelector{MatchLabels: selector}},
	}
	object.Spec.Template.Labels = map[string]string{
		labelCluster: cluster, labelMachineSet: m.Name, labelRole: "worker", labelType: "worker",
	}
	object.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: provider}
	return object, nil
}

// bootstrapMachine creates the Machine for a node.
func bootstrapMachine(ctx context.Context, c client.Client, set *machinev1beta1.MachineSet, node string) error {
	machine := machineFor(set)
	machine.GenerateName, machine.Name = "", node
	machine.Spec.ProviderID = new(providerID(node))
	machine.Finalizers = []string{machinev1beta1.MachineFinalizer}
	if err := c.Create(ctx, machine); err != nil {
		return err
	}
	setRunning(machine)
	return c.Status().Update(ctx, machine)
}

// machineFor returns a new Machine for a MachineSet.
func machineFor(set *machinev1beta1.MachineSet) *machinev1beta1.Machine {
	template := set.Spec.Template.DeepCopy()
	return &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, GenerateName: set.Name + "-", Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, machinev1beta1.GroupVersion.WithKind("MachineSet"))},
		},
		Spec: template.Spec,
	}
}

func providerID(node string) string { return "devcluster:///" + node }

// setRunning sets the status of a Machine that has become a node.
func setRunning(machine *machinev1beta1.Machine) {
	machine.Status.Phase = new(machinev1beta1.PhaseRunning)
	machine.Status.NodeRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: machine.Name}
}

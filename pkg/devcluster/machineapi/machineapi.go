// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machineapi plays the machine API: its MachineSets, which have as many Machines as they are to have; its machine
// controller, which installs instances that join the cluster as nodes, and drains and removes them again; and the cloud,
// which may take long or refuse. The machine API of a real cluster would do the same by the same objects.
//
// It knows nothing of who wants another machine and why.
package machineapi

import (
	"context"
	"fmt"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/stage"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/timescale"
)

// Namespace is where MachineSets and Machines are.
const Namespace = "openshift-machine-api"

// The labels of Machines: what they are for, and whose they are.
const (
	labelCluster    = "machine.openshift.io/cluster-api-cluster"
	labelRole       = "machine.openshift.io/cluster-api-machine-role"
	labelType       = "machine.openshift.io/cluster-api-machine-type"
	labelMachineSet = "machine.openshift.io/cluster-api-machineset"
)

// defaultInstallDuration is how long it takes a real cluster from a new Machine to the kubelet's being ready.
const defaultInstallDuration = timescale.Duration(4 * time.Minute)

// In real time, since what watches nodes and pods is real.
const drainRetry = time.Second

// MachineSet is one whose machines are workers. The workers that there are at first are spread over all of them.
type MachineSet struct {
	Name     string `json:"name"`
	Provider `json:",inline"`
}

// Provider is what becomes of further machines. It is the providerSpec of the MachineSet, and so of others like it, and
// can be changed there.
type Provider struct {
	// InstallTakes is how long it takes in a real cluster until a machine is a node, 4m by default, or "never".
	InstallTakes timescale.Duration `json:"installTakes,omitempty"`
	// Refused says why the cloud makes no machine, as in "InsufficientResources: You have exceeded your quota.".
	Refused string `json:"refused,omitempty"`
	// NotReady has the nodes never be ready.
	NotReady bool `json:"notReady,omitempty"`
}

// refusal splits what the cloud says into a reason and a message.
func (p Provider) refusal() (reason machinev1beta1.MachineStatusError, message string) {
	first, rest, found := strings.Cut(p.Refused, ": ")
	if !found {
		return machinev1beta1.CreateMachineError, p.Refused
	}
	return machinev1beta1.MachineStatusError(first), rest
}

// Options say what the player plays.
type Options struct {
	Speed    timescale.Speed
	Kubelets *kubelet.Kubelets
}

// simulator is the machine API, with its controllers.
type simulator struct {
	client  client.Client
	live    client.Reader // what was made a moment ago must not be made again
	options Options
}

// AddToManager has the manager run the player.
func AddToManager(mgr manager.Manager, options Options) error {
	s := &simulator{client: mgr.GetClient(), live: mgr.GetAPIReader(), options: options}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("machineset-controller").
		For(&machinev1beta1.MachineSet{}).
		Owns(&machinev1beta1.Machine{}).
		WithOptions(stage.Options(1, 20*time.Millisecond)).
		Complete(reconcile.Func(s.reconcileMachineSet))
	if err != nil {
		return fmt.Errorf("playing the MachineSet controller: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("machine-controller").
		For(&machinev1beta1.Machine{}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(machineOf)).
		WithOptions(stage.Options(8, 20*time.Millisecond)).
		Complete(reconcile.Func(s.reconcileMachine))
	if err != nil {
		return fmt.Errorf("playing the machine controller: %w", err)
	}
	return nil
}

// machineOf returns the Machine of a node, which has its name.
func machineOf(_ context.Context, node client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: Namespace, Name: node.GetName()}}}
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// ownedMachines returns the Machines that a MachineSet has made.
func ownedMachines(set *machinev1beta1.MachineSet, machines []machinev1beta1.Machine) []machinev1beta1.Machine {
	var found []machinev1beta1.Machine
	for i := range machines {
		if metav1.IsControlledBy(&machines[i], set) {
			found = append(found, machines[i])
		}
	}
	return found
}

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
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/stage"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
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
	// Clock is the clock of the cloud; nil means the real one.
	Clock clock.PassiveClock
	// DrainRetry is how long a drain waits before it requests evictions again; 0 means 1s.
	DrainRetry time.Duration
}

// Simulator is the machine API, with its controllers.
type Simulator struct {
	client  client.Client
	live    client.Reader // what was made a moment ago must not be made again
	options Options
}

// New returns a simulator.
func New(options Options) *Simulator {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.DrainRetry == 0 {
		options.DrainRetry = drainRetry
	}
	return &Simulator{options: options}
}

// Controllers declares the controllers that simulate MachineSets and Machines.
func (s *Simulator) Controllers() []manager.Controller {
	bind := func(c manager.Clients) error {
		s.client, s.live = c.Client, c.Live
		return nil
	}
	return []manager.Controller{{
		Name: "machineset-controller",
		Reads: []manager.Kind{
			{Object: &machinev1beta1.MachineSet{}, Requests: manager.Self},
			{Object: &machinev1beta1.Machine{}, Requests: machineSetOf},
			{Object: &corev1.Node{}},
		},
		Bind: bind, Reconciler: reconcile.Func(s.reconcileMachineSet), RateLimiter: stage.Retry(20 * time.Millisecond),
	}, {
		Name: "machine-controller",
		Reads: []manager.Kind{
			{Object: &machinev1beta1.Machine{}, Requests: manager.Self},
			{Object: &corev1.Node{}, Requests: machineOf},
			{Object: &mcfgv1.MachineConfigPool{}},
			{Object: &corev1.Pod{}},
		},
		Bind: bind, Reconciler: reconcile.Func(s.reconcileMachine), MaxConcurrentReconciles: 8, RateLimiter: stage.Retry(20 * time.Millisecond),
	}}
}

// AddToManager has the manager run the simulator.
func AddToManager(mgr ctrlmanager.Manager, options Options) error {
	if err := stage.Add(mgr, New(options).Controllers()...); err != nil {
		return fmt.Errorf("simulating the machine API: %w", err)
	}
	return nil
}

// machineSetOf requests the reconcile of the MachineSet that controls a Machine.
func machineSetOf(_ context.Context, machine client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(machine)
	if owner == nil || owner.Kind != "MachineSet" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: machine.GetNamespace(), Name: owner.Name}}}
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

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machineapi simulates the machine API: MachineSets, which create and delete Machines; the
// machine controller, which installs instances that join the cluster as nodes, and drains and
// removes them; and the cloud, which may be slow or reject instances. It uses the objects of the
// real machine API.
//
// It does not decide how many machines a cluster needs.
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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/stage"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
)

// Namespace is the namespace of MachineSets and Machines.
const Namespace = "openshift-machine-api"

// Labels of Machines: role, type, and MachineSet.
const (
	labelCluster    = "machine.openshift.io/cluster-api-cluster"
	labelRole       = "machine.openshift.io/cluster-api-machine-role"
	labelType       = "machine.openshift.io/cluster-api-machine-type"
	labelMachineSet = "machine.openshift.io/cluster-api-machineset"
)

// defaultInstallDuration is the time from a new Machine until its kubelet is ready on a real
// cluster.
const defaultInstallDuration = timescale.Duration(4 * time.Minute)

// drainRetry is in real time, because the controllers that watch nodes and pods are real.
const drainRetry = time.Second

// MachineSet is a MachineSet of workers. The initial workers are spread over all MachineSets.
type MachineSet struct {
	Name     string `json:"name"`
	Provider `json:",inline"`
}

// Provider configures the installation of new machines. It is stored, and can be changed, in the
// providerSpec of the MachineSet.
type Provider struct {
	// InstallTakes is the time that a machine takes to become a node on a real cluster, or "never". It
	// defaults to 4m.
	InstallTakes timescale.Duration `json:"installTakes,omitempty"`
	// Refused, if set, is the error returned by the cloud when it rejects an instance, such as
	// "InsufficientResources: You have exceeded your quota."
	Refused string `json:"refused,omitempty"`
	// NotReady keeps the nodes from ever becoming ready.
	NotReady bool `json:"notReady,omitempty"`
}

// refusal splits the cloud's error into a reason and a message.
func (p Provider) refusal() (reason machinev1beta1.MachineStatusError, message string) {
	first, rest, found := strings.Cut(p.Refused, ": ")
	if !found {
		return machinev1beta1.CreateMachineError, p.Refused
	}
	return machinev1beta1.MachineStatusError(first), rest
}

// Options configure the simulator.
type Options struct {
	Speed    timescale.Speed
	Kubelets *kubelet.Kubelets
	// Clock is the clock of the cloud. It defaults to the real clock.
	Clock clock.PassiveClock
	// DrainRetry is the delay before a drain requests evictions again. It defaults to 1s.
	DrainRetry time.Duration
}

// Simulator simulates the machine API with its controllers.
type Simulator struct {
	client  client.Client
	live    client.Reader // bypasses the cache to avoid creating a Machine twice
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

// Controllers returns the controllers that simulate MachineSets and Machines.
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

// AddToManager adds the simulator to a manager.
func AddToManager(mgr ctrlmanager.Manager, options Options) error {
	if err := stage.Add(mgr, New(options).Controllers()...); err != nil {
		return fmt.Errorf("simulating the machine API: %w", err)
	}
	return nil
}

// machineSetOf returns a request for the MachineSet that controls a Machine.
func machineSetOf(_ context.Context, machine client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(machine)
	if owner == nil || owner.Kind != "MachineSet" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: machine.GetNamespace(), Name: owner.Name}}}
}

// machineOf returns a request for the Machine with the name of a node.
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

// ownedMachines returns the Machines of a MachineSet.
func ownedMachines(set *machinev1beta1.MachineSet, machines []machinev1beta1.Machine) []machinev1beta1.Machine {
	var found []machinev1beta1.Machine
	for i := range machines {
		if metav1.IsControlledBy(&machines[i], set) {
			found = append(found, machines[i])
		}
	}
	return found
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machineconfig plays the machine config operator: its operator, which learns of a release and reports in the
// ClusterOperator "machine-config"; its controller, which leads the nodes of each MachineConfigPool to the release, no
// more of them at a time than the pool allows; and its daemons, which have their node cordoned, drained by the real
// Eviction API, rebooted and uncordoned. They talk to each other by the annotations of the real ones.
//
// It knows nothing of who hands it a release and why.
package machineconfig

import (
	"context"
	"fmt"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/stage"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// How long the real ones take.
const (
	prepareDuration       = timescale.Duration(30 * time.Second) // to write the files of a new configuration
	defaultRebootDuration = timescale.Duration(4 * time.Minute)  // from the reboot to the kubelet's being ready
	drainTimeout          = timescale.Duration(time.Hour)        // until a drain that does not end makes the node degraded
)

// The pools that every cluster has.
const (
	Master = "master"
	Worker = "worker"
)

// Pool is a MachineConfigPool.
type Pool struct {
	// Name is the pool's name, and the role of its nodes: their names are the pool's and a number.
	Name string `json:"name"`
	// Nodes is how many nodes the pool has. The cluster itself says so of the pools master and worker.
	Nodes int `json:"nodes,omitempty"`
	// MaxUnavailable is how many nodes may be updated at a time, 1 by default.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Paused keeps the nodes from being updated.
	Paused bool `json:"paused,omitempty"`
}

// Node is a node that behaves otherwise than others.
type Node struct {
	Name string `json:"name"`
	// RebootTakes is how long a reboot takes in a real cluster, 4m by default, or "never": then it never comes back.
	RebootTakes timescale.Duration `json:"rebootTakes,omitempty"`
	// Broken is why the node's daemon cannot write the files of a new configuration, which makes the node degraded; empty
	// if it can.
	Broken *string `json:"broken,omitempty"`
}

// Options say what the player plays.
type Options struct {
	Speed    timescale.Speed
	Kubelets *kubelet.Kubelets
	Nodes    []Node // those that behave otherwise than others
	// Clock is the clock of the nodes; nil means the real one.
	Clock clock.PassiveClock
	// DrainRetry is how long a drain waits before it requests evictions again; 0 means 1s.
	DrainRetry time.Duration
}

// Simulator is the machine config operator, with its controller and its daemons.
type Simulator struct {
	client  client.Client
	options Options

	mu      sync.Mutex
	reboots map[string]timescale.Duration // how long a reboot takes, by the node's name
	broken  map[string]string             // why the files cannot be written, by the node's name
	daemons map[string]*daemon            // by the node's name
}

// New returns a simulator.
func New(options Options) *Simulator {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.DrainRetry == 0 {
		options.DrainRetry = drainRetry
	}
	s := &Simulator{options: options, reboots: map[string]timescale.Duration{}, broken: map[string]string{}, daemons: map[string]*daemon{}}
	for _, node := range options.Nodes {
		s.SetNode(node)
	}
	return s
}

// Controllers declares the controllers that simulate the operator, the pools, and the daemons.
func (s *Simulator) Controllers() []manager.Controller {
	bind := func(c manager.Clients) error {
		s.client = c.Client
		return nil
	}
	return []manager.Controller{{
		Name: "machine-config-operator",
		Reads: []manager.Kind{
			{Object: &configv1.ClusterOperator{}, Requests: manager.Self},
			{Object: &mcfgv1.MachineConfigPool{}, Requests: enqueueMCO},
			{Object: &corev1.ConfigMap{}, Requests: enqueueMCO},
		},
		Bind: bind, Reconciler: reconcile.Func(s.reconcileOperator), RateLimiter: stage.Retry(20 * time.Millisecond),
	}, {
		Name: "machine-config-controller",
		Reads: []manager.Kind{
			{Object: &mcfgv1.MachineConfigPool{}, Requests: manager.Self},
			{Object: &corev1.Node{}, Requests: s.enqueueAllPools},
			{Object: &corev1.ConfigMap{}, Requests: s.enqueueAllPools},
		},
		Bind: bind, Reconciler: reconcile.Func(s.reconcilePool), RateLimiter: stage.Retry(20 * time.Millisecond),
	}, {
		Name: "machine-config-daemon",
		Reads: []manager.Kind{
			{Object: &corev1.Node{}, Requests: manager.Self},
			{Object: &corev1.Pod{}},
		},
		Bind: bind, Reconciler: reconcile.Func(s.reconcileNode), MaxConcurrentReconciles: 8, RateLimiter: stage.Retry(20 * time.Millisecond),
	}}
}

// AddToManager has the manager run the simulator.
func AddToManager(mgr ctrlmanager.Manager, options Options) (*Simulator, error) {
	s := New(options)
	if err := stage.Add(mgr, s.Controllers()...); err != nil {
		return nil, fmt.Errorf("simulating the machine config operator: %w", err)
	}
	return s, nil
}

// SetNode says how a node behaves from now on. What it does not mention stays as it is.
func (s *Simulator) SetNode(node Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if node.RebootTakes != 0 {
		s.reboots[node.Name] = node.RebootTakes
	}
	if node.Broken != nil {
		s.broken[node.Name] = *node.Broken
	}
}

func enqueueMCO(context.Context, client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: cvo.MachineConfig}}}
}

// release returns the version that the operator was handed last; empty if it was not handed any.
func (s *Simulator) release(ctx context.Context) (string, error) {
	var images corev1.ConfigMap
	key := client.ObjectKey{Namespace: cvo.MachineConfigNamespace, Name: cvo.MachineConfigImages}
	if err := s.client.Get(ctx, key, &images); err != nil {
		return "", fmt.Errorf("getting the release of the machine config operator: %w", err)
	}
	return images.Data[cvo.ReleaseVersionKey], nil
}

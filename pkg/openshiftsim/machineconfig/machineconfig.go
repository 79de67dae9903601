// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machineconfig simulates the machine config operator. The operator reads the release and
// reports in the ClusterOperator "machine-config". The controller updates the nodes of each
// MachineConfigPool, at most as many at a time as the pool allows. The daemons cordon their nodes,
// drain them through the real Eviction API, reboot, and uncordon them. They communicate through the
// same annotations as the real components.
//
// It does not decide when a release is published to it.
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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/stage"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
)

// Durations on a real cluster.
const (
	prepareDuration       = timescale.Duration(30 * time.Second) // to write the files of a new configuration
	defaultRebootDuration = timescale.Duration(4 * time.Minute)  // from the reboot until the kubelet is ready
	drainTimeout          = timescale.Duration(time.Hour)        // after which a drain makes the node degraded
)

// The pools of every cluster.
const (
	Master = "master"
	Worker = "worker"
)

// Pool is a MachineConfigPool.
type Pool struct {
	// Name is the name of the pool and the role of its nodes. The nodes' names consist of this name
	// and a number.
	Name string `json:"name"`
	// Nodes is the number of nodes in the pool. For the pools master and worker, the cluster sets it.
	Nodes int `json:"nodes,omitempty"`
	// MaxUnavailable is the number of nodes that may be updated at a time. It defaults to 1.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Paused stops updates of the nodes.
	Paused bool `json:"paused,omitempty"`
}

// Node configures the behavior of a node.
type Node struct {
	Name string `json:"name"`
	// RebootTakes is the duration of a reboot on a real cluster, or "never". It defaults to 4m.
	RebootTakes timescale.Duration `json:"rebootTakes,omitempty"`
	// Broken, if not empty, is the reason why the node's daemon cannot write the files of a new
	// configuration, making the node degraded.
	Broken *string `json:"broken,omitempty"`
}

// Options configure the simulator.
type Options struct {
	Speed    timescale.Speed
	Kubelets *kubelet.Kubelets
	Nodes    []Node // nodes with special behavior
	// Clock is the clock of the nodes. It defaults to the real clock.
	Clock clock.PassiveClock
	// DrainRetry is the delay before a drain requests evictions again. It defaults to 1s.
	DrainRetry time.Duration
}

// Simulator simulates the machine config operator with its controller and its daemons.
type Simulator struct {
	client  client.Client
	options Options

	mu      sync.Mutex
	reboots map[string]timescale.Duration // durations of reboots, by node name
	broken  map[string]string             // why files cannot be written, by node name
	daemons map[string]*daemon            // by node name
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

// Controllers returns the controllers that simulate the operator, the pools, and the daemons.
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

// AddToManager adds the simulator to a manager.
func AddToManager(mgr ctrlmanager.Manager, options Options) (*Simulator, error) {
	s := New(options)
	if err := stage.Add(mgr, s.Controllers()...); err != nil {
		return nil, fmt.Errorf("simulating the machine config operator: %w", err)
	}
	return s, nil
}

// SetNode changes the behavior of a node. Unset fields have no effect.
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

// release returns the last published version, or an empty string.
func (s *Simulator) release(ctx context.Context) (string, error) {
	var images corev1.ConfigMap
	key := client.ObjectKey{Namespace: cvo.MachineConfigNamespace, Name: cvo.MachineConfigImages}
	if err := s.client.Get(ctx, key, &images); err != nil {
		return "", fmt.Errorf("getting the release of the machine config operator: %w", err)
	}
	return images.Data[cvo.ReleaseVersionKey], nil
}

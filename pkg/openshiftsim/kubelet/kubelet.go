// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet simulates kubelets with their heartbeats and reboots, the taints of the node
// lifecycle controller, a simple scheduler, and pods that run and complete.
//
// It does not handle pools and machine configs. Its users reboot the nodes.
package kubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/stage"
)

// Kubelets simulates the kubelets of all nodes.
type Kubelets struct {
	client  client.Client
	clock   clock.PassiveClock
	wake    chan event.GenericEvent // nodes to reconcile again
	options Options
	local   *localPods // nil if pods cannot run as local processes

	mu    sync.Mutex
	nodes map[string]*machine // by node name

	scheduling sync.Mutex
	scheduled  map[types.UID]string // nodes of pods whose binding may not be in the cache yet
}

// Run runs the content of a pod that ends by itself. If it returns an error, the pod fails with
// that message.
type Run func(ctx context.Context, pod *corev1.Pod) error

// machine is the machine behind a node.
type machine struct {
	down        bool      // powered off
	rebootUntil time.Time // end of the current reboot; zero if there is none
	boots       int
}

// farFuture exceeds the lifetime of any dev cluster and can be added to a time.
const farFuture = 365 * 24 * time.Hour

// Options configure the kubelets.
type Options struct {
	// Clock is the clock of the nodes.
	Clock clock.PassiveClock
	// Run runs the content of a pod that ends by itself. By default, such a pod succeeds immediately.
	Run Run
	// LocalDir is the folder for the logs and working folders of pods that run as local processes. If
	// it is empty, pods cannot run as local processes.
	LocalDir string
	// Reader reads the ConfigMaps and Secrets referenced by the environment of local processes.
	Reader client.Reader
	// PodRetry is the retry interval while a pod waits for a node or for the kubelet of its node. It
	// defaults to 2s.
	PodRetry time.Duration
	// StatusInterval is the interval between posts of an unchanged status. It defaults to 5m.
	StatusInterval time.Duration
}

// New returns the kubelets of all present and future nodes.
func New(options Options) *Kubelets {
	if options.Run == nil {
		options.Run = func(context.Context, *corev1.Pod) error { return nil }
	}
	if options.PodRetry == 0 {
		options.PodRetry = podRetryInterval
	}
	if options.StatusInterval == 0 {
		options.StatusInterval = statusInterval
	}
	k := &Kubelets{
		clock: options.Clock, options: options, wake: make(chan event.GenericEvent, 1024),
		nodes: map[string]*machine{}, scheduled: map[types.UID]string{},
	}
	if options.LocalDir != "" {
		k.local = newLocalPods(options.LocalDir, options.Reader)
	}
	return k
}

// Controllers returns the controllers that simulate nodes and pods.
func (k *Kubelets) Controllers() []manager.Controller {
	return []manager.Controller{{
		Name:        "node-simulator",
		Reads:       []manager.Kind{{Object: &corev1.Node{}, Requests: manager.Self}},
		Channels:    []manager.Channel{{Events: k.wake, Requests: manager.Self}},
		Bind:        k.bind,
		Reconciler:  reconcile.Func(k.reconcileNode),
		RateLimiter: stage.Retry(20 * time.Millisecond),
	}, k.PodController()}
}

// PodController returns the controller that simulates pods, for clusters whose nodes are simulated
// by something else.
func (k *Kubelets) PodController() manager.Controller {
	var channels []manager.Channel
	if k.local != nil {
		channels = []manager.Channel{{Events: k.local.wake, Requests: manager.Self}}
	}
	return manager.Controller{
		Channels:                channels,
		Name:                    "pod-simulator",
		Reads:                   []manager.Kind{{Object: &corev1.Pod{}, Requests: manager.Self}, {Object: &corev1.Node{}}},
		Bind:                    k.bind,
		Reconciler:              reconcile.Func(k.reconcilePod),
		MaxConcurrentReconciles: 8,
		RateLimiter:             stage.Retry(20 * time.Millisecond),
	}
}

func (k *Kubelets) bind(c manager.Clients) error {
	k.client = c.Client
	return nil
}

// AddToManager adds the kubelets and their heartbeats to a manager. Local processes end with the
// manager, and their logs are in localDir.
func AddToManager(mgr ctrlmanager.Manager, run Run, localDir string) (*Kubelets, error) {
	k := New(Options{Clock: clock.RealClock{}, Run: run, LocalDir: localDir, Reader: mgr.GetAPIReader()})
	if err := stage.Add(mgr, k.Controllers()...); err != nil {
		return nil, fmt.Errorf("simulating kubelets: %w", err)
	}
	if err := mgr.Add(ctrlmanager.RunnableFunc(k.heartbeat)); err != nil {
		return nil, fmt.Errorf("simulating heartbeats: %w", err)
	}
	if err := mgr.Add(ctrlmanager.RunnableFunc(k.local.run)); err != nil {
		return nil, fmt.Errorf("running local processes: %w", err)
	}
	return k, nil
}

// Reboot takes a node down for the given duration. It has no effect during another reboot.
func (k *Kubelets) Reboot(name string, duration time.Duration, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	machine := k.machine(name)
	if machine.rebootUntil.After(now) {
		return
	}
	machine.boots++
	machine.rebootUntil = now.Add(min(duration, farFuture))
	k.enqueue(name)
}

// SetDown powers a node off or on.
func (k *Kubelets) SetDown(name string, down bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.machine(name).down = down
	k.enqueue(name)
}

func (k *Kubelets) enqueue(name string) {
	node := &corev1.Node{}
	node.Name = name
	k.wake <- event.GenericEvent{Object: node}
}

// State reports whether a node is up, how often it has rebooted, and how much time the current
// reboot still takes, or 0 if there is no known end.
func (k *Kubelets) State(name string, now time.Time) (up bool, boots int, remaining time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	machine := k.machine(name)
	switch {
	case machine.down:
		return false, machine.boots, 0
	case machine.rebootUntil.After(now):
		return false, machine.boots, machine.rebootUntil.Sub(now)
	default:
		return true, machine.boots, 0
	}
}

func (k *Kubelets) machine(name string) *machine {
	if k.nodes[name] == nil {
		k.nodes[name] = &machine{}
	}
	return k.nodes[name]
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet plays what runs on and around nodes: kubelets with their heartbeats and reboots, the part of the node
// lifecycle controller that sets taints, a scheduler that is easily satisfied, and pods that run and end.
//
// It knows nothing of pools and machine configs: somebody tells it to reboot a node.
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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/stage"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Kubelets play the kubelets of all nodes.
type Kubelets struct {
	client  client.Client
	clock   clock.PassiveClock
	wake    chan event.GenericEvent // nodes to reconcile again
	options Options

	mu    sync.Mutex
	nodes map[string]*machine // by the node's name

	scheduling sync.Mutex
	scheduled  map[types.UID]string // the nodes of pods that were bound just now
}

// Run runs what is in a pod that ends by itself. An error makes the pod a failed one that shows it.
type Run func(ctx context.Context, pod *corev1.Pod) error

// machine is what a node runs on.
type machine struct {
	down        bool      // somebody pulled the plug
	rebootUntil time.Time // when the reboot that is under way ends; zero if none is
	boots       int
}

// farFuture is longer than a dev cluster lives, and can be added to a time.
const farFuture = 365 * 24 * time.Hour

// Options configure the kubelets.
type Options struct {
	// Clock is the clock of the nodes.
	Clock clock.PassiveClock
	// Run runs what is in a pod that ends by itself; nil runs nothing.
	Run Run
	// PodRetry is how long a pod waits for a node, or for the kubelet of its node; 0 means 2s.
	PodRetry time.Duration
	// StatusInterval is how often an unchanged status is posted; 0 means every 5m.
	StatusInterval time.Duration
}

// New returns the kubelets of all nodes that exist now or later.
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
	return &Kubelets{
		clock: options.Clock, options: options, wake: make(chan event.GenericEvent, 1024),
		nodes: map[string]*machine{}, scheduled: map[types.UID]string{},
	}
}

// Controllers declares the controllers that simulate nodes and pods.
func (k *Kubelets) Controllers() []manager.Controller {
	bind := func(c manager.Clients) error {
		k.client = c.Client
		return nil
	}
	return []manager.Controller{{
		Name:        "node-simulator",
		Reads:       []manager.Kind{{Object: &corev1.Node{}, Requests: manager.Self}},
		Channels:    []manager.Channel{{Events: k.wake, Requests: manager.Self}},
		Bind:        bind,
		Reconciler:  reconcile.Func(k.reconcileNode),
		RateLimiter: stage.Retry(20 * time.Millisecond),
	}, {
		Name:                    "pod-simulator",
		Reads:                   []manager.Kind{{Object: &corev1.Pod{}, Requests: manager.Self}, {Object: &corev1.Node{}}},
		Bind:                    bind,
		Reconciler:              reconcile.Func(k.reconcilePod),
		MaxConcurrentReconciles: 8,
		RateLimiter:             stage.Retry(20 * time.Millisecond),
	}}
}

// AddToManager has the manager run the kubelets, with their heartbeats.
func AddToManager(mgr ctrlmanager.Manager, run Run) (*Kubelets, error) {
	k := New(Options{Clock: clock.RealClock{}, Run: run})
	if err := stage.Add(mgr, k.Controllers()...); err != nil {
		return nil, fmt.Errorf("simulating kubelets: %w", err)
	}
	if err := mgr.Add(ctrlmanager.RunnableFunc(k.heartbeat)); err != nil {
		return nil, fmt.Errorf("simulating heartbeats: %w", err)
	}
	return k, nil
}

// Reboot makes a node go away for a time, or for good, and come back. A node that is rebooting already goes on doing so.
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

// SetDown pulls the plug of a node, or puts it back.
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

// State says whether a node runs, how many times it was booted since it was installed, and in how long it will be back:
// 0 if nobody knows.
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

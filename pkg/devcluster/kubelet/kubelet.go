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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/stage"
)

// Kubelets play the kubelets of all nodes.
type Kubelets struct {
	client client.Client
	wake   chan event.GenericEvent // nodes to look at again
	run    Run

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

// AddToManager has the manager run the kubelets of all nodes that exist now or later. What pods do is played but for what
// run does; nil is nothing.
func AddToManager(mgr manager.Manager, run Run) (*Kubelets, error) {
	if run == nil {
		run = func(context.Context, *corev1.Pod) error { return nil }
	}
	k := &Kubelets{client: mgr.GetClient(), run: run, wake: make(chan event.GenericEvent, 1024), nodes: map[string]*machine{}, scheduled: map[types.UID]string{}}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("node-player").
		For(&corev1.Node{}).
		WatchesRawSource(source.Channel(k.wake, &handler.EnqueueRequestForObject{})).
		WithOptions(stage.Options(1, 20*time.Millisecond)).
		Complete(reconcile.Func(k.reconcileNode))
	if err != nil {
		return nil, fmt.Errorf("playing nodes: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("pod-player").
		For(&corev1.Pod{}).
		WithOptions(stage.Options(8, 20*time.Millisecond)).
		Complete(reconcile.Func(k.reconcilePod))
	if err != nil {
		return nil, fmt.Errorf("playing pods: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(k.heartbeat)); err != nil {
		return nil, fmt.Errorf("playing heartbeats: %w", err)
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

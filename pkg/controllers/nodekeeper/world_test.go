// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// nodeName is the draining node in these tests.
const nodeName = "worker-0"

// world is a cluster with the operator. An upgrade has commenced, and the machine config operator
// has been draining a node since noon.
type world struct {
	*simulation.Harness
	kubelets map[types.UID]time.Duration // how long pods take to terminate; negative never ends

	config     config.NodeDrain
	attempts   []Attempt   // the active ones
	reconciler *Reconciler // of this life of the process
	reconciles int
	result     reconcile.Result // of the last reconcile
	err        error

	plan   simulation.FaultPlan    // of the writes; nil serves all
	fail   func(what string) error // of requests; nil serves all
	writes int
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{
		Harness: simulation.NewHarness(t, simulation.WorldOptions{Start: noon}), kubelets: map[types.UID]time.Duration{},
		config:   config.NodeDrain{TimeOut: config.Duration{Duration: 45 * time.Minute}, IgnoreNamespaces: []string{"openshift-*"}},
		attempts: []Attempt{upgrading()},
	}
	w.Must(w.Add(append(objects, draining())...))
	w.EnableKubelets(func(pod *corev1.Pod) time.Duration { return w.kubelets[pod.UID] })
	w.Describe, w.Plan = nameOf, w.decide
	w.Program.Reconciled = func(_ reconcile.Request, result reconcile.Result, err error) {
		w.reconciles, w.result, w.err = w.reconciles+1, result, err
	}
	w.Run(w.controllers)
	return w
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	drainMetrics, err := metrics.NewDrains(w.Registry, clusterstate.HoldReasons()...)
	if err != nil {
		return nil, err
	}
	w.reconciler = &Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock, Metrics: drainMetrics,
		Sources: []AttemptSource{{Kind: manager.Kind{Object: &corev1.ConfigMap{}}, Active: w.active}},
		Events:  &notify.Events{Client: env.Client, Clock: env.Clock},
		Config:  func() config.NodeDrain { return w.config },
	}
	return []manager.Controller{w.reconciler.Controller()}, nil
}

// nameOf returns a request as text.
func nameOf(r simulation.Request) string {
	switch {
	case r.Subresource == "eviction":
		return "evict " + r.Key.String()
	case r.Verb == "delete":
		return "delete " + r.Key.String()
	}
	return r.Verb + " " + r.Kind
}

// decide fails requests, and applies the plan to writes.
func (w *world) decide(r simulation.Request) simulation.Fault {
	what := nameOf(r)
	if r.Cached && !r.IsWrite() {
		what = "cached " + what
	}
	if r.IsWrite() {
		w.writes = r.Write
	}
	if err := w.failure(what); err != nil {
		return simulation.Fault{Outcome: simulation.Refuse, Err: err}
	}
	if r.IsWrite() && w.plan != nil {
		return w.plan(r)
	}
	return simulation.Fault{}
}

func (w *world) failure(what string) error {
	if w.fail == nil {
		return nil
	}
	return w.fail(what)
}

// active implements Source.Active.
func (w *world) active(context.Context, client.Reader) ([]Attempt, error) {
	return w.attempts, w.failure("active attempts")
}

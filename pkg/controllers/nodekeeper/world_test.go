// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// nodeName is the node that is being drained in these tests.
const nodeName = "worker-0"

// world is a cluster in which an upgrade has commenced and the machine config operator drains a node
// since noon, with the operator.
type world struct {
	*simulation.World
	t        *testing.T
	api      client.WithWatch
	kubelets map[types.UID]time.Duration // how long pods take to terminate; negative means forever

	config     config.NodeDrain
	attempts   []Attempt // the active ones
	program    simulation.Program
	process    *simulation.Process
	registry   *prometheus.Registry
	reconciler *Reconciler // of this life of the process
	reconciles int
	result     reconcile.Result // of the last reconcile
	err        error

	plan      simulation.Plan         // of the writes; nil serves all
	refuse    func(what string) error // the writes that admission denies; nil means none
	readError func(what string) error // of reads; nil serves all
	requests  []string                // of the operator to the API server
	writes    int
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{
		World: simulation.New(simulation.Options{Start: noon}), t: t, kubelets: map[types.UID]time.Duration{},
		config:   config.NodeDrain{TimeOut: config.Duration{Duration: 45 * time.Minute}, IgnoreNamespaces: []string{"openshift-*"}},
		attempts: []Attempt{upgrading()},
	}
	w.api = w.Client("test")
	w.must(w.Add(append(objects, draining())...))
	w.EnableKubelets(func(pod *corev1.Pod) time.Duration { return w.kubelets[pod.UID] })
	w.program = simulation.Program{Name: "operator", Controllers: w.controllers, Plan: w.decide, OnCrash: w.start}
	w.start()
	return w
}

// start begins a life of the operator.
func (w *world) start() {
	process, err := w.Start(&w.program)
	w.must(err)
	w.process = process
}

// restart ends the life of the operator and begins another one.
func (w *world) restart() {
	w.process.Kill()
	w.start()
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	w.registry = prometheus.NewPedanticRegistry()
	drainMetrics, err := metrics.NewDrains(w.registry, checks.HoldReasons()...)
	if err != nil {
		return nil, err
	}
	w.reconciler = &Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock, Metrics: drainMetrics,
		Sources: []Source{{Kind: manager.Kind{Object: &corev1.ConfigMap{}}, Active: w.active}},
		Events:  &notify.Events{Client: env.Client, Clock: env.Clock},
		Config:  func() config.NodeDrain { return w.config },
	}
	controller := w.reconciler.Controller()
	controller.Reconciler = reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		w.result, w.err = w.reconciler.Reconcile(ctx, request)
		w.reconciles++
		return w.result, w.err
	})
	return []manager.Controller{controller}, nil
}

// decide records each request and applies the plans.
func (w *world) decide(r simulation.Request) simulation.Fault {
	what := r.Verb + " " + r.Kind
	switch {
	case r.Subresource == "eviction":
		what = "evict " + r.Key.String()
	case r.Verb == "delete":
		what = "delete " + r.Key.String()
	case r.Cached:
		return refused(w.failure("cached " + what))
	}
	w.requests = append(w.requests, what)
	if !r.IsWrite() {
		return refused(w.failure(what))
	}
	w.writes = r.Write
	if w.refuse != nil {
		if err := w.refuse(what); err != nil {
			return refused(err)
		}
	}
	if w.plan != nil {
		return w.plan(r)
	}
	return simulation.Fault{}
}

// refused returns the fault of a request that ends with an error; nil means none.
func refused(err error) simulation.Fault {
	if err == nil {
		return simulation.Fault{}
	}
	return simulation.Fault{Outcome: simulation.Refuse, Err: err}
}

func (w *world) failure(what string) error {
	if w.readError == nil {
		return nil
	}
	return w.readError(what)
}

// active is the Active of a Source.
func (w *world) active(context.Context, client.Reader) ([]Attempt, error) {
	return w.attempts, w.failure("active attempts")
}

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
	attempts   []Attempt // the active ones
	registry   *prometheus.Registry
	reconciler *Reconciler // of the current process
	reconciles int
	result     reconcile.Result // of the last reconcile
	err        error

	plan      simulation.Plan         // faults of writes; nil serves all
	refuse    func(what string) error // denies writes, like an admission webhook; nil admits all
	readError func(what string) error // errors of reads; nil serves all
	writes    int
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{
		Harness: simulation.NewHarness(t, simulation.Options{Start: noon}), kubelets: map[types.UID]time.Duration{},
		config:   config.NodeDrain{TimeOut: config.Duration{Duration: 45 * time.Minute}, IgnoreNamespaces: []string{"openshift-*"}},
		attempts: []Attempt{upgrading()},
	}
	w.Must(w.Add(append(objects, draining())...))
	w.EnableKubelets(func(pod *corev1.Pod) time.Duration { return w.kubelets[pod.UID] })
	w.Describe, w.Plan = nameOf, w.decide
	w.Run(w.controllers)
	return w
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	w.registry = prometheus.NewPedanticRegistry()
	drainMetrics, err := metrics.NewDrains(w.registry, clusterstate.HoldReasons()...)
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

// decide applies the plans.
func (w *world) decide(r simulation.Request) simulation.Fault {
	switch {
	case r.Cached && !r.IsWrite():
		return refused(w.failure("cached " + nameOf(r)))
	case !r.IsWrite():
		return refused(w.failure(nameOf(r)))
	}
	w.writes = r.Write
	if w.refuse != nil {
		if err := w.refuse(nameOf(r)); err != nil {
			return refused(err)
		}
	}
	if w.plan != nil {
		return w.plan(r)
	}
	return simulation.Fault{}
}

// refused returns the fault for an error; the zero Fault if err is nil.
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

// active implements Source.Active.
func (w *world) active(context.Context, client.Reader) ([]Attempt, error) {
	return w.attempts, w.failure("active attempts")
}

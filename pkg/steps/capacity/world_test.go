// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"context"
	"errors"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
)

const (
	timeout = 15 * time.Minute
	setOf   = "machine.openshift.io/cluster-api-machineset"
	roleOf  = "machine.openshift.io/cluster-api-machine-role"
)

var (
	noon        = time.Date(2020, 5, 1, 12, 0, 0, 0, time.UTC)
	testAttempt = engine.AttemptRef{UID: "u-1", Kind: "UpgradeConfig", Namespace: "ns", Name: "cluster", Key: "2026-03-01T12:00:00Z", Version: "4.4.6"}
	errRefused  = errors.New("the connection was refused")
)

// set returns a MachineSet with three worker Machines and these changes.
func set(name string, changes ...func(*machinev1beta1.MachineSet)) *machinev1beta1.MachineSet {
	s := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: capacity.Namespace, Name: name, UID: types.UID(name)}}
	s.Spec.Replicas = new(int32(3))
	s.Spec.Selector.MatchLabels = map[string]string{setOf: name}
	s.Spec.Template.Labels = map[string]string{setOf: name, roleOf: "worker"}
	s.Spec.Template.Spec.Labels = map[string]string{"zone": name}
	s.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{"instanceType":"m5.xlarge"}`)}
	for _, change := range changes {
		change(s)
	}
	return s
}

// world is a cluster with a scripted machine API.
type world struct {
	*simulation.Harness
	machines *openshift.Machines
	outer    client.WithWatch // the client of the operator

	fault    func(request int) simulation.Outcome // by the number of the request, from 1; nil serves all
	requests int
	operator *capacity.ExtraNodes // of the current process
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{Harness: simulation.NewHarness(t, simulation.WorldOptions{Start: noon})}
	w.Must(w.Add(objects...))
	w.machines = openshift.NewMachines(w.World, clusterstate.LabelExtraNodeOf)
	w.outer = interceptor.NewClient(w.FaultyClient("operator", w.decide), interceptor.Funcs{Delete: w.delete})
	w.restart()
	return w
}

// decide counts the requests, except for reads from the cache.
func (w *world) decide(r simulation.Request) simulation.Fault {
	if r.Kind == "NodeList" {
		return simulation.Fault{}
	}
	w.requests++
	if w.fault == nil {
		return simulation.Fault{}
	}
	return simulation.Fault{Outcome: w.fault(w.requests), Err: errRefused}
}

// delete deletes a MachineSet like an API server that must delete its Machines first.
func (w *world) delete(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	if options.PropagationPolicy == nil || *options.PropagationPolicy != metav1.DeletePropagationForeground || options.Preconditions == nil || *options.Preconditions.UID != object.GetUID() {
		w.TB.Errorf("%s is deleted with %+v", object.GetName(), options)
	}
	var current machinev1beta1.MachineSet
	if err := w.User.Get(ctx, client.ObjectKeyFromObject(object), &current); err == nil && len(current.Finalizers) == 0 {
		current.Finalizers = []string{metav1.FinalizerDeleteDependents}
		w.Must(w.User.Update(ctx, &current))
	}
	return c.Delete(ctx, object, opts...)
}

// restart replaces the process of the operator.
func (w *world) restart() { w.operator = &capacity.ExtraNodes{Client: w.outer, Live: w.outer} }

// pass lets time pass, and then the machine API do the next thing.
func (w *world) pass(d time.Duration) {
	w.TB.Helper()
	w.Advance(d)
	w.Must(w.machines.Step())
}

// call calls a step that was first called some time ago.
func (w *world) call(step engine.UpgradeStep, ago time.Duration) (engine.Result, error) {
	return step(w.TB.Context(), engine.Run{Started: noon, Since: w.Now().Add(-ago), Now: w.Now()})
}

// must calls a step and fails on an error.
func (w *world) must(step engine.UpgradeStep, ago time.Duration) engine.Result {
	w.TB.Helper()
	result, err := w.call(step, ago)
	w.Must(err)
	return result
}

// settle calls a step every second until it is finished, for at most an hour.
func (w *world) settle(step func() engine.UpgradeStep) engine.Result {
	w.TB.Helper()
	since := w.Now()
	for range 3600 {
		result, err := w.call(step(), w.Now().Sub(since))
		if err == nil && (result.Passed() || result.Failed()) {
			return result
		}
		w.pass(time.Second)
	}
	w.TB.Fatal("the step does not finish")
	return engine.Result{}
}

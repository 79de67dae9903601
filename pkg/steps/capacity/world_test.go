// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
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
)

// set is a MachineSet of three machines for workers, with changes.
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

func replicas(n int32) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Spec.Replicas = &n }
}

func role(name string) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Spec.Template.Labels[roleOf] = name }
}

func extraOf(uid string) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Labels = map[string]string{clusterstate.LabelExtraNodeOf: uid} }
}

// fault is what becomes of a request to the API server.
type fault int

const (
	none fault = iota
	lost       // it does not arrive
	mute       // it is carried out, but the answer is lost
)

var errLost = errors.New("the connection was refused")

// machineFailure is what is wrong with the machines of a MachineSet, or of the extra one beside it.
type machineFailure string

const (
	nothing   machineFailure = ""
	noMachine machineFailure = "there are none"
	noQuota   machineFailure = "the cloud refuses them"
	noNode    machineFailure = "they have no node"
	absent    machineFailure = "their node is not there"
	notReady  machineFailure = "their node is not ready"
	nameless  machineFailure = "their node has no name"
)

// world is a cluster with a machine API, as far as it takes one, and a clock.
type world struct {
	t             *testing.T
	clock         *testclock.FakePassiveClock
	cluster       *simulation.World
	inner         client.WithWatch          // nothing fails
	outer         client.WithWatch          // as the operator has it
	failures      map[string]machineFailure // by what the name of the MachineSet begins with
	blockDeletion bool                      // what is deleted stays

	fault    func(request int) fault // asked for each request of the operator, from 1
	requests int
	operator *capacity.ExtraNodes // that lives now
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, clock: testclock.NewFakePassiveClock(noon), failures: map[string]machineFailure{}}
	w.cluster = simulation.New(simulation.Options{})
	w.ok(w.cluster.Add(objects...))
	w.inner = w.cluster.Client("test")
	w.outer = interceptor.NewClient(w.inner, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, cached := list.(*corev1.NodeList); cached {
				return c.List(ctx, list, opts...)
			}
			return w.request(func() error { return c.List(ctx, list, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			var how client.ApplyOptions
			if how.ApplyOptions(opts); len(how.DryRun) > 0 {
				return w.request(func() error { return nil }) // which the fake client would carry out
			}
			return w.request(func() error { return c.Apply(ctx, object, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			return w.request(func() error { return w.delete(ctx, object, opts...) })
		},
	})
	w.restart()
	return w
}

// request is what becomes of a request.
func (w *world) request(do func() error) error {
	w.requests++
	becomes := none
	if w.fault != nil {
		becomes = w.fault(w.requests)
	}
	if becomes == lost {
		return errLost
	}
	err := do()
	if becomes == mute {
		return errLost
	}
	return err
}

// delete deletes a MachineSet as an API server does that is asked to delete its Machines first.
func (w *world) delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	var how client.DeleteOptions
	how.ApplyOptions(opts)
	if how.PropagationPolicy == nil || *how.PropagationPolicy != metav1.DeletePropagationForeground || how.Preconditions == nil || *how.Preconditions.UID != object.GetUID() {
		w.t.Errorf("%s is deleted so: %+v", object.GetName(), how)
	}
	var current machinev1beta1.MachineSet
	if err := w.inner.Get(ctx, client.ObjectKeyFromObject(object), &current); err != nil {
		return err
	}
	if len(current.Finalizers) == 0 {
		current.Finalizers = []string{metav1.FinalizerDeleteDependents}
		w.ok(w.inner.Update(ctx, &current))
	}
	return w.inner.Delete(ctx, &current)
}

// restart lets the operator die and another live.
func (w *world) restart() { w.operator = &capacity.ExtraNodes{Client: w.outer, Live: w.outer} }

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// pass lets time pass, and then the machine API do what it has to.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(d))
	var sets machinev1beta1.MachineSetList
	w.ok(w.inner.List(w.t.Context(), &sets))
	for i := range sets.Items {
		s := &sets.Items[i]
		switch _, extra := s.Labels[clusterstate.LabelExtraNodeOf]; {
		case s.DeletionTimestamp == nil && extra:
			w.provide(s)
		case s.DeletionTimestamp != nil && !w.blockDeletion:
			w.dispose(s)
		}
	}
}

// provide gives an extra MachineSet its machine, and that a node, one thing at a time.
func (w *world) provide(s *machinev1beta1.MachineSet) {
	w.t.Helper()
	current := nothing
	for beginning, failure := range w.failures {
		if strings.HasPrefix(s.Name, beginning) {
			current = failure
		}
	}
	ctx, key := w.t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: s.Name + "-abcde"}
	var machine machinev1beta1.Machine
	switch err := w.inner.Get(ctx, key, &machine); {
	case current == noMachine:
		s.Status.ErrorReason, s.Status.ErrorMessage = new(machinev1beta1.InvalidConfigurationMachineSetError), new("no such\ninstance type")
		w.ok(w.inner.Status().Update(ctx, s))
	case client.IgnoreNotFound(err) != nil:
		w.t.Fatal(err)
	case err != nil:
		machine.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: s.Spec.Template.Labels}
		machine.Spec = s.Spec.Template.Spec
		w.ok(w.inner.Create(ctx, &machine))
	case machine.Status.Phase == nil:
		machine.Status.Phase = new("Provisioning")
		if current == noQuota {
			machine.Status.Phase, machine.Status.ErrorReason, machine.Status.ErrorMessage = new("Failed"), new(machinev1beta1.InsufficientResourcesMachineError), new("you have reached your quota")
		}
		w.ok(w.inner.Status().Update(ctx, &machine))
	case machine.Status.NodeRef == nil && current != noQuota && current != noNode:
		machine.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: "node-" + s.Name}
		if current == nameless {
			machine.Status.NodeRef.Name = ""
		}
		w.ok(w.inner.Status().Update(ctx, &machine))
		if current != absent && current != nameless {
			w.node("node-"+s.Name, machine.Spec.Labels, current != notReady)
		}
	}
}

func (w *world) node(name string, labels map[string]string, ready bool) {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: map[bool]corev1.ConditionStatus{true: "True", false: "False"}[ready]}}
	w.ok(w.cluster.Add(node))
}

// dispose deletes the machine of a MachineSet, with its node, and at last lets the MachineSet go.
func (w *world) dispose(s *machinev1beta1.MachineSet) {
	w.t.Helper()
	ctx := w.t.Context()
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "-abcde"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + s.Name}}
	for _, object := range []client.Object{node, machine} {
		switch err := w.inner.Delete(ctx, object); {
		case err == nil:
			return // the rest another time
		case client.IgnoreNotFound(err) != nil:
			w.t.Fatal(err)
		}
	}
	s.Finalizers = nil
	w.ok(w.inner.Update(ctx, s))
}

// names are those of all MachineSets that are not being deleted, those of the extra ones as +NAME of the one they stand beside.
func (w *world) names() []string {
	w.t.Helper()
	var sets machinev1beta1.MachineSetList
	w.ok(w.inner.List(w.t.Context(), &sets))
	var found []string
	for _, s := range sets.Items {
		name := s.Name
		if _, extra := s.Labels[clusterstate.LabelExtraNodeOf]; extra {
			name = "+" + s.Annotations["upgrade.managed.openshift.io/machineset"]
		}
		if s.DeletionTimestamp == nil {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// extras are the extra MachineSets, by the name of the one they stand beside.
func (w *world) extras() map[string]*machinev1beta1.MachineSet {
	w.t.Helper()
	var sets machinev1beta1.MachineSetList
	w.ok(w.inner.List(w.t.Context(), &sets, client.HasLabels{clusterstate.LabelExtraNodeOf}))
	found := map[string]*machinev1beta1.MachineSet{}
	for i := range sets.Items {
		found[sets.Items[i].Annotations["upgrade.managed.openshift.io/machineset"]] = &sets.Items[i]
	}
	return found
}

// remaining is what is ours and still there.
func (w *world) remaining() []string {
	w.t.Helper()
	found := slices.Sorted(maps.Keys(w.extras()))
	for _, list := range []client.ObjectList{&machinev1beta1.MachineList{}, &corev1.NodeList{}} {
		w.ok(w.inner.List(w.t.Context(), list, client.HasLabels{clusterstate.LabelExtraNodeOf}))
		switch list := list.(type) {
		case *machinev1beta1.MachineList:
			for _, m := range list.Items {
				found = append(found, m.Name)
			}
		case *corev1.NodeList:
			for _, n := range list.Items {
				found = append(found, n.Name)
			}
		}
	}
	return found
}

func (w *world) add() engine.UpgradeStep          { return w.operator.Add(testAttempt, true, timeout) }
func (w *world) remove() engine.UpgradeStep       { return w.operator.Remove() }
func (w *world) removeWithin() engine.UpgradeStep { return w.operator.RemoveWithin(timeout) }

// removeNow does what nobody waits for.
func (w *world) removeNow() engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		return engine.Done(""), w.operator.RemoveNow(ctx)
	}
}

// call calls a step that was first tried some time ago.
func (w *world) call(step engine.UpgradeStep, tried time.Duration) (engine.Result, error) {
	now := w.clock.Now()
	return step(w.t.Context(), engine.Run{Started: noon, Since: now.Add(-tried), Now: now})
}

// must is call without an error.
func (w *world) must(step engine.UpgradeStep, tried time.Duration) engine.Result {
	w.t.Helper()
	result, err := w.call(step, tried)
	w.ok(err)
	return result
}

// settle calls a step once a second until it is over, for an hour at most.
func (w *world) settle(step func() engine.UpgradeStep) engine.Result {
	w.t.Helper()
	since := w.clock.Now()
	for range 3600 {
		result, err := w.call(step(), w.clock.Now().Sub(since))
		if err == nil && (result.Passed() || result.Failed()) {
			return result
		}
		w.pass(time.Second)
	}
	w.t.Fatal("it does not end")
	return engine.Result{}
}

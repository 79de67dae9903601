// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

func TestExtraNodesAreAddedAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"), set("worker-b"))
	w.Must(w.machines.AddNode("worker-a-0", nil, false)) // an ordinary one
	if got, want := w.settle(w.add), engine.Done("extra nodes ready: node-worker-a-extra-d582eebc, node-worker-b-extra-ec0d56e6"); got != want {
		t.Errorf("added: %+v", got)
	}
	if diff := cmp.Diff([]string{"+worker-a", "+worker-b", "worker-a", "worker-b"}, w.names()); diff != "" {
		t.Errorf("MachineSets (-want +got):\n%s", diff)
	}
	if got := w.settle(w.remove); got != engine.Done("no extra node is left") {
		t.Errorf("removed: %+v", got)
	}
	if diff := cmp.Diff([]string{"worker-a", "worker-b"}, w.names()); diff != "" || len(w.remaining()) > 0 {
		t.Errorf("MachineSets (-want +got):\n%s%v", diff, w.remaining())
	}
}

func TestExtraMachineSetIsDerivedFromItsSource(t *testing.T) {
	t.Parallel()
	source := set("worker-a", func(s *machinev1beta1.MachineSet) {
		s.Spec.DeletePolicy = "Newest"
		s.Annotations = map[string]string{"machine.openshift.io/cluster-api-autoscaler-node-group-max-size": "9"} // would scale it
		s.Spec.Selector.MatchLabels["more"] = "x"
		s.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	})
	w := newWorld(t, source)
	w.must(w.add(), 0)
	got := w.extras()["worker-a"]
	spec := *source.Spec.DeepCopy()
	mark := map[string]string{setOf: "worker-a-extra-d582eebc", clusterstate.LabelExtraNodeOf: "u-1"}
	spec.Replicas = new(int32(1))
	spec.Selector.MatchLabels = mark
	spec.Template.Labels = map[string]string{setOf: "worker-a-extra-d582eebc", clusterstate.LabelExtraNodeOf: "u-1", roleOf: "worker"}
	spec.Template.Spec.Labels = map[string]string{"zone": "worker-a", clusterstate.LabelExtraNodeOf: "u-1"}
	if diff := cmp.Diff(spec, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"upgrade.managed.openshift.io/upgrade":    "ns/cluster to 4.4.6 at 2026-03-01T12:00:00Z",
		"upgrade.managed.openshift.io/machineset": "worker-a",
	}
	if diff := cmp.Diff(want, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{clusterstate.LabelExtraNodeOf: "u-1"}, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// TestUnknownFieldsOfTheSourceAreKept uses a MachineSet with a field that its Go type lacks.
func TestUnknownFieldsOfTheSourceAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"))
	var made map[string]any
	w.operator.Live = interceptor.NewClient(w.outer, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if sets, is := list.(*unstructured.UnstructuredList); is {
				w.Must(unstructured.SetNestedField(sets.Items[0].Object, "z", "spec", "template", "spec", "newer"))
			}
			return err
		},
	})
	w.operator.Client = interceptor.NewClient(w.outer, interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			var err error
			made, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			return err
		},
	})
	w.must(w.add(), 0)
	if got, _, _ := unstructured.NestedString(made, "spec", "template", "spec", "newer"); got != "z" {
		t.Errorf("made %+v", made)
	}
}

func TestSourcesOfExtraMachineSets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set  *machinev1beta1.MachineSet
		want bool
	}{
		"workers":                      {set("m"), true},
		"single worker":                {set("m", replicas(1)), true},
		"default replicas":             {set("m", func(s *machinev1beta1.MachineSet) { s.Spec.Replicas = nil }), true},
		"no replicas":                  {set("m", replicas(0)), false},
		"negative replicas":            {set("m", replicas(-3)), false},
		"infrastructure":               {set("m", role("infra")), false},
		"no role":                      {set("m", func(s *machinev1beta1.MachineSet) { s.Spec.Template.Labels = nil }), false},
		"extra one of another upgrade": {set("m", extraOf("u-2")), false},
		"another namespace":            {set("m", func(s *machinev1beta1.MachineSet) { s.Namespace = "default" }), false},
		"being deleted": {set("m", func(s *machinev1beta1.MachineSet) {
			s.Finalizers, s.DeletionTimestamp = []string{"x/x"}, new(metav1.NewTime(noon))
		}), false},
		"nodes without labels": {set("m", func(s *machinev1beta1.MachineSet) { s.Spec.Template.Spec.Labels = nil }), true},
		"none":                 {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tc.set != nil {
				w = newWorld(t, tc.set)
			}
			got := w.must(w.add(), 0)
			if made := slices.Contains(w.names(), "+m"); made != tc.want {
				t.Errorf("created: %t", made)
			}
			nothing := engine.Skip("NothingToAdd", "no MachineSet of workers in namespace openshift-machine-api has a machine")
			if !tc.want && got != nothing || tc.want && got.Reason() != "AddingNodes" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestExtraNodesNotRequested(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"))
	got := w.must(w.operator.Add(testAttempt, false, timeout), 0)
	if got != engine.Skip("NotConfigured", "spec.capacityReservation does not request extra nodes") || w.requests != 0 {
		t.Errorf("%d requests, and %+v", w.requests, got)
	}
}

func TestWithoutMachineAPI(t *testing.T) {
	t.Parallel()
	for name, absent := range map[string]error{
		"never installed": fmt.Errorf("mapping: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "MachineSet"}}),
		"removed":         apierrors.NewNotFound(schema.GroupResource{Resource: "machinesets"}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkWithoutMachineAPI(t, absent)
		})
	}
}

func checkWithoutMachineAPI(t *testing.T, absent error) {
	t.Helper()
	w := newWorld(t)
	w.operator.Live = interceptor.NewClient(w.outer, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return absent },
	})
	for _, tried := range []time.Duration{0, timeout, time.Hour} {
		if got := w.must(w.add(), tried); got.Reason() != "NothingToAdd" || !got.Passed() {
			t.Errorf("added: %+v", got)
		}
		if got := w.must(w.operator.Remove(), tried); got != engine.Done("no extra node is left") {
			t.Errorf("removed: %+v", got)
		}
	}
}

func TestNamesOfExtraMachineSets(t *testing.T) {
	t.Parallel()
	made := map[string]string{}
	for what, tc := range map[string]struct {
		about  engine.AttemptRef
		beside string
	}{
		"the attempt":           {testAttempt, "worker-a"},
		"another MachineSet":    {testAttempt, "worker-b"},
		"another attempt":       {engine.AttemptRef{UID: "u-1", Key: "2026-03-02T12:00:00Z", Version: "4.4.6"}, "worker-a"},
		"another version":       {engine.AttemptRef{UID: "u-1", Key: "2026-03-01T12:00:00Z", Version: "4.4.7+x"}, "worker-a"},
		"another UpgradeConfig": {engine.AttemptRef{UID: "u-2", Key: "2026-03-01T12:00:00Z", Version: "4.4.6"}, "worker-a"},
		"a long name":           {testAttempt, strings.Repeat("worker-", 30) + "a"},
		"a longer one":          {testAttempt, strings.Repeat("worker-", 30) + "b"},
		"a name cut at a dot":   {testAttempt, strings.Repeat("a", 41) + "." + strings.Repeat("b", 100)},
	} {
		w := newWorld(t, set(tc.beside))
		for range 2 {
			w.restart()
			w.must(w.operator.Add(tc.about, true, timeout), 0)
		}
		if n := len(w.extras()); n != 1 {
			t.Fatalf("%s: %d extra MachineSets", what, n)
		}
		got := w.extras()[tc.beside]
		if wrong := append(validation.IsDNS1123Label(strings.ReplaceAll(got.Name, ".", "-")), validation.IsValidLabelValue(got.Name)...); len(got.Name) > 57 || len(wrong) > 0 {
			t.Errorf("%s: %s: %v", what, got.Name, wrong)
		}
		if !strings.HasPrefix(got.Name, tc.beside[:min(8, len(tc.beside))]) {
			t.Errorf("%s: %s does not sort beside %s", what, got.Name, tc.beside)
		}
		if other, taken := made[got.Name]; taken {
			t.Errorf("%s has the name of %s: %s", what, other, got.Name)
		}
		made[got.Name] = what
	}
}

func TestMissingNodeIsNamedAndRemovedAtTheTimeout(t *testing.T) {
	t.Parallel()
	for _, what := range []openshift.MachineFailure{
		openshift.NoMachine, openshift.NoQuota, openshift.NoNode, openshift.NodeWithoutName, openshift.NodeAbsent, openshift.NodeNotReady,
	} {
		t.Run(string(what), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, set("worker-a"), set("worker-b"), set("worker-c"))
			w.machines.Failures["worker-b"] = what
			var last engine.Result
			got := w.settle(func() engine.UpgradeStep {
				return func(ctx context.Context, run engine.Run) (engine.Result, error) {
					result, err := w.add()(ctx, run)
					if !result.Passed() {
						last = result
					}
					return result, err
				}
			})
			golden.Texts(t, "", last.Message())
			if last.Reason() != "AddingNodes" {
				t.Errorf("waiting for %s: %s", last.Reason(), last.Message())
			}
			if got != engine.Skip("CapacityNotAvailable", "%s", last.Message()+"; the upgrade continues") {
				t.Errorf("got %s: %s", got.Reason(), got.Message())
			}
			if took := w.Now().Sub(noon); took < timeout || took > timeout+15*time.Second {
				t.Errorf("it took %s", took)
			}
			if diff := cmp.Diff([]string{"+worker-a", "+worker-c", "worker-a", "worker-b", "worker-c"}, w.names()); diff != "" {
				t.Errorf("MachineSets (-want +got):\n%s", diff)
			}
			w.settle(w.remove)
			if left := w.remaining(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestNodeThatIsNoLongerReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"), set("worker-b"))
	w.machines.Failures["worker-b"] = openshift.NoNode
	for range 60 {
		w.must(w.add(), w.Now().Sub(noon))
		w.pass(time.Second)
	}
	node := &corev1.Node{}
	node.Name = "node-worker-a-extra-d582eebc"
	w.Must(w.User.Get(t.Context(), client.ObjectKeyFromObject(node), node))
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	w.UpdateStatus(node)
	w.machines.Failures["worker-b"] = openshift.NoFailure
	w.pass(time.Minute)
	w.pass(time.Minute)
	got := w.must(w.add(), 3*time.Minute)
	golden.Texts(t, "", got.Message())
	if got.Passed() {
		t.Errorf("got %s: %s", got.Reason(), got.Message())
	}
}

func TestDeletedExtraMachineSetIsCreatedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"), set("worker-b"))
	w.machines.Failures["worker-b"] = openshift.NoNode
	w.must(w.add(), 0)
	w.pass(time.Second)
	victim := w.extras()["worker-a"]
	w.Must(w.delete(t.Context(), w.User, victim, client.PropagationPolicy("Foreground"), client.Preconditions{UID: &victim.UID}))
	w.machines.KeepDeleted = true
	w.pass(time.Minute)
	got := w.must(w.add(), time.Minute)
	if !strings.Contains(got.Message(), "worker-a (its extra MachineSet worker-a-extra-d582eebc is being deleted)") {
		t.Errorf("while it is deleted: %s", got.Message())
	}
	w.machines.KeepDeleted, w.machines.Failures["worker-b"] = false, openshift.NoFailure
	if got := w.settle(w.add); !got.Passed() || got.Reason() != engine.ReasonDone {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"+worker-a", "+worker-b", "worker-a", "worker-b"}, w.names()); diff != "" {
		t.Errorf("MachineSets (-want +got):\n%s", diff)
	}
}

func TestSourcesThatChangeMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world){
		"source deleted": func(w *world) { w.Must(w.User.Delete(w.TB.Context(), set("worker-b"))) },
		"source scaled to zero": func(w *world) {
			w.Must(w.User.Patch(w.TB.Context(), set("worker-b"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))))
		},
		"source replaced": func(w *world) {
			w.Delete(set("worker-b"))
			w.Create(set("worker-c"))
		},
		"extra one scaled to zero": func(w *world) {
			w.Delete(set("worker-b"))
			w.Must(w.User.Patch(w.TB.Context(), w.extras()["worker-b"], client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, set("worker-a"), set("worker-b"))
			w.must(w.add(), 0)
			change(w)
			if got := w.settle(w.add); got.Reason() != engine.ReasonDone {
				t.Errorf("got %+v", got)
			}
			extras := w.names()
			if slices.Contains(extras, "+worker-b") || !slices.Contains(extras, "+worker-a") || slices.Contains(extras, "worker-c") != slices.Contains(extras, "+worker-c") {
				t.Errorf("MachineSets: %v", extras)
			}
		})
	}
}

func TestLeftoversOfOtherAttemptsAreRemoved(t *testing.T) {
	t.Parallel()
	earlier, other := testAttempt, testAttempt
	earlier.Key, other.UID = "2026-02-01T12:00:00Z", "u-9"
	for name, step := range map[string]func(w *world) engine.UpgradeStep{
		"add":                       (*world).add,
		"remove":                    (*world).remove,
		"remove within the timeout": (*world).removeWithin,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, set("worker-a"))
			for _, subject := range []engine.AttemptRef{earlier, other} {
				w.settle(func() engine.UpgradeStep { return w.operator.Add(subject, true, timeout) })
				var sets machinev1beta1.MachineSetList
				w.Must(w.User.List(t.Context(), &sets, client.HasLabels{clusterstate.LabelExtraNodeOf}))
				for _, s := range sets.Items { // they stay for now
					s.Finalizers = []string{"x/x"}
					w.Update(&s)
				}
			}
			w.restart()
			w.must(step(w), 0)
			var sets machinev1beta1.MachineSetList
			w.Must(w.User.List(t.Context(), &sets, client.HasLabels{clusterstate.LabelExtraNodeOf}))
			for _, s := range sets.Items {
				if s.DeletionTimestamp == nil && !strings.HasSuffix(s.Name, "-d582eebc") {
					t.Errorf("%s stays", s.Name)
				}
			}
		})
	}
}

// An abandoned upgrade may have left only its object behind, while another upgrade is in progress.
func TestRemoveNowRemovesWhatTheObjectHasLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"), set("earlier", extraOf("u-1")), set("last", extraOf("u-1")), set("other", extraOf("u-9")))
	w.must(w.removeNow(), 0)
	var sets machinev1beta1.MachineSetList
	w.Must(w.User.List(t.Context(), &sets))
	var left []string
	for _, s := range sets.Items {
		if s.DeletionTimestamp == nil {
			left = append(left, s.Name)
		}
	}
	if diff := cmp.Diff([]string{"other", "worker-a"}, left); diff != "" {
		t.Errorf("MachineSets (-want +got):\n%s", diff)
	}
}

func TestForeignMachineSetOfTheSameName(t *testing.T) {
	t.Parallel()
	theirs := set("worker-a-extra-d582eebc", role("infra"))
	w := newWorld(t, set("worker-a"), theirs)
	got := w.must(w.add(), 0)
	if !strings.HasSuffix(got.Message(), "worker-a (MachineSet worker-a-extra-d582eebc exists and was not created by the operator)") {
		t.Errorf("got %+v", got)
	}
	w.pass(timeout)
	if got := w.must(w.add(), timeout); got.Reason() != "CapacityNotAvailable" || !got.Passed() {
		t.Errorf("in the end: %+v", got)
	}
	w.settle(w.remove)
	if diff := cmp.Diff([]string{"worker-a", "worker-a-extra-d582eebc"}, w.names()); diff != "" {
		t.Errorf("MachineSets (-want +got):\n%s", diff)
	}
}

// TestRefusedCreation uses an API server that rejects the second MachineSet.
func TestRefusedCreation(t *testing.T) {
	t.Parallel()
	for name, heals := range map[string]bool{"for a while": true, "until the timeout": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, set("worker-a"), set("worker-b"), set("worker-c"))
			refuses := true
			w.operator.Client = interceptor.NewClient(w.outer, interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					made, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
					w.Must(err)
					if name, _, _ := unstructured.NestedString(made, "metadata", "name"); refuses && strings.HasPrefix(name, "worker-b") {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "machinesets"}, "x", errors.New("exceeded\nquota"))
					}
					return c.Apply(ctx, object, opts...)
				},
			})
			for range 60 {
				w.must(w.add(), w.Now().Sub(noon))
				w.pass(time.Second)
			}
			waits := w.must(w.add(), time.Minute)
			golden.Texts(t, "", waits.Message())
			if waits.Passed() {
				t.Errorf("got %+v", waits)
			}
			if !heals {
				w.pass(timeout)
				if got := w.must(w.add(), timeout); got != engine.Skip("CapacityNotAvailable", "%s", waits.Message()+"; the upgrade continues") {
					t.Errorf("in the end: %+v", got)
				}
				return
			}
			refuses = false
			if got := w.settle(w.add); got.Reason() != engine.ReasonDone || len(w.extras()) != 3 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestNothingIsCreatedAfterTheTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"))
	got := w.must(w.add(), timeout)
	golden.Texts(t, "", got.Message())
	if got != engine.Skip("CapacityNotAvailable", "%s", got.Message()) {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"worker-a"}, w.names()); diff != "" {
		t.Errorf("MachineSets (-want +got):\n%s", diff)
	}
}

func TestNodesThatBecameReadyUnobserved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"))
	w.must(w.add(), 0)
	for range 10 {
		w.pass(time.Hour)
	}
	w.restart()
	if got := w.must(w.add(), 10*time.Hour); got.Reason() != engine.ReasonDone {
		t.Errorf("got %+v", got)
	}
}

func TestUnreachableMachineAPIDoesNotBlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"))
	w.fault = func(int) simulation.Outcome { return simulation.Refuse }
	for tried, passed := range map[time.Duration]bool{0: false, time.Minute: false, timeout: false, timeout + time.Minute: true, time.Hour: true, -time.Hour: false} {
		w.restart()
		got, err := w.call(w.add(), tried)
		if passed != (err == nil) || passed && got != engine.Skip("CapacityNotAvailable", "not determined within 15m0s: listing the MachineSets: the connection was refused") {
			t.Errorf("after %s: %+v, %v", tried, got, err)
		}
		if _, err := w.call(w.operator.Remove(), tried); !errors.Is(err, errRefused) {
			t.Errorf("removed after %s: %v", tried, err)
		}
		got, err = w.call(w.removeWithin(), tried)
		if late := tried >= timeout; late != (err == nil) || late && got != engine.Skip("NotRemoved", "not removed within 15m0s: listing the MachineSets: the connection was refused") {
			t.Errorf("cleaned up after %s: %+v, %v", tried, got, err)
		}
	}
}

// TestFailingRequestDoesNotBlock repeatedly fails one request of each call.
func TestFailingRequestDoesNotBlock(t *testing.T) {
	t.Parallel()
	for doing, tc := range map[string]struct {
		nth int // the number of the request in a call
		set *machinev1beta1.MachineSet
	}{
		"listing the MachineSets":        {1, set("worker-a")},
		"listing the extra Machines":     {2, set("worker-a")},
		"deleting MachineSet of-another": {2, set("of-another", extraOf("u-0"))},
	} {
		t.Run(doing, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.set)
			w.fault = func(n int) simulation.Outcome {
				if n == tc.nth {
					return simulation.Refuse
				}
				return simulation.Serve
			}
			if got, err := w.call(w.add(), timeout); !errors.Is(err, errRefused) {
				t.Errorf("in time: %+v, %v", got, err)
			}
			w.requests = 0
			w.restart()
			got := w.must(w.add(), timeout+time.Minute)
			if want := engine.Skip("CapacityNotAvailable", "not determined within 15m0s: %s: the connection was refused", doing); got != want {
				t.Errorf("too late: %+v", got)
			}
		})
	}
}

func TestNodeThatStaysIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"))
	w.settle(w.add)
	w.machines.KeepDeleted = true
	for _, tried := range []time.Duration{0, time.Hour, 24 * time.Hour} {
		w.pass(time.Minute)
		got := w.must(w.operator.Remove(), tried)
		if got.Passed() || got.Reason() != "RemovingNodes" || got.Message() != "being removed: MachineSet worker-a-extra-d582eebc, node node-worker-a-extra-d582eebc" {
			t.Errorf("after %s: %+v", tried, got)
		}
	}
	if got := w.must(w.removeWithin(), timeout); got != engine.Skip("NotRemoved", "not gone within 15m0s: being removed: MachineSet worker-a-extra-d582eebc, node node-worker-a-extra-d582eebc") {
		t.Errorf("cleaned up: %+v", got)
	}
	held := &corev1.Node{}
	w.Must(w.User.Get(t.Context(), client.ObjectKey{Name: "node-worker-a-extra-d582eebc"}, held))
	held.Spec.Unschedulable = true
	for since, want := range map[*metav1.Time]string{nil: "being drained", {Time: noon}: "being drained since 2020-05-01T12:00:00Z"} {
		held.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: since}}
		w.Update(held)
		w.pass(time.Minute)
		if got := w.must(w.operator.Remove(), time.Hour); got.Message() != "being removed: MachineSet worker-a-extra-d582eebc, node node-worker-a-extra-d582eebc ("+want+")" {
			t.Errorf("while the machine API drains it: %+v", got)
		}
	}
	held.Spec = corev1.NodeSpec{}
	w.Update(held)
	orphaned := w.extras()["worker-a"]
	orphaned.Finalizers = nil
	w.Update(orphaned)
	w.pass(time.Minute)
	if got := w.must(w.operator.Remove(), time.Hour); got.Passed() || got.Message() != "being removed: node node-worker-a-extra-d582eebc" {
		t.Errorf("without its MachineSet: %+v", got)
	}
}

func TestRequestsAreThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"), set("worker-b"))
	for range int(timeout / time.Second) { // changes trigger a call every second
		w.must(w.add(), w.Now().Sub(noon))
		w.must(w.add(), w.Now().Sub(noon))
		w.Advance(time.Second)
	}
	if w.requests > 160 { // two lists every 15 seconds, and more in the first minute
		t.Errorf("%d requests while nodes are added", w.requests)
	}
	w.requests, w.machines.KeepDeleted = 0, true
	began := w.Now()
	for range 3600 {
		w.must(w.operator.Remove(), w.Now().Sub(began))
		w.Advance(time.Second)
	}
	if w.requests > 280 {
		t.Errorf("%d requests while nodes are removed", w.requests)
	}
}

func TestIntervalOfRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"))
	w.machines.Failures["worker-a"] = openshift.NoNode
	waits := func(tried, again time.Duration) {
		t.Helper()
		got := w.must(w.add(), tried)
		if want := engine.WaitFor(again, got.Reason(), "%s", got.Message()); got != want || got.Reason() != "AddingNodes" {
			t.Errorf("after %s: %+v, want %+v", tried, got, want)
		}
	}
	waits(0, time.Second)
	w.pass(20 * time.Second)
	waits(20*time.Second, 5*time.Second)
	w.pass(2 * time.Second)
	waits(22*time.Second, 3*time.Second)
	w.pass(10 * time.Minute)
	waits(10*time.Minute, 15*time.Second)
	w.Jump(noon.Add(-time.Hour).Sub(w.Now())) // the clock is set back
	before := w.requests
	waits(-time.Hour, time.Second)
	if w.requests == before {
		t.Error("no request was made")
	}
}

func TestErrorsAreThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"))
	w.fault = func(int) simulation.Outcome { return simulation.Refuse }
	for range 60 {
		if _, err := w.call(w.add(), time.Hour/4); !errors.Is(err, errRefused) {
			t.Fatal(err)
		}
	}
	if w.requests != 1 {
		t.Errorf("%d requests", w.requests)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w.pass(time.Minute)
	w.fault = func(int) simulation.Outcome { cancel(); return simulation.Refuse }
	if _, err := w.add()(ended, engine.Run{Since: noon, Now: w.Now()}); err == nil {
		t.Error("no error")
	}
	w.fault = nil
	if got, err := w.call(w.add(), 0); err != nil || got.Reason() != "AddingNodes" {
		t.Errorf("the result of a canceled call is kept: %+v, %v", got, err)
	}
}

func TestMachineBeingDeletedDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"))
	w.settle(w.add)
	machine := &machinev1beta1.Machine{}
	w.Must(w.User.Get(t.Context(), client.ObjectKey{Namespace: capacity.Namespace, Name: "worker-a-extra-d582eebc-abcde"}, machine))
	machine.Finalizers = []string{"machine.machine.openshift.io"}
	w.Update(machine)
	w.Delete(machine)
	got := w.must(w.add(), 0)
	golden.Texts(t, "", got.Message())
	if got.Passed() {
		t.Errorf("got %+v", got)
	}
}

func TestConcurrentDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, set("worker-a"))
	w.settle(w.add)
	w.operator.Client = interceptor.NewClient(w.outer, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if err := c.Delete(ctx, object, opts...); err != nil {
				return err
			}
			return apierrors.NewNotFound(schema.GroupResource{Resource: "machinesets"}, object.GetName())
		},
	})
	if got := w.settle(w.remove); got != engine.Done("no extra node is left") {
		t.Errorf("got %+v", got)
	}
	w.settle(w.add)
	if got, err := w.call(w.operator.Remove(), 0); err != nil || got.Passed() {
		t.Errorf("at once: %+v, %v", got, err)
	}
}

func TestAttemptsDoNotShareResults(t *testing.T) {
	t.Parallel()
	another, other := testAttempt, testAttempt
	another.Key, other.UID = "2026-03-02T12:00:00Z", "u-2"
	w := newWorld(t, set("worker-a"))
	for _, subject := range []engine.AttemptRef{testAttempt, another, other} {
		w.must(w.operator.Add(subject, true, timeout), 0)
		if w.requests == 0 {
			t.Errorf("%+v: no request was made", subject)
		}
		w.requests = 0
	}
}

func TestLongMessages(t *testing.T) {
	t.Parallel()
	var sets []client.Object
	for i := range 12 {
		sets = append(sets, set(fmt.Sprintf("%s-%02d", strings.Repeat("worker", 10), i)))
	}
	w := newWorld(t, sets...)
	w.must(w.add(), 0)
	for range 3 {
		w.pass(time.Second)
	}
	var machines machinev1beta1.MachineList
	w.Must(w.User.List(t.Context(), &machines))
	for i := range machines.Items {
		m := &machines.Items[i]
		m.Status.NodeRef, m.Status.Phase, m.Status.ErrorMessage = nil, new(strings.Repeat("x", 20_000)), new(strings.Repeat("no \n", 20_000))
		if i%2 == 0 {
			m.Status.ErrorMessage = nil
		}
		w.UpdateStatus(m)
	}
	w.restart()
	got := w.must(w.add(), time.Minute)
	if len(got.Message()) > 4000 || !strings.HasPrefix(got.Message(), "0 of 12 extra nodes are ready; ") || !strings.HasSuffix(got.Message(), " and 9 more") || strings.Contains(got.Message(), "\n") {
		t.Errorf("%d bytes: %s", len(got.Message()), got.Message())
	}
	w.Jump(noon.Sub(w.Now()))
	w.restart()
	w.settle(w.remove)
	if left := w.remaining(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Extra nodes are optional, so the step yields ten minutes before the window closes, or at once if
// less time is left.
func TestAddYieldsToTheWindow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		window  time.Duration // from the first call
		waits   time.Duration // how long the step waits
		created bool
	}{
		"the timeout comes first":       {window: timeout + 11*time.Minute, waits: timeout, created: true},
		"ten minutes before the end":    {window: 12 * time.Minute, waits: 2 * time.Minute, created: true},
		"less than ten minutes is left": {window: 9 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, set("worker-a"))
			w.machines.Failures["worker-a"] = openshift.NoNode
			since, created := w.Now(), false
			for {
				run := engine.Run{Started: noon, Since: since, Now: w.Now(), CommitBy: since.Add(tc.window)}
				result, err := w.add()(t.Context(), run)
				w.Must(err)
				created = created || len(w.extras()) > 0
				if result.Passed() {
					if result.Reason() != "CapacityNotAvailable" || !strings.Contains(result.Message(), "the upgrade continues") {
						t.Errorf("got %+v", result)
					}
					break
				}
				w.pass(result.After())
			}
			if took := w.Now().Sub(since); took < tc.waits || took > tc.waits+15*time.Second || created != tc.created {
				t.Errorf("it waited %s, want %s; created: %t", took, tc.waits, created)
			}
		})
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	simulatedolm "github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/olm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm"
)

var startTime = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// world is a cluster with a simulated OLM, which acts before each reading of the program.
type world struct {
	*clocktesting.FakeClock
	tb      testing.TB
	client  client.WithWatch
	onTick  func(elapsed time.Duration)
	onPatch func(name string) error // returns the response to an approval; nil means that it succeeds
	olm     simulatedolm.Simulator

	approvals []string
	readError func() error // of the lists of Subscriptions; nil means none
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{FakeClock: clocktesting.NewFakeClock(startTime), tb: t}
	var withStatus []client.Object
	for _, kind := range []schema.GroupVersionKind{simulatedolm.Subscriptions, simulatedolm.InstallPlans, simulatedolm.CSVs} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		withStatus = append(withStatus, object)
	}
	w.client = fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(olm.Mapper()).
		WithStatusSubresource(withStatus...).WithObjects(objects...).Build()
	w.olm = simulatedolm.Simulator{Client: w.client, Clock: w}
	w.settle()
	return w
}

// settle lets OLM act until it has nothing more to do at this time.
func (w *world) settle() {
	w.tb.Helper()
	for range 4 {
		if err := w.olm.Advance(w.tb.Context()); err != nil {
			w.tb.Fatal(err)
		}
	}
}

// After advances the time at once, and lets OLM act.
func (w *world) After(d time.Duration) <-chan time.Time {
	w.Step(d)
	w.settle()
	if w.onTick != nil {
		w.onTick(w.Since(startTime))
	}
	passed := make(chan time.Time, 1)
	passed <- w.Now()
	return passed
}

// run runs the program, and returns what it prints.
func (w *world) run(ctx context.Context, options olm.Options) (string, error) {
	w.tb.Helper()
	var out strings.Builder
	observed := interceptor.NewClient(w.client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if w.readError != nil {
				if err := w.readError(); err != nil {
					return err
				}
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if w.onPatch != nil {
				if err := w.onPatch(object.GetName()); err != nil {
					return err
				}
			}
			w.approvals = append(w.approvals, object.GetNamespace()+"/"+object.GetName())
			return c.Patch(ctx, object, patch, opts...)
		},
	})
	approver := olm.Approver{Client: observed, Clock: w, Options: options, Out: &out}
	err := approver.Run(ctx)
	return out.String(), err
}

// get returns an object of namespace a.
func (w *world) get(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	w.tb.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := w.client.Get(w.tb.Context(), types.NamespacedName{Namespace: "a", Name: name}, object); err != nil {
		w.tb.Fatal(err)
	}
	return object
}

// set changes a field of an object, of its status too.
func (w *world) set(object *unstructured.Unstructured, value any, path ...string) {
	w.tb.Helper()
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		w.tb.Fatal(err)
	}
	update := w.client.Update
	if path[0] == "status" {
		update = func(ctx context.Context, object client.Object, _ ...client.UpdateOption) error {
			return w.client.Status().Update(ctx, object)
		}
	}
	if err := update(w.tb.Context(), object); err != nil {
		w.tb.Fatal(err)
	}
}

func conflict(name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "installplans"}, name, nil)
}

// subscription is a Subscription whose releases the simulated OLM offers one after the other.
func subscription(approval, namespace, name, releases string, annotations ...string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"name": name, "source": "redhat-operators", "sourceNamespace": "openshift-marketplace", "installPlanApproval": approval,
	}}}
	object.SetGroupVersionKind(simulatedolm.Subscriptions)
	object.SetNamespace(namespace)
	object.SetName(name)
	all := map[string]string{simulatedolm.AnnotationReleases: releases}
	for i := 0; i < len(annotations); i += 2 {
		all[annotations[i]] = annotations[i+1]
	}
	object.SetAnnotations(all)
	return object
}

func manual(namespace, name, releases string, annotations ...string) client.Object {
	return subscription("Manual", namespace, name, releases, annotations...)
}

// automatic is a Subscription in namespace a.
func automatic(name, releases string, annotations ...string) client.Object {
	return subscription("Automatic", "a", name, releases, annotations...)
}

// names returns Subscriptions, each given as namespace/name.
func names(all ...string) []types.NamespacedName {
	var list []types.NamespacedName
	for _, one := range all {
		namespace, name, _ := strings.Cut(one, "/")
		list = append(list, types.NamespacedName{Namespace: namespace, Name: name})
	}
	return list
}

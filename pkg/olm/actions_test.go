// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm"
)

// settle lets OLM act until it has nothing left to do at this time.
func (w *world) settle() {
	w.tb.Helper()
	for range 4 {
		if err := w.olm.Advance(w.tb.Context()); err != nil {
			w.tb.Fatal(err)
		}
	}
}

// After advances the time immediately and lets OLM act.
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

// run runs the program and returns its output.
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

// set changes a field of an object, including its status.
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

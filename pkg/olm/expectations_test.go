// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// get returns an object in namespace a.
func (w *world) get(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	w.tb.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := w.client.Get(w.tb.Context(), types.NamespacedName{Namespace: "a", Name: name}, object); err != nil {
		w.tb.Fatal(err)
	}
	return object
}

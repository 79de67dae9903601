// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// errModified is the cause of conflicts.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// stored returns the stored object and its kind.
func (w *World) stored(obj client.Object) (client.Object, schema.GroupVersionResource, schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(obj, w.scheme)
	if err != nil {
		return nil, schema.GroupVersionResource{}, gvk, err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	old := w.store.get(gvr, client.ObjectKeyFromObject(obj))
	if old == nil {
		return nil, gvr, gvk, apierrors.NewNotFound(gvr.GroupResource(), obj.GetName())
	}
	return old, gvr, gvk, nil
}

// update serves an update of an object (if sub is empty) or its status. Requests with options,
// requests without a resource version, and objects whose form differs from the stored object are
// left to the fake client.
func (w *World) update(obj client.Object, sub string, options bool, fallback func() error) error {
	old, gvr, gvk, err := w.stored(obj)
	switch {
	case err != nil:
		return err
	case options || sub != "" && sub != "status" || obj.GetResourceVersion() == "" || reflect.TypeOf(obj) != reflect.TypeOf(old):
		return fallback()
	case obj.GetResourceVersion() != old.GetResourceVersion():
		return apierrors.NewConflict(gvr.GroupResource(), obj.GetName(), errModified)
	}
	requested, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fallback()
	}
	return w.replace(gvr, gvk, old, requested, obj, sub != "")
}

// patch serves a JSON merge patch of an object (if sub is empty) or its status. Requests with
// options and patches of other types are left to the fake client.
func (w *World) patch(obj client.Object, patch client.Patch, sub string, options bool, fallback func() error) error {
	if options || sub != "" && sub != "status" || patch.Type() != types.MergePatchType {
		return fallback()
	}
	old, gvr, gvk, err := w.stored(obj)
	if err != nil {
		return err
	}
	data, err := patch.Data(obj)
	if err != nil {
		return fmt.Errorf("computing the patch of %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	var changes map[string]any
	if err := json.Unmarshal(data, &changes); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("decoding the patch of %s %s: %v", gvk.Kind, obj.GetName(), err))
	}
	version, _, _ := unstructured.NestedString(changes, "metadata", "resourceVersion")
	if version != "" && version != old.GetResourceVersion() {
		return apierrors.NewConflict(gvr.GroupResource(), obj.GetName(), errModified)
	}
	requested, err := merged(old, changes)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("applying the patch of %s %s: %v", gvk.Kind, obj.GetName(), err))
	}
	return w.replace(gvr, gvk, old, requested, obj, sub != "")
}

// replace stores the requested state, limited to what the request may change, and fills the
// response.
func (w *World) replace(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, old, requested, answer client.Object, status bool) error {
	switch {
	case !w.store.status[gvk] && status:
		return apierrors.NewNotFound(gvr.GroupResource(), old.GetName())
	case status:
		whole := requested
		requested = old.DeepCopyObject().(client.Object)
		if err := copyStatus(whole, requested); err != nil {
			return err
		}
	case w.store.status[gvk]:
		if err := copyStatus(old, requested); err != nil {
			return err
		}
	}
	requested.SetDeletionTimestamp(old.GetDeletionTimestamp())
	if requested.GetManagedFields() == nil {
		requested.SetManagedFields(old.GetManagedFields())
	}
	if requested.GetDeletionTimestamp() != nil && len(requested.GetFinalizers()) == 0 && grace(old) == 0 {
		if err := w.store.Delete(gvr, old.GetNamespace(), old.GetName()); err != nil {
			return err
		}
		return copyInto(requested, answer, gvk)
	}
	if err := w.store.Update(gvr, requested, old.GetNamespace()); err != nil {
		return err
	}
	return copyInto(w.store.get(gvr, client.ObjectKeyFromObject(old)), answer, gvk)
}

// merged returns an object with a JSON merge patch applied.
func merged(old client.Object, changes map[string]any) (client.Object, error) {
	if stored, ok := old.(*unstructured.Unstructured); ok {
		copied := stored.DeepCopy()
		mergeInto(copied.Object, changes)
		return copied, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return nil, err
	}
	mergeInto(content, changes)
	result, ok := reflect.New(reflect.TypeOf(old).Elem()).Interface().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", old)
	}
	return result, runtime.DefaultUnstructuredConverter.FromUnstructured(content, result)
}

// mergeInto applies a merge patch according to RFC 7386.
func mergeInto(target, patch map[string]any) {
	for key, value := range patch {
		change, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(target, key)
		case isMap:
			field, ok := target[key].(map[string]any)
			if !ok {
				field = map[string]any{}
				target[key] = field
			}
			mergeInto(field, change)
		default:
			target[key] = value
		}
	}
}

func isUnstructured(object client.Object) bool {
	_, ok := object.(*unstructured.Unstructured)
	return ok
}

// copyStatus copies the status between two objects of the same type.
func copyStatus(from, to client.Object) error {
	if source, ok := from.(*unstructured.Unstructured); ok {
		target, ok := to.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("copying the status of %T to %T", from, to)
		}
		status, found := source.Object["status"]
		if !found {
			delete(target.Object, "status")
			return nil
		}
		target.Object["status"] = runtime.DeepCopyJSONValue(status)
		return nil
	}
	copied := reflect.ValueOf(from.DeepCopyObject()).Elem().FieldByName("Status")
	field := reflect.ValueOf(to).Elem().FieldByName("Status")
	if !copied.IsValid() || !field.IsValid() {
		return fmt.Errorf("%T has no status", from)
	}
	field.Set(copied)
	return nil
}

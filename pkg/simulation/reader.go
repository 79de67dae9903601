// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// source is what a read is answered from: the API server, or a cache.
type source struct {
	scheme *runtime.Scheme
	get    func(schema.GroupVersionKind, client.ObjectKey) (client.Object, error) // nil if there is none
	list   func(schema.GroupVersionKind, string) ([]client.Object, error)
}

// Get copies an object into obj.
func (s source) Get(key client.ObjectKey, obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, s.scheme)
	if err != nil {
		return err
	}
	stored, err := s.get(gvk, key)
	if err != nil {
		return err
	}
	if stored == nil {
		gvr, _ := meta.UnsafeGuessKindToResource(gvk)
		return apierrors.NewNotFound(gvr.GroupResource(), key.Name)
	}
	return copyInto(stored, obj, gvk)
}

// List copies the selected objects into the list.
func (s source) List(list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	gvk, err := apiutil.GVKForObject(list, s.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	stored, err := s.list(gvk, options.Namespace)
	if err != nil {
		return err
	}
	var items []runtime.Object
	for _, object := range stored {
		if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		if options.FieldSelector != nil && !options.FieldSelector.Matches(fieldsOf(object)) {
			continue
		}
		item, err := newItem(list, s.scheme, gvk)
		if err != nil {
			return err
		}
		if err := copyInto(object, item, gvk); err != nil {
			return err
		}
		items = append(items, item)
	}
	return meta.SetList(list, items)
}

// fieldsOf returns the fields of an object by which lists can be selected.
func fieldsOf(object client.Object) fields.Set {
	set := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()}
	if pod, ok := object.(*corev1.Pod); ok {
		set["spec.nodeName"], set["status.phase"] = pod.Spec.NodeName, string(pod.Status.Phase)
	}
	return set
}

func newItem(list client.ObjectList, scheme *runtime.Scheme, gvk schema.GroupVersionKind) (client.Object, error) {
	switch list.(type) {
	case *unstructured.UnstructuredList:
		return &unstructured.Unstructured{}, nil
	case *metav1.PartialObjectMetadataList:
		return &metav1.PartialObjectMetadata{}, nil
	}
	item, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	object, ok := item.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no kind of objects", gvk)
	}
	return object, nil
}

// copyInto fills an object of any form from a stored one.
func copyInto(stored, target client.Object, gvk schema.GroupVersionKind) error {
	if partial, ok := target.(*metav1.PartialObjectMetadata); ok {
		*partial = *meta.AsPartialObjectMetadata(stored)
		partial = partial.DeepCopy()
		target.(*metav1.PartialObjectMetadata).ObjectMeta = partial.ObjectMeta
		target.GetObjectKind().SetGroupVersionKind(gvk)
		dropFieldManagers(target, gvk)
		return nil
	}
	if u, ok := target.(*unstructured.Unstructured); ok {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
		if err != nil {
			return fmt.Errorf("encoding %s %s: %w", gvk.Kind, stored.GetName(), err)
		}
		u.Object = runtime.DeepCopyJSON(content)
		u.SetGroupVersionKind(gvk)
		dropFieldManagers(u, gvk)
		return nil
	}
	if u, ok := stored.(*unstructured.Unstructured); ok {
		reflect.ValueOf(target).Elem().SetZero()
		return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, target)
	}
	copied := stored.DeepCopyObject()
	if reflect.TypeOf(copied) != reflect.TypeOf(target) {
		return fmt.Errorf("reading %s %s into %T", gvk.Kind, stored.GetName(), target)
	}
	reflect.ValueOf(target).Elem().Set(reflect.ValueOf(copied).Elem())
	target.GetObjectKind().SetGroupVersionKind(gvk)
	dropFieldManagers(target, gvk)
	return nil
}

// dropFieldManagers removes the field managers of a kind that does not track them.
func dropFieldManagers(object client.Object, gvk schema.GroupVersionKind) {
	if !tracksFieldManagers(gvk) {
		object.SetManagedFields(nil)
	}
}

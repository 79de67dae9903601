// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Source provides the objects for reads.
type Source struct {
	// Scheme contains the kinds of typed objects.
	Scheme *runtime.Scheme
	// Find returns the stored object, or nil. The caller must not change it.
	Find func(schema.GroupVersionKind, client.ObjectKey) (client.Object, error)
	// FindAll returns the stored objects in a namespace, or in all namespaces if it is empty, in
	// order.
	FindAll func(kind schema.GroupVersionKind, namespace string) ([]client.Object, error)
	// Copy copies a stored object into an object of any form, like the function Copy.
	Copy func(stored, target client.Object, gvk schema.GroupVersionKind) error
}

// Get copies an object into target. If it does not exist, Get returns the same error as an API
// server.
func (s Source) Get(key client.ObjectKey, target client.Object) error {
	gvk, err := apiutil.GVKForObject(target, s.Scheme)
	if err != nil {
		return err
	}
	stored, err := s.Find(gvk, key)
	if err != nil {
		return err
	}
	if stored == nil {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		return apierrors.NewNotFound(resource.GroupResource(), key.Name)
	}
	return s.Copy(stored, target, gvk)
}

// List copies the objects selected by the options into the list. Field selectors may use the name,
// the namespace, and the Pod fields that the API server supports. With UnsafeDisableDeepCopy, typed
// objects in the list share memory with the store, like with controller-runtime's cache.
func (s Source) List(list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	gvk, err := apiutil.GVKForObject(list, s.Scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	stored, err := s.FindAll(gvk, options.Namespace)
	if err != nil {
		return err
	}
	form, err := s.newItem(list, gvk)
	if err != nil {
		return err
	}
	shallow := ptr.Deref(options.UnsafeDisableDeepCopy, false)
	var items []runtime.Object
	for _, object := range stored {
		if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(object.GetLabels())) ||
			options.FieldSelector != nil && !options.FieldSelector.Matches(fieldsOf(object)) {
			continue
		}
		if shallow && len(object.GetManagedFields()) == 0 && reflect.TypeOf(object) == reflect.TypeOf(form) {
			items = append(items, object)
			continue
		}
		item, err := s.newItem(list, gvk)
		if err != nil {
			return err
		}
		if err := s.Copy(object, item, gvk); err != nil {
			return err
		}
		items = append(items, item)
	}
	return meta.SetList(list, items)
}

// fieldsOf returns the fields that list selectors can use.
func fieldsOf(object client.Object) fields.Set {
	set := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()}
	switch o := object.(type) {
	case *corev1.Pod:
		set["spec.nodeName"], set["status.phase"] = o.Spec.NodeName, string(o.Status.Phase)
	case *unstructured.Unstructured:
		if o.GetKind() == "Pod" {
			for _, path := range []string{"spec.nodeName", "status.phase"} {
				set[path], _, _ = unstructured.NestedString(o.Object, strings.Split(path, ".")...)
			}
		}
	}
	return set
}

// newItem returns an empty object in the form of the list's items.
func (s Source) newItem(list client.ObjectList, gvk schema.GroupVersionKind) (client.Object, error) {
	switch list.(type) {
	case *unstructured.UnstructuredList:
		return &unstructured.Unstructured{}, nil
	case *metav1.PartialObjectMetadataList:
		return &metav1.PartialObjectMetadata{}, nil
	}
	item, err := s.Scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	object, ok := item.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no kind of objects", gvk)
	}
	return object, nil
}

// Copy deep-copies a stored object of a kind into an object of any form.
func Copy(stored, target client.Object, gvk schema.GroupVersionKind) error {
	switch target := target.(type) {
	case *metav1.PartialObjectMetadata:
		*target = *meta.AsPartialObjectMetadata(stored).DeepCopy()
		target.SetGroupVersionKind(gvk)
		return nil
	case *unstructured.Unstructured:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
		if err != nil {
			return fmt.Errorf("encoding %s %s: %w", gvk.Kind, stored.GetName(), err)
		}
		target.Object = runtime.DeepCopyJSON(content)
		target.SetGroupVersionKind(gvk)
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
	return nil
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

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

var _ client.Reader = &dump{}

// Get copies an object of the dump into obj.
func (d *dump) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(obj, d.scheme)
	if err != nil {
		return err
	}
	if stored := d.objects[gvk][key]; stored != nil {
		return copyInto(stored, obj)
	}
	if err := d.check(gvk); err != nil {
		return err
	}
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return apierrors.NewNotFound(resource.GroupResource(), key.Name)
}

// List copies the selected objects of the dump into the list, sorted by namespace and name.
func (d *dump) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	gvk, err := apiutil.GVKForObject(list, d.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if err := d.check(gvk); err != nil {
		return err
	}
	var items []runtime.Object
	for _, object := range d.sortedObjects(gvk) {
		if options.Namespace != "" && object.GetNamespace() != options.Namespace ||
			options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(object.GetLabels())) ||
			options.FieldSelector != nil && !options.FieldSelector.Matches(fieldsOf(object)) {
			continue
		}
		item, err := d.newItem(list, gvk)
		if err != nil {
			return err
		}
		if err := copyInto(object, item); err != nil {
			return err
		}
		items = append(items, item)
	}
	return meta.SetList(list, items)
}

// errNotDumped means that a dump has neither objects nor a list of a kind.
var errNotDumped = errors.New("not in the dump")

// check returns an error if the dump does not have all objects of a kind.
func (d *dump) check(gvk schema.GroupVersionKind) error {
	for _, kind := range []string{gvk.Kind, ""} {
		if message, partial := d.partial[kind]; partial {
			return errors.New(message)
		}
	}
	if !d.seen[gvk.GroupKind()] {
		return errNotDumped
	}
	for other, objects := range d.objects {
		if other.GroupKind() == gvk.GroupKind() && other != gvk && len(objects) > 0 {
			return fmt.Errorf("the dump has %s of version %s, but version %s is read", gvk.Kind, other.Version, gvk.Version)
		}
	}
	return nil
}

// fieldsOf returns the fields of an object by which lists are selected.
func fieldsOf(object *unstructured.Unstructured) fields.Set {
	set := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()}
	if object.GetKind() == "Pod" {
		for _, path := range []string{"spec.nodeName", "status.phase"} {
			value, _, _ := unstructured.NestedString(object.Object, strings.Split(path, ".")...)
			set[path] = value
		}
	}
	return set
}

// newItem returns an object of the form that the list has.
func (d *dump) newItem(list client.ObjectList, gvk schema.GroupVersionKind) (client.Object, error) {
	switch list.(type) {
	case *unstructured.UnstructuredList:
		return &unstructured.Unstructured{}, nil
	case *metav1.PartialObjectMetadataList:
		return &metav1.PartialObjectMetadata{}, nil
	}
	item, err := d.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	object, ok := item.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no kind of objects", gvk)
	}
	return object, nil
}

// copyInto decodes a stored object into one of any form.
func copyInto(stored *unstructured.Unstructured, target client.Object) error {
	switch target := target.(type) {
	case *unstructured.Unstructured:
		target.Object = runtime.DeepCopyJSON(stored.Object)
		return nil
	case *metav1.PartialObjectMetadata:
		*target = *meta.AsPartialObjectMetadata(stored.DeepCopy())
		target.SetGroupVersionKind(stored.GroupVersionKind())
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, target); err != nil {
		return fmt.Errorf("the dump has an invalid %s %s: %w", stored.GetKind(), stored.GetName(), err)
	}
	return nil
}

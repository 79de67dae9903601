// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
)

var _ client.Reader = &Dump{}

// Get copies an object of the dump into obj.
func (d *Dump) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	return d.source().Get(key, obj)
}

// List copies the selected objects of the dump into the list, sorted by namespace and name.
func (d *Dump) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return d.source().List(list, opts...)
}

// source returns the objects of the dump as a source for reads.
func (d *Dump) source() objects.Source {
	return objects.Source{
		Scheme: d.scheme,
		Find: func(gvk schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
			if stored := d.objects[gvk][key]; stored != nil {
				return stored, nil
			}
			return nil, d.check(gvk)
		},
		FindAll: func(gvk schema.GroupVersionKind, namespace string) ([]client.Object, error) {
			if err := d.check(gvk); err != nil {
				return nil, err
			}
			return d.sorted(gvk, namespace), nil
		},
		Copy: func(stored, target client.Object, gvk schema.GroupVersionKind) error {
			if err := objects.Copy(stored, target, gvk); err != nil {
				return fmt.Errorf("the dump has an invalid %s %s: %w", gvk.Kind, stored.GetName(), err)
			}
			return nil
		},
	}
}

// errNotDumped is returned if a dump contains neither objects nor a list of a kind.
var errNotDumped = errors.New("not in the dump")

// check returns an error if a kind is incomplete in the dump.
func (d *Dump) check(gvk schema.GroupVersionKind) error {
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

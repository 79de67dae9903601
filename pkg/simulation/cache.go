// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// informer is the cache of one kind in a process. It contains what the process's controllers
// declare and follows the API server, with a delay if it lags.
type informer struct {
	process *Process
	kind    manager.Kind
	gvr     schema.GroupVersionResource
	objects map[types.NamespacedName]client.Object
	// position is the number of consumed changes of the kind.
	position int
	// behindUntil is the time until which the informer receives nothing.
	behindUntil time.Time
	watches     []kindWatch
}

// kindWatch is the reaction of one controller to changes of a kind.
type kindWatch struct {
	kind  manager.Kind
	queue *queue
}

func newInformer(p *Process, kind manager.Kind) (*informer, error) {
	gvk, err := apiutil.GVKForObject(kind.Object, p.world.scheme)
	if err != nil {
		return nil, fmt.Errorf("declaring %T: %w", kind.Object, err)
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	return &informer{process: p, kind: kind, gvr: gvr, objects: map[types.NamespacedName]client.Object{}}, nil
}

// list fills the cache like the initial list of an informer.
func (i *informer) list() {
	store := i.process.world.store
	i.position = store.offset[i.gvr] + len(store.journal[i.gvr])
	for _, stored := range store.sorted(i.gvr, "") {
		if object := i.transformed(stored); object != nil {
			i.objects[client.ObjectKeyFromObject(object)] = object
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(i.objects), compareKeys) {
		i.notify(nil, i.objects[key], true)
	}
}

// deliver consumes all pending changes.
func (i *informer) deliver() {
	store := i.process.world.store
	if i.process.world.now.Before(i.behindUntil) {
		return
	}
	changes := store.journal[i.gvr]
	for n := i.position - store.offset[i.gvr]; n < len(changes); n++ {
		i.position++
		i.apply(changes[n])
	}
}

func (i *informer) apply(change Change) {
	key := client.ObjectKeyFromObject(change.Object())
	old := i.objects[key]
	if change.New == nil {
		delete(i.objects, key)
		if old != nil {
			i.notify(old, nil, false)
		}
		return
	}
	updated := i.transformed(change.New)
	if updated == nil {
		if old != nil { // it is no longer selected
			delete(i.objects, key)
			i.notify(old, nil, false)
		}
		return
	}
	i.objects[key] = updated
	i.notify(old, updated, false)
}

// transformed returns the cached form of an object, or nil if it is not selected.
func (i *informer) transformed(stored client.Object) client.Object {
	if i.kind.Name != "" && stored.GetName() != i.kind.Name {
		return nil
	}
	if selector := i.kind.Selector(); selector != nil && !selector.Matches(labels.Set(stored.GetLabels())) {
		return nil
	}
	if len(i.kind.Namespaces) > 0 && !slices.Contains(i.kind.Namespaces, stored.GetNamespace()) {
		return nil
	}
	object := stored.DeepCopyObject().(client.Object)
	if i.kind.Transform == nil {
		object.SetManagedFields([]metav1.ManagedFieldsEntry(nil))
		return object
	}
	transformed, err := i.kind.Transform(object)
	if err != nil {
		i.process.world.Fail(fmt.Errorf("transforming %T %s: %w", stored, stored.GetName(), err))
		return nil
	}
	result, ok := transformed.(client.Object)
	if !ok {
		i.process.world.Fail(fmt.Errorf("the transform of %T returns %T", stored, transformed))
		return nil
	}
	return result
}

// notify queues the requests caused by a change.
func (i *informer) notify(old, updated client.Object, initial bool) {
	for _, w := range i.watches {
		if w.kind.Requests == nil || !passes(w.kind.Predicates, old, updated, initial) {
			continue
		}
		for _, object := range []client.Object{old, updated} {
			if object == nil {
				continue
			}
			for _, request := range w.kind.Requests(i.process.context(), object) {
				w.queue.add(request)
			}
		}
	}
}

func passes(predicates []predicate.Predicate, old, updated client.Object, initial bool) bool {
	return !slices.ContainsFunc(predicates, func(p predicate.Predicate) bool {
		switch {
		case old == nil:
			return !p.Create(event.CreateEvent{Object: updated, IsInInitialList: initial})
		case updated == nil:
			return !p.Delete(event.DeleteEvent{Object: old})
		default:
			return !p.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: updated})
		}
	})
}

// sorted returns the objects in a namespace, or in all namespaces if it is empty, ordered by name.
func (i *informer) sorted(namespace string) []client.Object {
	var objects []client.Object
	for _, key := range slices.SortedFunc(maps.Keys(i.objects), compareKeys) {
		if namespace == "" || key.Namespace == namespace {
			objects = append(objects, i.objects[key])
		}
	}
	return objects
}

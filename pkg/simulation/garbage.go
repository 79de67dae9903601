// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EnableGarbageCollection deletes objects in the background once all their owners are gone,
// including objects created after that. If an owner is deleted with the Orphan policy, its
// dependents are released.
func (w *World) EnableGarbageCollection() {
	w.collects = true
	w.Observe(func(change Change) {
		switch {
		case change.New == nil:
			owner := change.Old.GetUID()
			w.After(0, func() { w.visitDependents(owner, w.collect) })
		case len(change.New.GetOwnerReferences()) > 0 && change.Old == nil:
			created := change.New
			w.After(0, func() { w.collect(created) })
		}
	})
}

// visitDependents calls the function for each object that refers to the owner.
func (w *World) visitDependents(owner types.UID, visit func(client.Object)) {
	for _, gvr := range w.store.kinds() {
		for _, object := range w.store.sorted(gvr, "") {
			for _, reference := range object.GetOwnerReferences() {
				if reference.UID == owner {
					visit(object)
				}
			}
		}
	}
}

// collect deletes an object that has no owners left, or removes the references to missing owners.
func (w *World) collect(object client.Object) {
	stored, _, _, err := w.stored(object)
	if err != nil || stored.GetUID() != object.GetUID() || stored.GetDeletionTimestamp() != nil {
		return
	}
	var existing []metav1.OwnerReference
	for _, reference := range stored.GetOwnerReferences() {
		if w.exists(reference, stored.GetNamespace()) {
			existing = append(existing, reference)
		}
	}
	switch {
	case len(existing) == len(stored.GetOwnerReferences()):
		return
	case len(existing) > 0:
		w.setOwners(stored, existing)
		return
	}
	dependent := stored.DeepCopyObject().(client.Object)
	err = w.Client("garbage-collector").Delete(background(), dependent, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		w.Fail(fmt.Errorf("collecting %T %s: %w", stored, stored.GetName(), err))
	}
}

// exists reports whether an owner exists in the namespace of its dependent or cluster-wide.
func (w *World) exists(reference metav1.OwnerReference, namespace string) bool {
	gv, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil {
		return false
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gv.WithKind(reference.Kind))
	for _, in := range []string{namespace, ""} {
		if owner := w.store.get(gvr, types.NamespacedName{Namespace: in, Name: reference.Name}); owner != nil && owner.GetUID() == reference.UID {
			return true
		}
	}
	return false
}

func (w *World) setOwners(stored client.Object, owners []metav1.OwnerReference) {
	dependent := stored.DeepCopyObject().(client.Object)
	dependent.SetOwnerReferences(owners)
	if err := w.Client("garbage-collector").Update(background(), dependent); err != nil {
		w.Fail(fmt.Errorf("releasing %T %s: %w", stored, stored.GetName(), err))
	}
}

// propagate applies the propagation policy of a deletion to the dependents before the owner is
// removed. By default, the API server orphans only the pods of batch/v1 Jobs. The Foreground policy
// acts like Background.
func (w *World) propagate(owner client.Object, policy *metav1.DeletionPropagation) {
	_, isJob := owner.(*batchv1.Job)
	fallback := metav1.DeletePropagationBackground
	if isJob {
		fallback = metav1.DeletePropagationOrphan
	}
	if ptr.Deref(policy, fallback) != metav1.DeletePropagationOrphan || !w.collects {
		return
	}
	w.visitDependents(owner.GetUID(), func(dependent client.Object) {
		var others []metav1.OwnerReference
		for _, reference := range dependent.GetOwnerReferences() {
			if reference.UID != owner.GetUID() {
				others = append(others, reference)
			}
		}
		w.setOwners(dependent, others)
	})
}

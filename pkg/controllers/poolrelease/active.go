// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package poolrelease

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobs,namespace=managed-upgrade-operator,verbs=get;list
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs,namespace=managed-upgrade-operator,verbs=get;list

// ownerPageSize is the page size for lists of owners. It is small, because annotations may be long.
const ownerPageSize = 25

// owner is the object whose attempt has marked a pool. The UID in the mark identifies it across
// kinds.
type owner struct {
	maintenance.OwnerKind

	object client.Object // nil if there is none
}

// attempt returns the state of the attempt that marked a pool.
func (o owner) attempt(mark clusterstate.PoolMark) maintenance.AttemptState {
	if o.object == nil {
		return maintenance.AttemptEnded
	}
	state, _ := o.Attempt(o.object, mark.Attempt)
	return state
}

// cachedOwner returns the owner from the cache. The caller must not change it.
func (r *Reconciler) cachedOwner(ctx context.Context, uid string) (owner, error) {
	for _, kind := range r.owners() {
		list := kind.NewList()
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return owner{}, fmt.Errorf("listing the owners of pools of kind %s: %w", kind.Kind, err)
		}
		found := owner{OwnerKind: kind}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok && string(object.GetUID()) == uid {
				found.object = object
			}
			return nil
		})
		if err != nil || found.object != nil {
			return found, err
		}
	}
	return owner{}, nil
}

// attemptLive returns the state of the attempt that marked a pool from the API server, because the
// cache may be stale.
func (r *Reconciler) attemptLive(ctx context.Context, mark clusterstate.PoolMark) (maintenance.AttemptState, error) {
	found, err := r.cachedOwner(ctx, mark.OwnerUID)
	if err != nil {
		return maintenance.AttemptEnded, err
	}
	var key client.ObjectKey
	if found.object != nil {
		key = client.ObjectKeyFromObject(found.object)
	} else if found, key, err = r.findLive(ctx, mark.OwnerUID); err != nil || key.Name == "" {
		return maintenance.AttemptEnded, err
	}
	found.object = found.New()
	if err := r.Live.Get(ctx, key, found.object); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return maintenance.AttemptEnded, nil
		}
		return maintenance.AttemptEnded, fmt.Errorf("getting %s %s: %w", found.Kind, key, err)
	}
	if string(found.object.GetUID()) != mark.OwnerUID {
		return maintenance.AttemptEnded, nil
	}
	return found.attempt(mark), nil
}

// findLive returns the kind and the key of an owner missing from the cache. The name is empty if
// the API server has no such owner in the watched namespaces.
func (r *Reconciler) findLive(ctx context.Context, uid string) (owner, client.ObjectKey, error) {
	namespaces := r.WatchNamespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, kind := range r.owners() {
		for _, namespace := range namespaces {
			if key, err := findOwner(ctx, r.Live, kind, uid, namespace); err != nil || key.Name != "" {
				return owner{OwnerKind: kind}, key, err
			}
		}
	}
	return owner{}, client.ObjectKey{}, nil
}

// findOwner lists the metadata of the objects of a kind in a namespace, page by page.
func findOwner(ctx context.Context, live client.Reader, kind maintenance.OwnerKind, uid, namespace string) (client.ObjectKey, error) {
	page := metav1.PartialObjectMetadataList{}
	for more := true; more; more = page.Continue != "" {
		from := page.Continue
		page = metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := live.List(ctx, &page, client.InNamespace(namespace), client.Limit(ownerPageSize), client.Continue(from)); err != nil {
			return client.ObjectKey{}, fmt.Errorf("listing the owners of pools of kind %s: %w", kind.Kind, err)
		}
		for i := range page.Items {
			if string(page.Items[i].UID) == uid {
				return client.ObjectKeyFromObject(&page.Items[i]), nil
			}
		}
	}
	return client.ObjectKey{}, nil
}

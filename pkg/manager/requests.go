// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Self requests a reconcile of the changed object itself.
func Self(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// Requests returns a request for each object that satisfies include, or for all objects if include
// is nil. It reads the objects into list, whose items must be of type T. If that fails, it logs the
// error and returns no requests.
func Requests[T client.Object](
	ctx context.Context, reader client.Reader, list client.ObjectList, include func(T) bool, options ...client.ListOption,
) []reconcile.Request {
	var requests []reconcile.Request
	err := reader.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			obj, is := item.(T)
			switch {
			case !is:
				return fmt.Errorf("the list has an item of type %T", item)
			case include == nil || include(obj):
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
			}
			return nil
		})
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the objects that a change concerns", "list", fmt.Sprintf("%T", list))
		return nil
	}
	return requests
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EachItem reads a list in pages and calls the function for each object. The given list must be empty and
// sets the kind. If the page size is 0, it reads everything in one page.
func EachItem[O runtime.Object](ctx context.Context, r client.Reader, list client.ObjectList, pageSize int64, each func(O) error, opts ...client.ListOption) error {
	from := ""
	for more := true; more; more = from != "" {
		page := list.DeepCopyObject().(client.ObjectList) // fields of one page must not leak into the next
		if err := r.List(ctx, page, append(opts, client.Limit(pageSize), client.Continue(from))...); err != nil {
			return err
		}
		if err := meta.EachListItem(page, func(o runtime.Object) error { return each(o.(O)) }); err != nil {
			return err
		}
		from = page.GetContinue()
	}
	return nil
}

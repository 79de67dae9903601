// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EachItem reads a list in pages and calls the function with each object. The list is empty and names the kind; a page
// size of 0 means one page.
func EachItem[O runtime.Object](ctx context.Context, r client.Reader, list client.ObjectList, pageSize int64, each func(O) error, opts ...client.ListOption) error {
	from := ""
	for more := true; more; more = from != "" {
		page := list.DeepCopyObject().(client.ObjectList) // what one page has must not stay in the next one
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

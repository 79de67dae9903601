// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// NewFakeClient returns a client for a new World that contains copies of the objects. It is for
// code that needs neither time nor controllers. Nothing is validated.
func NewFakeClient(tb testing.TB, objects ...client.Object) client.WithWatch {
	tb.Helper()
	w := New(WorldOptions{})
	if err := w.Add(objects...); err != nil {
		tb.Fatal(err)
	}
	return w.Client("test")
}

// WithReadErrors returns a client that fails to read matching objects and lists.
func WithReadErrors(cluster client.WithWatch, err error, matches func(objectOrList any) bool) client.WithWatch {
	return interceptor.NewClient(cluster, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if matches(object) {
				return err
			}
			return c.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if matches(list) {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	})
}

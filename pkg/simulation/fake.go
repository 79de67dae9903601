// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// NewFakeClient returns a client of a World of its own, with copies of the objects: for code that
// needs neither time nor controllers. Nothing is validated.
func NewFakeClient(tb testing.TB, objects ...client.Object) client.WithWatch {
	tb.Helper()
	w := New(Options{})
	if err := w.Add(objects...); err != nil {
		tb.Fatal(err)
	}
	return w.Client("test")
}

// WithReadErrors returns the client, except that reads of the matching objects and lists fail.
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

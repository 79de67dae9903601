// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// NewFakeClient returns the fake client of controller-runtime with copies of the objects. It
// validates nothing, its times are real, and no controller runs on it.
func NewFakeClient(tb testing.TB, objects ...client.Object) client.WithWatch {
	tb.Helper()
	builder := fake.NewClientBuilder().WithScheme(NewScheme()).WithStatusSubresource(kindsWithStatus()...)
	for _, object := range objects {
		copied, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			tb.Fatalf("%T is no object", object)
		}
		builder.WithObjects(copied)
	}
	return builder.Build()
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

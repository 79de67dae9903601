// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// backwards returns a client that lists objects in reverse order, because caches list them in any order.
func backwards(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	return interceptor.NewClient(simulation.NewFakeClient(t, objects...), interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if err := c.List(ctx, list, opts...); err != nil {
			return err
		}
		items, err := meta.ExtractList(list)
		slices.Reverse(items)
		return errors.Join(err, meta.SetList(list, items))
	}})
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// uncachedClient bypasses the cache for reads that must not be stale.
type uncachedClient struct {
	client.Client
	live client.Reader
}

// Get reads from the API server.
func (c uncachedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.live.Get(ctx, key, obj, opts...)
}

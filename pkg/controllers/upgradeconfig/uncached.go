// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// uncachedClient is a client that reads from the API server, where a cache that is behind would mislead.
type uncachedClient struct {
	client.Client
	live client.Reader
}

// Get asks the API server.
func (c uncachedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.live.Get(ctx, key, obj, opts...)
}

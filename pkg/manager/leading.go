// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"sync/atomic"

	ctrl "sigs.k8s.io/controller-runtime"
)

// leading runs the caches and the controllers once the replica leads: a replica that stands by watches nothing, and costs
// the API server only what it asks of the Lease.
type leading struct {
	mgr   ctrl.Manager
	kinds []Kind

	started atomic.Bool
}

// Start runs the controllers until the context ends. As a runnable that does not say otherwise, it is started when the
// replica becomes the leader.
func (l *leading) Start(ctx context.Context) error {
	l.started.Store(true)
	return l.mgr.Start(ctx)
}

// check returns an error while the replica leads and a cache is not synced.
func (l *leading) check(ctx context.Context) error {
	if !l.started.Load() {
		return nil
	}
	return checkCacheSync(ctx, l.mgr.GetCache(), l.kinds)
}

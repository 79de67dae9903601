// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"sync/atomic"

	ctrl "sigs.k8s.io/controller-runtime"
)

// leading runs the caches and the controllers once the replica leads. A standby replica watches
// nothing, so its only load on the API server is for the Lease.
type leading struct {
	mgr   ctrl.Manager
	kinds []Kind

	started atomic.Bool
}

// Start runs the controllers until the context ends. The manager starts it when the replica becomes
// the leader, as it does for runnables by default.
func (l *leading) Start(ctx context.Context) error {
	l.started.Store(true)
	return l.mgr.Start(ctx)
}

// check returns an error if the replica leads but a cache is not synced.
func (l *leading) check(ctx context.Context) error {
	if !l.started.Load() {
		return nil
	}
	return checkCacheSync(ctx, l.mgr.GetCache(), l.kinds)
}

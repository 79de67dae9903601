// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stage says how the controllers run that play OpenShift's in a dev cluster.
//
// It knows nothing of what they play.
package stage

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options are those of a controller with that many workers. What went wrong is tried again after that time at first, and
// never later than in a second: nobody waits for a player.
func Options(workers int, retry time.Duration) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      new(true), // there may be several dev clusters in one process
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retry, time.Second),
	}
}

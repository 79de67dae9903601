// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stage runs the simulators of a dev cluster as controllers of a manager.
//
// It does not know what they simulate.
package stage

import (
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Add adds the controllers to a manager.
func Add(mgr ctrlmanager.Manager, controllers ...manager.Controller) error {
	for _, c := range controllers {
		if err := manager.Add(mgr, c); err != nil {
			return fmt.Errorf("adding a simulator: %w", err)
		}
	}
	return nil
}

// Retry returns the backoff of a simulator. It starts at the given delay and never exceeds a
// second, to let simulators recover quickly.
func Retry(first time.Duration) func() workqueue.TypedRateLimiter[reconcile.Request] {
	return func() workqueue.TypedRateLimiter[reconcile.Request] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, time.Second)
	}
}

// Options returns the controller options of the simulators.
func Options(workers int, first time.Duration) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      new(true),
		RateLimiter:             Retry(first)(),
	}
}

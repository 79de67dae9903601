// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakecluster is the former name of simulation.NewFakeClient.
package fakecluster

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// New returns simulation.NewFakeClient.
func New(tb testing.TB, objects ...client.Object) client.WithWatch {
	tb.Helper()
	return simulation.NewFakeClient(tb, objects...)
}

// WithReadErrors returns simulation.WithReadErrors.
func WithReadErrors(cluster client.WithWatch, err error, matches func(objectOrList any) bool) client.WithWatch {
	return simulation.WithReadErrors(cluster, err, matches)
}

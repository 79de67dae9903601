// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package invariants checks invariants of every stored status of a fleet upgrade and of every run:
// the limit of clusters in flight, the counters and conditions, the order of the steps, the states
// of a cluster, and that nothing starts after a stop. It shares no computations with the hub.
//
// It is only for tests and the dev cluster.
package invariants

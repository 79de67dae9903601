// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package invariants checks what holds for each stored status of the upgrade of a fleet, and for each run of
// it: the limit of clusters in flight, the counters and the conditions, the order of the steps, the states of
// a cluster, and that nothing begins after a stop. It computes nothing as the hub does.
//
// It is for tests and for the dev cluster only.
package invariants

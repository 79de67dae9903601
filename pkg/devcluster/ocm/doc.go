// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ocm runs a hub of Open Cluster Management on a laptop: a real etcd, API server, and
// placement controller, with simulated clusters and agents. It also runs our hub program there,
// with the permissions of its ServiceAccount.
//
// It knows nothing about upgrades of fleets: tests and demonstrations define what they expect.
package ocm

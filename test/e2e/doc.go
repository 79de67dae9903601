// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the operator as it is shipped: its binary and its manifests, with the permissions of its
// ServiceAccount, on dev clusters. It measures, too, what the operator costs a cluster.
//
// It knows the operator by what users and administrators see of it alone: objects, Events, metrics, log files, and the
// API server's audit log.
package e2e

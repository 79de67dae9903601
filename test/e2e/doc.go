// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the operator as it is shipped: its binary and its manifests, with the
// permissions of its ServiceAccount, on dev clusters. It also measures the load that the operator
// causes.
//
// It uses only what users and administrators see of the operator: objects, Events, metrics, log
// files, and the API server's audit log.
package e2e

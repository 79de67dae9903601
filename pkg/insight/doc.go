// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package insight defines the identity, life cycle, and limits of the insights that update informers report.
//
// An insight is kept until its informer confirms that it is resolved. An answer that is missing, late, older, or
// invalid resolves nothing. Clean limits and sanitizes what informers send. Store keeps the insights between
// answers and can be restored from a published status.
//
// The package is pure: it does not read the clock, send requests, or know about the cluster.
package insight

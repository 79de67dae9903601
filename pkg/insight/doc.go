// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package insight holds the identity, the life cycle, and the limits of the insights that update
// informers report.
//
// An insight is kept until its informer confirms that it is resolved: an answer that is missing, late,
// older, or invalid resolves nothing. Clean bounds and sanitizes what informers send. State keeps the
// insights between answers; it can be restored from a published status.
//
// The package is pure: it reads no clock and makes no request. It does not know the cluster.
package insight

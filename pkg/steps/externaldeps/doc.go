// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package externaldeps has the step that waits until what an upgrade needs outside of the cluster can
// be reached over HTTP.
//
// It reads only the status of a response: below 400, a dependency is available.
package externaldeps

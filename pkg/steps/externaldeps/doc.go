// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dependencies has the step that waits until what an upgrade needs
// outside of the cluster can be reached over HTTP.
//
// It knows neither what is asked for nor what for, and reads nothing of what is
// answered but the status: below 400, a dependency is available.
package externaldeps

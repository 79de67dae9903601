// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package externaldeps provides the step that waits until the external services that an upgrade
// needs are reachable over HTTP.
//
// It only reads the status code of a response. A dependency is available if the code is below 400.
package externaldeps

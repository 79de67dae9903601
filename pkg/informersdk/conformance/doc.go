// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance checks an update informer from the perspective of the Update Status
// Controller: it sends requests and reports deviations from the protocol with suggested changes.
//
// It does not judge whether insights are true, and it does not need a cluster.
package conformance

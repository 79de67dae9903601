// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance checks an update informer from the outside, as the Update Status Controller
// sees it: it sends requests, and reports what does not follow the protocol and what to change.
//
// It does not judge whether the insights are true, and needs no cluster.
package conformance

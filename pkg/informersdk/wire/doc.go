// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire decodes the responses of update informers. It is shared by the Update Status
// Controller and the conformance checks, so the checks find everything that the controller rejects.
package wire

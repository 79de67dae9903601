// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire decodes the responses of update informers. The Update Status Controller and the conformance
// kit share it, so the kit finds everything that the controller rejects.
package wire

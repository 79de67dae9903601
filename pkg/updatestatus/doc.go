// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updatestatus computes the status of the UpdateStatus: the sections of the control plane and of
// the pools with their conditions, progress, and insights, and the assessment.
//
// Compute is pure: it reads no clock and makes no request. The Update Status Controller and the CLI call
// it with facts from a cache, live reads, or a dump, and so arrive at the same status.
package updatestatus

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updatestatus computes the status of the UpdateStatus resource: the assessment and the sections of the
// control plane and pools with their conditions, progress, and insights.
//
// Compute is pure: it does not read the clock or send requests. The Update Status Controller and the CLI call it
// with facts from a cache, from live reads, or from a dump. The same facts always produce the same status.
package updatestatus

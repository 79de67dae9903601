// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updatestatus maintains the UpdateStatus of the cluster. It gathers the facts from the
// cache, adds the answers of the update informers, computes the status with pkg/updatestatus, and
// writes it if it has changed.
//
// A pass makes no request to the API server unless it has something to write or a node is being
// drained. After a restart, or if another leader takes over, it continues from the published
// status: first observation times are kept, and insights only count as resolved if that was
// observed.
//
// The package makes no judgments of its own.
package updatestatus

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook delivers notifications about upgrades to a receiver, as CloudEvents in structured
// JSON mode, with one POST each.
//
// Notifications are delivered at least once and in order: each is retried until the receiver
// accepts it, and the next one waits. Publishing never blocks, because notifications are queued.
// The queue is lost with the process, but the record is not: the next process publishes the whole
// record again with the same IDs, and the receiver recognizes duplicates by their ID. Events that
// do not fit into the queue count as not published, and a later pass publishes them.
//
// The package makes no decisions about upgrades. Of the steps, it only knows the milestones.
package webhook

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook delivers notifications about upgrades to a receiver, as CloudEvents in the
// structured JSON mode, one POST each.
//
// Each notification is delivered at least once and in order: it is retried until the receiver accepts
// it, and the next one waits. Publishing never blocks: notifications are queued. The queue is lost
// with the process, but the record is not: the next process publishes all of it again with the same
// IDs, by which the receiver recognizes repeats. Events that do not fit into the queue count as not
// published, and a later pass publishes them.
//
// The package decides nothing about upgrades, and knows of steps only their milestones.
package webhook

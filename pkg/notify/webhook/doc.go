// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook tells a receiver of upgrades, as CloudEvents in the structured
// JSON mode, one POST each.
//
// Each notification is delivered at least once and in order: it is tried until
// the receiver takes it, and the next one waits. The publisher never waits:
// notifications are queued. The queue is lost with the process, but the record
// is not; so everything that the record says is told again by the next process,
// with the same ids, by which the receiver knows what it has seen. If the queue
// is full, what does not fit counts as not told, and is told with a later look.
//
// It decides nothing, and knows of the steps only the names of those that send
// the notifications about the upgrade as a whole.
package webhook

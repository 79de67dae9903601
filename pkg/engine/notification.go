// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Notification is one thing that is published about an upgrade.
type Notification struct {
	ID string // made by NotificationID
	// Version and Attempt are those of the attempt; Kubernetes Events show neither.
	Version string
	Attempt int32
	// Milestone is what the notification means; empty means that it is not about the upgrade as a
	// whole.
	Milestone Milestone
	// Type is that of a Kubernetes Event, Normal or Warning; Reason is one CamelCase word, and
	// Message is for people.
	Type, Reason, Message string
}

// NotificationID identifies what is published about an attempt of an object: it is the same
// whenever the same is published again, so that receivers can recognize a repeat. The key is that
// of AttemptKey.
func NotificationID(uid, key, step, status string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", uid, key, step, status))
	return hex.EncodeToString(sum[:8])
}

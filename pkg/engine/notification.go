// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Notification is one thing that is told about an upgrade.
type Notification struct {
	ID string // made by ID
	// Version and Attempt say about which attempt; Kubernetes Events show neither.
	Version string
	Attempt int32
	// Type is that of a Kubernetes Event, Normal or Warning; Reason is one
	// CamelCase word, and Message is for people.
	Type, Reason, Message string
}

// NotificationID identifies one thing that is told about an upgrade: the same whenever the
// same is told again, so that whoever is told can recognise a repeat.
func NotificationID(uid string, attempt int32, step, status string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %q %q", uid, attempt, step, status))
	return hex.EncodeToString(sum[:8])
}

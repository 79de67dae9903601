// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Notification is an announcement about an upgrade.
type Notification struct {
	ID string // made by NotificationID
	// Time is when the event happened. If zero, the time of publication counts.
	Time time.Time
	// Version and Attempt identify the attempt; Kubernetes Events show neither.
	Version string
	Attempt int32
	// Milestone is set if the notification is about the upgrade as a whole.
	Milestone Milestone
	// Type is the type of a Kubernetes Event, Normal or Warning. Reason is one CamelCase word, and Message is
	// for people.
	Type, Reason, Message string
}

// NotificationID identifies a notification about an attempt of an object. A repeated notification has the same
// ID, so receivers can recognize it. The key comes from AttemptKey.
func NotificationID(uid, key, step, status string) string {
	return text.Hash(fmt.Sprintf("%q %q %q %q", uid, key, step, status), 8)
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Notification is one thing that is published about an upgrade.
type Notification struct {
	ID string // made by NotificationID
	// Time is when what it is about happened; zero means as it is published.
	Time time.Time
	// Version and Attempt identify the attempt; Kubernetes Events show neither.
	Version string
	Attempt int32
	// Milestone says what the notification means; empty means that it is not about the upgrade as a whole.
	Milestone Milestone
	// Type is the type of a Kubernetes Event, Normal or Warning; Reason is one CamelCase word, and Message is for
	// people.
	Type, Reason, Message string
}

// NotificationID identifies what is published about an attempt of an object: it is the same whenever the same is
// published again, so that receivers can recognize a repeat. The key comes from AttemptKey.
func NotificationID(uid, key, step, status string) string {
	return text.Hash(fmt.Sprintf("%q %q %q %q", uid, key, step, status), 8)
}

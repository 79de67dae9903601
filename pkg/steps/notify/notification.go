// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// The types of notifications.
const (
	Normal  = corev1.EventTypeNormal
	Warning = corev1.EventTypeWarning
)

// ObjectNotification is a notification about an object.
type ObjectNotification struct {
	Subject corev1.ObjectReference
	engine.Notification
}

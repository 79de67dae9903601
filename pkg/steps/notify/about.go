// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of notifications.
const (
	Normal  = corev1.EventTypeNormal
	Warning = corev1.EventTypeWarning
)

// Notification is what is told. Its ID is the same whenever the same is told.
// The type is that of a Kubernetes Event, Normal or Warning.
type Notification struct {
	Subject             corev1.ObjectReference
	ID                  string
	Type, Reason, Words string
}

// About is the object that a notification is about.
func About(apiVersion, kind string, obj metav1.Object) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind,
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
	}
}

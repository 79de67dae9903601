// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reference returns a reference to an object. Unlike client-go's GetReference, it needs no scheme
// and cannot fail, and the reference does not change with the object.
func Reference(object metav1.Object, kind schema.GroupVersionKind) corev1.ObjectReference {
	version, name := kind.ToAPIVersionAndKind()
	return corev1.ObjectReference{APIVersion: version, Kind: name, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID()}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stripService drops unread parts from a Service before it is cached.
func stripService(obj any) (any, error) {
	service, ok := obj.(*corev1.Service)
	if !ok {
		return obj, nil
	}
	service.ObjectMeta = metav1.ObjectMeta{
		Namespace: service.Namespace, Name: service.Name, UID: service.UID, ResourceVersion: service.ResourceVersion,
	}
	stripped := corev1.ServiceSpec{Type: service.Spec.Type, ClusterIP: service.Spec.ClusterIP}
	for _, port := range service.Spec.Ports {
		stripped.Ports = append(stripped.Ports, corev1.ServicePort{Port: port.Port, Protocol: port.Protocol})
	}
	service.Spec, service.Status = stripped, corev1.ServiceStatus{}
	return service, nil
}

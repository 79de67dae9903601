// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Example is an event of that type, as it is sent.
func Example(eventType string) ([]byte, error) {
	const uid, version = "6f1c2d34-0000-4000-8000-000000000001", "4.4.6"
	n := notification{
		eventType: eventType, at: time.Date(2020, time.June, 20, 12, 0, 1, 0, time.UTC),
		data: Data{
			Object: Object{
				APIVersion: "upgrade.managed.openshift.io/v1alpha1", Kind: "UpgradeConfig",
				Namespace: "managed-upgrade-operator", Name: "example-upgrade-config", UID: uid,
			},
			Severity: corev1.EventTypeNormal, Version: version, Attempt: 1,
		},
	}
	d, key, status := &n.data, version, ""
	switch eventType {
	case TypeStarted:
		d.Reason, d.Message = started, "the upgrade to 4.4.6 begins"
	case TypeDelayed:
		d.Severity, d.Reason, d.Message = corev1.EventTypeWarning, delayed, "the upgrade to 4.4.6 did not commence within 15m of its beginning"
	case TypeCompleted:
		d.Reason, d.Message = completed, "the upgrade to 4.4.6 is complete"
	case TypeFailed:
		d.Severity, d.Reason, d.Message = corev1.EventTypeWarning, failed,
			"the upgrade to 4.4.6 has failed: CommenceUpgrade: not commenced by 2020-06-20T12:30:00Z, when the window closed"
	case TypeCancelled:
		d.Reason, d.Message = cancelled, "the upgrade to 4.4.6 was cancelled: PreHealthCheck: the UpgradeConfig was deleted before the upgrade had commenced"
	case TypeStepWaiting:
		d.Step, d.Reason, d.Message, status = "PreHealthCheck", "ClusterUnhealthy", "nodes not ready: worker-2", "StepWaiting"
	case TypeStepUnknown:
		d.Step, d.Reason, d.Message, status = "PreHealthCheck", "CannotObserve", "asking Prometheus: there is no answer within 10s", "StepUnknown"
	case TypeStepDone:
		d.Step, d.Reason, d.Message, status = "PreHealthCheck", engine.ReasonDone, "the cluster is healthy", "StepDone"
	case TypeStepSkipped:
		d.Step, d.Reason, d.Message, status = "ControlPlaneMaintWindow", "NotConfigured", "there is no Alertmanager to ask", "StepSkipped"
	case TypeStepFailed:
		d.Step, d.Reason, d.Message, status = "CommenceUpgrade", "WindowMissed", "not commenced by 2020-06-20T12:30:00Z, when the window closed", "StepFailed"
	default:
		d.Reason, d.Message = "WindowMissed", "the window closed at 2020-06-20T12:30:00Z, and the upgrade had not begun"
	}
	if status == "StepFailed" || status == "StepUnknown" {
		d.Severity = corev1.EventTypeWarning
	}
	if status == "" {
		status = d.Reason
	} else {
		key = version + " " + d.Step
	}
	n.id = engine.NotificationID(uid, "2026-03-01T12:00:00Z", key, status)
	return n.encode("urn:uuid:3b8a0a4e-0000-4000-8000-000000000002")
}

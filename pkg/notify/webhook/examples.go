// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// example holds the differences between the examples.
type example struct {
	severity, reason, message string
	milestone                 engine.Milestone
	step                      string
}

// examples holds the examples by event type.
var examples = map[string]example{
	TypeStarted:   {milestone: engine.MilestoneStarted, message: "the upgrade to 4.4.6 starts"},
	TypeDelayed:   {corev1.EventTypeWarning, "", "the upgrade to 4.4.6 has not commenced within 15m of its start", engine.MilestoneDelayed, ""},
	TypeStalled:   {corev1.EventTypeWarning, "", "AllWorkerNodesUpgraded started at 2020-06-20T13:00:00Z and is slow: machine config pools updating: worker (3 of 6 machines)", notify.MilestoneStalled, ""},
	TypeRecovered: {corev1.EventTypeWarning, "", "AllWorkerNodesUpgraded was slow and is done", notify.MilestoneRecovered, ""},
	TypeCompleted: {milestone: engine.MilestoneCompleted, message: "the upgrade to 4.4.6 is complete"},
	TypeFailed: {
		corev1.EventTypeWarning, "", "the upgrade to 4.4.6 has failed: CommenceUpgrade: not commenced by 2020-06-20T12:30:00Z, when the window closed",
		engine.MilestoneFailed, "",
	},
	TypeCancelled: {
		milestone: engine.MilestoneCancelled,
		message:   "the upgrade to 4.4.6 was cancelled: PreHealthCheck: the UpgradeConfig was deleted before the upgrade had commenced",
	},
	TypeSkipped:     {milestone: engine.MilestoneSkipped, message: "the upgrade to 4.4.6 was skipped: PreHealthCheck: nodes not ready: worker-2"},
	TypeStepWaiting: {reason: "ClusterUnhealthy", message: "nodes not ready: worker-2", step: "PreHealthCheck"},
	TypeStepUnknown: {corev1.EventTypeWarning, "CannotObserve", "querying alerts from https://prometheus.example.com: no response within 10s", "", "PreHealthCheck"},
	TypeStepDone:    {reason: engine.ReasonDone, message: "the cluster version operator has accepted 4.4.6", milestone: engine.MilestoneCommenced, step: "CommenceUpgrade"},
	TypeStepSkipped: {reason: "NotConfigured", message: "no Alertmanager is configured", step: "ControlPlaneMaintWindow"},
	TypeStepFailed:  {corev1.EventTypeWarning, "WindowMissed", "not commenced by 2020-06-20T12:30:00Z, when the window closed", "", "CommenceUpgrade"},
	TypeNotice:      {corev1.EventTypeWarning, "WindowMissed", "the upgrade did not start by 2020-06-20T12:30:00Z, when its window closed", "", ""},
}

// Example returns an example event of that type in its wire format.
func Example(eventType string) ([]byte, error) {
	const version, key = "4.4.6", "2020-06-20T12:00:00Z"
	ref := corev1.ObjectReference{
		APIVersion: "upgrade.managed.openshift.io/v1alpha1", Kind: "UpgradeConfig",
		Namespace: "managed-upgrade-operator", Name: "example-upgrade-config", UID: "6f1c2d34-0000-4000-8000-000000000001",
	}
	x := examples[eventType]
	n := engine.Notification{Version: version, Attempt: 1, Milestone: x.milestone, Type: x.severity, Reason: x.reason, Message: x.message}
	if n.Type == "" {
		n.Type = corev1.EventTypeNormal
	}
	if n.Reason == "" {
		n.Reason = notify.MilestoneReason(x.milestone)
	}
	n.ID = engine.NotificationID(string(ref.UID), key, version+" "+x.step, eventType)
	next := newNotification(ref, n, eventType, time.Date(2020, time.June, 20, 12, 0, 1, 0, time.UTC))
	next.data.Step = x.step
	return next.encode("urn:uuid:3b8a0a4e-0000-4000-8000-000000000002", "shop-x7k2p")
}

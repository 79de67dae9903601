// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
)

// announcer creates the notifications about one attempt, whatever its kind.
type announcer struct {
	notifier notify.Notifier
	// common holds the object, the version, and the attempt of all notifications.
	common notify.ObjectNotification
	// attemptKey is the key of the attempt, see engine.AttemptKey.
	attemptKey string
}

// send returns a step that sends a notification. The message describes the state of the upgrade.
func (a announcer) send(milestone engine.Milestone, eventType, reason, message string) engine.UpgradeStep {
	return notify.Send(a.notifier, a.notification(milestone, eventType, reason, message))
}

// sendFailure sends the notification that the upgrade has failed, or was skipped or canceled, with the reason.
func (a announcer) sendFailure(run engine.Run) engine.UpgradeStep {
	milestone, eventType, reason, message := engine.MilestoneFailed, notify.Warning, "UpgradeFailed", "has failed"
	switch {
	case run.Failure == nil:
		return a.send(milestone, eventType, reason, message)
	case run.Failure.Reason == engine.ReasonCancelled:
		milestone, eventType, reason, message = engine.MilestoneCancelled, notify.Normal, "UpgradeCancelled", "was cancelled"
	case run.Outcome == engine.OutcomeSkipped:
		milestone, reason, message = engine.MilestoneSkipped, "UpgradeSkipped", "was skipped"
	}
	return a.send(milestone, eventType, reason, message+": "+run.Failure.Type+": "+run.Failure.Message)
}

// otherRequest returns a keep-alive that notifies once of each request of another client for another release
// during the update.
func (a announcer) otherRequest(r client.Reader, target clusterstate.Target) engine.KeepAlive {
	request := controlplane.AnotherRequest(r, target)
	return engine.KeepAlive{Name: "OtherRequest", Renew: notify.NoticeKeepAlive(a.notifier, func(ctx context.Context) (*notify.ObjectNotification, error) {
		message, err := request(ctx)
		if err != nil || message == "" {
			return nil, err
		}
		n := a.notification("", notify.Warning, "AnotherUpdateRequested", "goes on, but "+message)
		n.ID = engine.NotificationID(string(n.Subject.UID), a.attemptKey, n.Version+" "+message, n.Reason)
		return &n, nil
	})}
}

func (a announcer) notification(milestone engine.Milestone, eventType, reason, message string) notify.ObjectNotification {
	n := a.common
	n.ID = engine.NotificationID(string(n.Subject.UID), a.attemptKey, n.Version, reason)
	n.Milestone, n.Type, n.Reason, n.Message = milestone, eventType, reason, upgradeTo(n.Version)+" "+message
	return n
}

// upgradeTo names the upgrade to a version in messages. It returns an empty string without a version.
func upgradeTo(version string) string {
	if version == "" {
		return "the upgrade"
	}
	return "the upgrade to " + version
}

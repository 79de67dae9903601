// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
)

// target is the release that the UpgradeConfig asks for.
func target(cfg *v1alpha1.UpgradeConfig) cluster.Target {
	to := cfg.Spec.Desired
	return cluster.Target{Version: to.Version, Image: to.Image, Channel: to.Channel, AcceptedRisks: to.AcceptedRisks}
}

// about makes notifications about one attempt.
type about struct {
	notifier notify.Notifier
	cfg      *v1alpha1.UpgradeConfig
	attempt  int32
	late     time.Duration // so long after its beginning an upgrade should have commenced
}

func (t Tools) about(cfg *v1alpha1.UpgradeConfig) about {
	a := about{notifier: t.Notifier, cfg: cfg, late: t.Config.Notifications.DelayedAfter.Duration}
	if len(cfg.Status.History) > 0 {
		a.attempt = cfg.Status.History[0].Attempt
	}
	return a
}

func (a about) sent(reason, message string) engine.UpgradeStep {
	return a.send(notify.Normal, reason, message)
}

// ended tells that the upgrade was given up, and why: it failed, or it was called off.
func (a about) ended(ctx context.Context, run engine.Run) (engine.Result, error) {
	eventType, reason, message := notify.Warning, "UpgradeFailed", "the upgrade to %s has failed"
	if run.Failure != nil {
		if run.Failure.Reason == engine.ReasonCancelled {
			eventType, reason, message = notify.Normal, "UpgradeCancelled", "the upgrade to %s was cancelled"
		}
		message += ": " + strings.ReplaceAll(run.Failure.Type+": "+run.Failure.Message, "%", "%%")
	}
	return a.send(eventType, reason, message)(ctx, run)
}

// delayed is what is told of an upgrade that takes long to commence.
func (a about) delayed() notify.Notification {
	return a.notification(notify.Warning, "UpgradeDelayed", "the upgrade to %s did not commence within "+config.Duration{Duration: a.late}.String()+" of its beginning")
}

func (a about) send(eventType, reason, message string) engine.UpgradeStep {
	return notify.Sent(a.notifier, a.notification(eventType, reason, message))
}

func (a about) notification(eventType, reason, message string) notify.Notification {
	version := a.cfg.Spec.Desired.Version
	return notify.Notification{
		Subject: notify.About(v1alpha1.GroupVersion.String(), "UpgradeConfig", a.cfg),
		Notice: engine.Notice{
			ID:      engine.ID(string(a.cfg.UID), a.attempt, version, reason),
			Version: version, Attempt: a.attempt,
			Type: eventType, Reason: reason, Message: fmt.Sprintf(message, version),
		},
	}
}

// reserves says whether extra nodes are asked for.
func (a about) reserves() bool {
	return a.cfg.Spec.CapacityReservation != nil && *a.cfg.Spec.CapacityReservation
}

// subject is whose the silences and the extra nodes of this attempt are.
func (a about) subject() engine.Subject {
	return engine.Subject{
		UID: string(a.cfg.UID), Namespace: a.cfg.Namespace, Name: a.cfg.Name,
		Attempt: a.attempt, Version: a.cfg.Spec.Desired.Version,
	}
}

// unique names this attempt among all upgrades of the cluster.
func (a about) unique() string { return string(a.cfg.UID) + "/" + a.subject().Key() }

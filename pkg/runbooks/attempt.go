// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
)

// target returns the release that the UpgradeConfig requests.
func target(cfg *v1alpha1.UpgradeConfig) clusterstate.Target {
	desired := cfg.Spec.Desired
	return clusterstate.Target{Version: desired.Version, Image: desired.Image, Channel: desired.Channel, AcceptedRisks: desired.AcceptedRisks}
}

// attempt is one attempt at an UpgradeConfig.
type attempt struct {
	announcer

	cfg            *v1alpha1.UpgradeConfig
	channels       []string      // that the attempt has requested
	delayThreshold time.Duration // after which an upgrade that has not commenced is delayed
}

func (t Deps) newAttempt(cfg *v1alpha1.UpgradeConfig) attempt {
	a := attempt{cfg: cfg, delayThreshold: t.Config.Notifications.DelayedAfter.Duration}
	a.notifier = t.Notifier
	a.common.Subject = notify.ObjectReference(v1alpha1.GroupVersion.String(), "UpgradeConfig", cfg)
	a.common.Version = cfg.Spec.Desired.Version
	if len(cfg.Status.History) > 0 {
		newest := cfg.Status.History[0]
		a.common.Attempt, a.attemptKey, a.channels = newest.Attempt, engine.AttemptKey(newest), newest.Channels
	}
	return a
}

// delayNotification returns the notification about an upgrade that takes long to commence.
func (a attempt) delayNotification() notify.Notification {
	return a.notification(engine.MilestoneDelayed, notify.Warning, "UpgradeDelayed", "has not commenced within "+config.Duration{Duration: a.delayThreshold}.String()+" of its start")
}

// wantsExtraNodes reports whether extra nodes are requested.
func (a attempt) wantsExtraNodes() bool {
	return a.cfg.Spec.CapacityReservation != nil && *a.cfg.Spec.CapacityReservation
}

// PDBTimeout returns how long a PodDisruptionBudget may keep a pod on a node; negative means without
// limit.
func PDBTimeout(cfg *v1alpha1.UpgradeConfig) time.Duration {
	if cfg.Spec.PDBForceDrainTimeout == nil {
		return -1
	}
	return time.Duration(*cfg.Spec.PDBForceDrainTimeout) * time.Minute
}

// ref identifies the attempt that owns the silences and the extra nodes.
func (a attempt) ref() engine.AttemptRef {
	return engine.AttemptRef{
		Group: v1alpha1.GroupVersion.Group, Kind: "UpgradeConfig",
		UID: string(a.cfg.UID), Namespace: a.cfg.Namespace, Name: a.cfg.Name,
		Key: a.attemptKey, Version: a.cfg.Spec.Desired.Version,
	}
}

// key identifies this attempt among all upgrades of the cluster.
func (a attempt) key() string { return string(a.cfg.UID) + "/" + a.ref().ID() }

// precedingChannel is the channel before the upgrade; nil means that it is not recorded.
func (a attempt) precedingChannel() *string {
	if len(a.cfg.Status.History) == 0 {
		return nil
	}
	return a.cfg.Status.History[0].PrecedingChannel
}

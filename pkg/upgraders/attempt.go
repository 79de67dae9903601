// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
)

// target returns the release that the UpgradeConfig requests.
func target(cfg *upgradev1alpha1.UpgradeConfig) clusterstate.Target {
	desired := cfg.Spec.Desired
	return clusterstate.Target{Version: desired.Version, Image: desired.Image, Channel: desired.Channel, AcceptedRisks: desired.AcceptedRisks}
}

// attempt is one attempt at an UpgradeConfig.
type attempt struct {
	announcer

	cfg            *upgradev1alpha1.UpgradeConfig
	record         history.Record
	delayThreshold time.Duration // how long an upgrade may take to commence without counting as delayed
}

func (t Deps) newAttempt(of Attempt) attempt {
	a := attempt{cfg: of.config(), record: of.Record, delayThreshold: t.Config.Notifications.DelayedAfter.Duration}
	a.announcer = announcer{notifier: t.Notifier, attemptKey: engine.AttemptKey(of.Record)}
	a.common.Subject = objects.Reference(a.cfg, upgradev1alpha1.GroupVersion.WithKind("UpgradeConfig"))
	a.common.Version, a.common.Attempt = a.cfg.Spec.Desired.Version, of.Record.Attempt
	return a
}

// delayNotification returns the notification about an upgrade that takes long to commence.
func (a attempt) delayNotification() notify.ObjectNotification {
	return a.notification(engine.MilestoneDelayed, notify.Warning, "UpgradeDelayed", "has not commenced within "+config.Duration{Duration: a.delayThreshold}.String()+" of its start")
}

// wantsExtraNodes reports whether extra nodes are requested.
func (a attempt) wantsExtraNodes() bool {
	return a.cfg.Spec.CapacityReservation != nil && *a.cfg.Spec.CapacityReservation
}

// PDBTimeout returns how long a PodDisruptionBudget may keep a pod on a node. There is no limit if it is
// negative.
func PDBTimeout(cfg *upgradev1alpha1.UpgradeConfig) time.Duration {
	if cfg.Spec.PDBForceDrainTimeout == nil {
		return -1
	}
	return time.Duration(*cfg.Spec.PDBForceDrainTimeout) * time.Minute
}

// ref identifies the attempt that owns the silences and the extra nodes.
func (a attempt) ref() engine.AttemptRef {
	return engine.AttemptRef{
		Group: upgradev1alpha1.GroupVersion.Group, Kind: "UpgradeConfig",
		UID: string(a.cfg.UID), Namespace: a.cfg.Namespace, Name: a.cfg.Name,
		Key: a.attemptKey, Version: a.cfg.Spec.Desired.Version,
	}
}

// key identifies this attempt among all upgrades of the cluster.
func (a attempt) key() string { return string(a.cfg.UID) + "/" + a.ref().ID() }

// commencedBefore reports whether an earlier attempt at the version had commenced.
func (a attempt) commencedBefore() bool {
	return slices.ContainsFunc(a.record.PreviousAttempts, func(p history.PreviousAttempt) bool { return p.CommenceTime != nil })
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// Namespace is the namespace of all upgrades.
const Namespace = "managed-upgrade-operator"

// Step returns a step that started and ended the given times before Now. If to is negative, the step is still
// running.
func Step(name string, from, to time.Duration, status metav1.ConditionStatus, reason, message string) history.StepCondition {
	c := history.StepCondition{Type: name, Status: status, Reason: reason, Message: message, StartTime: Ago(from)}
	if to >= 0 {
		c.CompleteTime = Ago(to)
	}
	return c
}

// AnUpgrade returns an UpgradeConfig with a pending upgrade.
func AnUpgrade(records ...history.Record) *upgradev1alpha1.UpgradeConfig {
	upgrade := &upgradev1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "cluster", UID: "upgrade-1"},
		Spec: upgradev1alpha1.UpgradeConfigSpec{
			Type: "OSD", UpgradeAt: "2026-11-23T02:00:00Z", PDBForceDrainTimeout: new(int32(60)),
			Desired: upgradev1alpha1.Update{Version: "4.20.6", Channel: "stable-4.20"},
		},
		Status: upgradev1alpha1.UpgradeConfigStatus{History: records},
	}
	upgrade.Status.Conditions = []metav1.Condition{{Type: history.ConditionProgressing, Message: "the upgrade starts at 2026-11-23 02:00 UTC"}}
	return upgrade
}

// AJob returns an UpgradeJob of ASchedule.
func AJob(name string, records ...history.Record) *maintenancev1beta1.UpgradeJob {
	return &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: name, UID: "job-1",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "managedupgrade.appuio.io/v1beta1", Kind: "UpgradeConfig", Name: "tuesdays", UID: "schedule-1"}},
		},
		Spec:   maintenancev1beta1.UpgradeJobSpec{StartAfter: "2026-11-23T02:00:00Z", StartBefore: "2026-11-23T03:00:00Z", DesiredVersion: maintenancev1beta1.DesiredVersion{Version: "4.20.6"}},
		Status: maintenancev1beta1.UpgradeJobStatus{History: records},
	}
}

// ASchedule returns an UpgradeConfig for scheduled maintenance.
func ASchedule() *maintenancev1beta1.UpgradeConfig {
	return &maintenancev1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "tuesdays", UID: "schedule-1"},
		Spec:       maintenancev1beta1.UpgradeConfigSpec{Schedule: maintenancev1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2"}},
	}
}

// PendingRecord returns the record of an attempt before its start.
func PendingRecord() history.Record {
	return history.Record{Version: "4.20.6", Phase: history.PhasePending, Attempt: 1, Reason: "Scheduled", Message: "the upgrade starts at 2026-11-23 02:00 UTC"}
}

// CommencedRecord returns the record of a commenced attempt.
func CommencedRecord() history.Record {
	return history.Record{
		Version: "4.20.6", PrecedingVersion: "4.20.5", Phase: history.PhaseUpgrading, Attempt: 2, StartTime: Ago(time.Hour), CommenceTime: Ago(50 * time.Minute),
		Conditions: []history.StepCondition{
			Step("Started", time.Hour, 59*time.Minute, metav1.ConditionTrue, "Done", ""),
			Step("CapacityAdded", 59*time.Minute, 59*time.Minute, metav1.ConditionTrue, "NotRequested", ""),
			Step("Commenced", 59*time.Minute, 50*time.Minute, metav1.ConditionTrue, "Done", ""),
			Step("ControlPlaneUpgraded", 50*time.Minute, -1, metav1.ConditionFalse, "Progressing", "Working towards 4.20.6: 106 of 901 done (11% complete)"),
		},
		PreviousAttempts: []history.PreviousAttempt{{
			Attempt: 1, Phase: history.PhaseFailed, FailedStep: "Healthy", Message: "ClusterOperator dns is degraded", StartTime: Ago(26 * time.Hour), CompleteTime: Ago(25 * time.Hour),
		}},
	}
}

// FailedRecord returns the record of a failed attempt.
func FailedRecord() history.Record {
	return history.Record{
		Version: "4.20.6", Phase: history.PhaseFailed, Attempt: 1, Reason: "WindowMissed", Message: "the upgrade has not commenced in its window",
		StartTime: Ago(2 * time.Hour), CompleteTime: Ago(time.Hour),
		Conditions: []history.StepCondition{
			Step("Started", 2*time.Hour, 119*time.Minute, metav1.ConditionTrue, "Done", ""),
			Step("Healthy", 119*time.Minute, time.Hour, metav1.ConditionFalse, "WindowMissed", "ClusterOperator dns is degraded"),
		},
	}
}

// UpgradedRecord returns the record of a successful attempt.
func UpgradedRecord() history.Record {
	r := CommencedRecord()
	r.Phase, r.CompleteTime = history.PhaseUpgraded, Ago(5*time.Minute)
	r.Conditions[3] = Step("ControlPlaneUpgraded", 50*time.Minute, 5*time.Minute, metav1.ConditionTrue, "Done", "")
	r.PreviousAttempts = nil
	return r
}

// Offering returns a cluster at 4.20.6 that is offered 4.20.8 without risks and 4.20.9 with a risk.
func Offering(t *testing.T, objects ...client.Object) *FakeCluster {
	t.Helper()
	cluster := NewFakeCluster(t, objects...)
	version := &configv1.ClusterVersion{}
	if err := cluster.Client.Get(t.Context(), clusterstate.VersionKey, version); err != nil {
		t.Fatal(err)
	}
	version.Spec.Channel = "stable-4.20"
	version.Status.Desired = configv1.Release{Version: "4.20.6"}
	version.Status.History = []configv1.UpdateHistory{{Version: "4.20.6", State: configv1.CompletedUpdate}}
	version.Status.AvailableUpdates = []configv1.Release{{Version: "4.20.7", Image: "image-7"}, {Version: "4.20.8", Image: "image-8"}}
	version.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{
		Release: configv1.Release{Version: "4.20.9", Image: "image-9"}, Risks: []configv1.ConditionalUpdateRisk{{Name: "SlowBoots", Message: "Nodes boot slowly.", URL: "https://example.com"}},
	}}
	if err := cluster.Client.Update(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	return cluster
}

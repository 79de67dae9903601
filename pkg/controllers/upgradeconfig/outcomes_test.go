// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/kstatus"
)

// outcome is the observable outcome of an UpgradeConfig.
type outcome struct {
	phase     history.Phase
	condition string // Type=Status Reason
	message   string // part of its message
	finished  bool
}

// expect checks the outcome of the upgrade.
func (w *world) expect(want outcome) {
	w.TB.Helper()
	cfg := w.get(upgrade)
	record := w.record()
	name, _, _ := strings.Cut(want.condition, "=")
	got := outcome{phase: record.Phase, finished: record.CompleteTime != nil}
	if c := apimeta.FindStatusCondition(cfg.Status.Conditions, name); c != nil {
		got.condition = name + "=" + string(c.Status) + " " + c.Reason
		if strings.Contains(c.Message, want.message) {
			got.message = want.message
		}
	}
	if got != want {
		w.TB.Errorf("after %s: got %+v, want %+v; %s", w.Now().Sub(noon), got, want, w.describe())
	}
	w.expectHealth(want)
	if succeeded := apimeta.FindStatusCondition(cfg.Status.Conditions, upgradev1alpha1.ConditionSucceeded); want.finished && succeeded == nil {
		w.TB.Errorf("the finished upgrade has no condition Succeeded; %s", w.describe())
	}
}

// expectHealth compares what tools that know nothing about upgrades make of the outcome.
func (w *world) expectHealth(of outcome) {
	w.TB.Helper()
	want := "InProgress"
	switch {
	case of.phase == history.PhaseUpgraded:
		want = "Current"
	case of.phase == history.PhaseFailed && of.finished, strings.HasPrefix(of.condition, "Accepted=False") && !strings.HasSuffix(of.condition, "ClusterLocked"):
		want = "Failed"
	case strings.HasSuffix(of.condition, " Scheduled"):
		want = "Current"
	}
	if health, err := kstatus.Of(w.get(upgrade)); err != nil || health.Status != want {
		w.TB.Errorf("after %s: %+v, %v, want %s; %s", w.Now().Sub(noon), health, err, want, w.describe())
	}
}

// The rows of the table of outcomes in the design, in its order.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	const window = 30 * time.Minute
	pending := func(reason, message string) outcome {
		return outcome{phase: history.PhasePending, condition: "Accepted=False " + reason, message: message}
	}
	waiting := func(step, message string) outcome {
		return outcome{phase: history.PhaseUpgrading, condition: "Progressing=True " + step, message: message}
	}
	failed := func(reason, message string) outcome {
		return outcome{phase: history.PhaseFailed, condition: "Succeeded=False " + reason, message: message, finished: true}
	}
	type moment struct {
		at   time.Duration
		want outcome
	}
	for name, c := range map[string]struct {
		spec    func(*upgradev1alpha1.UpgradeConfigSpec)
		cluster func(*world)
		moments []moment
	}{
		"scheduled": {
			moments: []moment{{-time.Minute, outcome{phase: history.PhasePending, condition: "Progressing=False Scheduled", message: "2026-03-01T12:10:00Z"}}},
		},
		"unknown type": {
			spec: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Type = "ARO" },
			moments: []moment{
				{-time.Minute, pending("UnknownType", "this operator knows OSD")},
				{window - time.Second, pending("UnknownType", "")},
				{window + time.Second, failed("UnknownType", "ARO")},
			},
		},
		"invalid version": {
			spec: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4" },
			moments: []moment{
				{-time.Minute, pending("InvalidVersion", "spec.desired.version")}, {window + time.Second, failed("InvalidVersion", "4.4")},
			},
		},
		"downgrade": {
			spec: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.1" },
			moments: []moment{
				{-time.Minute, pending("Downgrade", "4.4.5 is installed")}, {window + time.Second, failed("Downgrade", "4.4.1")},
			},
		},
		"invalid time": {
			spec:    func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = "tomorrow" },
			moments: []moment{{0, pending("InvalidTime", "2020-05-01T12:00:00Z")}, {24 * time.Hour, pending("InvalidTime", "")}},
		},
		"installed version": {
			spec: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = installed },
			moments: []moment{{-5 * time.Minute, outcome{
				phase: history.PhaseUpgraded, condition: "Succeeded=True AlreadyAtVersion", message: "nothing to do", finished: true,
			}}},
		},
		"installed version while another update is in progress": {
			spec: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = installed },
			cluster: func(w *world) {
				w.cluster.ChangeVersion(func(version *configv1.ClusterVersion) {
					version.Status.History = append([]configv1.UpdateHistory{{Version: "4.4.7", State: configv1.PartialUpdate}}, version.Status.History...)
				})
			},
			moments: []moment{
				{-5 * time.Minute, outcome{phase: history.PhasePending, condition: "Progressing=False Scheduled"}},
				{time.Minute, waiting("VersionPinned", "not offered")},
				{window + 5*time.Second, outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", message: "not offered"}}, // the clean-up waits for the cluster to settle
			},
		},
		"version not offered": {
			cluster: func(w *world) { w.cluster.Available = nil },
			moments: []moment{
				{time.Minute, waiting("VersionPinned", "not offered")},
				{window - time.Second, waiting("VersionPinned", "")},
				{window + 5*time.Second, failed("WindowMissed", "not offered")},
			},
		},
		"conditional edge not accepted": {
			cluster: func(w *world) {
				w.cluster.Available = nil
				w.cluster.ChangeVersion(func(version *configv1.ClusterVersion) {
					version.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{
						Release: configv1.Release{Version: desired}, Risks: []configv1.ConditionalUpdateRisk{{Name: "Sinks", Message: "It sinks."}},
					}}
				})
			},
			moments: []moment{{time.Minute, waiting("VersionPinned", "Sinks")}, {window + 5*time.Second, failed("WindowMissed", "Sinks")}},
		},
		"cluster not upgradeable": {
			spec: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.5.1" },
			cluster: func(w *world) {
				w.cluster.Report(configv1.OperatorUpgradeable, configv1.ConditionFalse, "a box is open")
			},
			moments: []moment{{time.Minute, waiting("ClusterUpgradeable", "a box is open")}, {window + 5*time.Second, failed("WindowMissed", "a box is open")}},
		},
		"cluster unhealthy": {
			cluster: func(w *world) { w.cluster.ChangePools(func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true }) },
			moments: []moment{{time.Minute, waiting("PreHealthCheck", "paused")}, {window + 5*time.Second, failed("WindowMissed", "paused")}},
		},
		"another update requested": {
			cluster: func(w *world) { w.requestElsewhere("4.4.7") },
			moments: []moment{{time.Minute, waiting("ClusterUpgradeable", "4.4.7")}, {window + 5*time.Second, failed("WindowMissed", "4.4.7")}},
		},
		"operator down for the whole window": {
			cluster: func(w *world) { w.Jump(tenPast.Add(window).Sub(w.Now())) },
			moments: []moment{{window + time.Second, failed("WindowMissed", "did not start by 2026-03-01T12:40:00Z")}},
		},
		"lock never free": {
			cluster: func(w *world) {
				w.createLock(&lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"})
			},
			moments: []moment{
				{-time.Minute, outcome{phase: history.PhasePending, condition: "Progressing=False Scheduled"}},
				{time.Minute, pending("ClusterLocked", "UpgradeJob team-b/job")},
				{window + time.Second, failed("WindowMissed", "waiting for the upgrade of UpgradeJob team-b/job")},
			},
		},
		"target refused": {
			cluster: func(w *world) { w.cluster.Rejection = "is not signed" },
			moments: []moment{{time.Minute, waiting("CommenceUpgrade", "is not signed")}, {window + 5*time.Second, failed("TargetRefused", "is not signed")}},
		},
		"slow control plane": {
			cluster: func(w *world) { w.cluster.ControlPlaneDuration = 3 * time.Hour },
			moments: []moment{
				{time.Hour, outcome{phase: history.PhaseUpgrading, condition: "Slow=False OnTime"}},
				{2*time.Hour + 5*time.Minute, outcome{phase: history.PhaseUpgrading, condition: "Slow=True ControlPlaneUpgraded", message: "is slow"}},
				{5 * time.Hour, outcome{phase: history.PhaseUpgraded, condition: "Slow=False OnTime", finished: true}},
			},
		},
		"target superseded by another client": {
			cluster: func(w *world) {
				w.After(15*time.Minute, func() { w.requestElsewhere("4.4.7") })
			},
			moments: []moment{{2 * time.Hour, failed("Superseded", "4.4.7")}},
		},
		"cluster unhealthy after the upgrade": {
			cluster: func(w *world) {
				w.After(25*time.Minute, func() { w.cordonWorker(true) })
			},
			moments: []moment{
				{time.Hour, waiting("PostClusterHealthCheck", "worker-0")}, {3 * time.Hour, failed("UnhealthyAfterUpgrade", "worker-0")},
			},
		},
		"cluster unreadable before the start": {
			cluster: func(w *world) { w.failReads(15 * time.Minute) },
			moments: []moment{
				{-time.Minute, outcome{phase: history.PhaseUnknown, condition: "Progressing=Unknown CannotObserve", message: "not now"}},
				{2 * time.Hour, outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true}},
			},
		},
		"cluster unreadable during the upgrade": {
			cluster: func(w *world) { w.After(15*time.Minute, func() { w.failReads(30 * time.Minute) }) },
			moments: []moment{
				{20 * time.Minute, outcome{phase: history.PhaseUnknown, condition: "Progressing=Unknown CannotObserve", message: "not now"}},
				{2 * time.Hour, outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.cluster != nil {
				c.cluster(w)
			}
			cfg := upgradeConfig(upgrade)
			if c.spec != nil {
				c.spec(&cfg.Spec)
			}
			w.create(cfg)
			for _, m := range c.moments {
				w.runTo(m.at)
				w.expect(m.want)
			}
			last := c.moments[len(c.moments)-1]
			if w.RunFor(24 * time.Hour); w.record().Phase != last.want.phase && last.want.finished {
				t.Errorf("the finished upgrade has changed; %s", w.describe())
			}
			if desiredUpdate := w.cluster.ClusterVersion().Spec.DesiredUpdate; last.want.phase == history.PhaseFailed && desiredUpdate != nil && desiredUpdate.Version == desired &&
				w.cluster.ClusterVersion().Status.History[0].Version != desired {
				t.Errorf("the target was not withdrawn; %s", w.describe())
			}
			if last.want.finished && !w.isFinished(upgrade) && !strings.Contains(w.holder(), "UpgradeJob") {
				t.Errorf("something is held; %s", w.describe())
			}
		})
	}
}

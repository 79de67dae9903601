// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

// notified returns how often the Events tell each milestone of an upgrade.
func (w *world) notified() map[string]int {
	notified := map[string]int{}
	for _, e := range w.Events() {
		switch e.Reason {
		case "UpgradeStarted", "UpgradeDelayed", "UpgradeCompleted", "UpgradeFailed":
			notified[e.Reason]++
		}
		for _, step := range []string{"CommenceUpgrade", "ControlPlaneUpgraded", "AllWorkerNodesUpgraded"} {
			if (e.Reason == "StepDone" || e.Reason == "StepSkipped") && len(e.Message) > len(step) && e.Message[:len(step)+1] == step+":" {
				notified[step]++
			}
		}
	}
	return notified
}

// An upgrade whose object is deleted and created again in mid-upgrade is the same upgrade: its record holds what the record
// before held of it, and no milestone is notified twice.
func TestUpgradeIsAdoptedByAnObjectThatIsCreatedAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		until    string        // the step during which the object is deleted
		again    time.Duration // after its deletion
		spec     func(*upgradev1alpha1.UpgradeConfigSpec)
		between  func(*world) // while there is no object
		stripped bool         // another client removes the finalizer
		reached  []string     // besides those before the commit
	}{
		"while the control plane is upgraded": {until: "ControlPlaneUpgraded", again: time.Minute},
		"at another time":                     {until: "ControlPlaneUpgraded", again: time.Minute, spec: newTime(tenPast.Add(24 * time.Hour))},
		"after a restart":                     {until: "ControlPlaneUpgraded", again: time.Minute, between: (*world).Restart},
		"without its finalizer":               {until: "ControlPlaneUpgraded", again: time.Minute, stripped: true},
		"once the control plane is upgraded":  {until: "ControlPlaneUpgraded", again: 2 * time.Hour, reached: []string{"ControlPlaneUpgraded"}},
		"while the workers are upgraded":      {until: "AllWorkerNodesUpgraded", again: time.Minute, reached: []string{"ControlPlaneUpgraded"}},
		"during the health check":             {until: "PostClusterHealthCheck", again: 10 * time.Minute, reached: []string{"ControlPlaneUpgraded"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.ControlPlaneDuration = time.Hour
			if tc.until == "PostClusterHealthCheck" {
				w.After(40*time.Minute, func() { w.cordonWorker(true) })
			}
			w.runUntilStep(tc.until)
			w.RunFor(time.Minute)
			before := w.record()
			if tc.stripped {
				w.removeFinalizers(upgrade)
			}
			w.remove(upgrade)
			w.runUntil(func() bool { return !w.exists(upgrade) })
			w.RunFor(tc.again)
			if tc.between != nil {
				tc.between(w)
			}
			again := upgradeConfig(upgrade)
			if tc.spec != nil {
				tc.spec(&again.Spec)
			}
			w.create(again)
			w.RunFor(10 * time.Second)
			after := w.record()
			for i, step := range after.Conditions {
				if past := i <= slices.IndexFunc(after.Conditions, func(c history.StepCondition) bool { return c.Type == "CommenceUpgrade" }); past || slices.Contains(tc.reached, step.Type) {
					if step.Reason != "AlreadyReached" {
						t.Errorf("step %s: %s: %s", step.Type, step.Reason, step.Message)
					}
				}
			}
			if tc.until == "PostClusterHealthCheck" {
				w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True PostClusterHealthCheck"})
				w.cordonWorker(false)
			}
			w.runUntil(func() bool { return w.isFinished(upgrade) })
			w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
			kept := func(r history.Record) history.Record {
				return history.Record{
					Version: r.Version, PrecedingVersion: r.PrecedingVersion, PrecedingChannel: r.PrecedingChannel, Channels: r.Channels,
					RequestedImage: r.RequestedImage, CommenceTime: r.CommenceTime,
				}
			}
			if r := w.record(); r.Key() != w.get(upgrade).Spec.UpgradeAt || len(r.PreviousAttempts) > 0 {
				t.Errorf("the attempt is that of %s, after %d others", r.Key(), len(r.PreviousAttempts))
			}
			if diff := cmp.Diff(kept(before), kept(w.record())); diff != "" || before.CommenceTime == nil || before.RequestedImage == nil {
				t.Errorf("the record of the object that was created again (-before +after):\n%s\nbefore: %+v", diff, before)
			}
			want := map[string]int{"UpgradeStarted": 1, "UpgradeCompleted": 1, "CommenceUpgrade": 1, "ControlPlaneUpgraded": 1, "AllWorkerNodesUpgraded": 1}
			if diff := cmp.Diff(want, w.notified()); diff != "" {
				t.Errorf("what was notified (-want +got):\n%s", diff)
			}
		})
	}
}

// What the Lease notes of an upgrade without an object is not adopted by an upgrade to another version, nor once another
// update has replaced it.
func TestUpgradeThatContinuesIsNotThatOfAnotherObject(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec    func(*upgradev1alpha1.UpgradeConfigSpec)
		between func(*world)
	}{
		"another version": {spec: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.7" }, between: func(*world) {}},
		"superseded": {spec: func(*upgradev1alpha1.UpgradeConfigSpec) {}, between: func(w *world) {
			w.requestElsewhere("4.4.7")
			w.RunFor(time.Minute)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.ControlPlaneDuration = time.Hour
			w.runUntilStep("ControlPlaneUpgraded")
			w.RunFor(time.Minute)
			commenced := w.record().CommenceTime
			w.remove(upgrade)
			w.runUntil(func() bool { return !w.exists(upgrade) })
			tc.between(w)
			again := upgradeConfig(upgrade, newTime(w.Now().Add(time.Minute)))
			tc.spec(&again.Spec)
			w.create(again)
			w.RunFor(10 * time.Minute)
			if r := w.record(); r.CommenceTime.Equal(commenced) || r.Step("VersionPinned").Reason == "AlreadyReached" {
				t.Errorf("the record is %+v", r)
			}
		})
	}
}

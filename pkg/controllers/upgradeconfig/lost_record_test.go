// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// setIdentity writes the holder's identity into the Lease.
func (w *world) setIdentity(identity string) {
	lease := w.getLease()
	lease.Spec.HolderIdentity = &identity
	w.Update(lease)
}

func TestPresetFinalizerIsNoEvidence(t *testing.T) {
	t.Parallel()
	preset := func() *upgradev1alpha1.UpgradeConfig {
		cfg := upgradeConfig(upgrade)
		cfg.Finalizers = []string{upgradev1alpha1.Finalizer}
		return cfg
	}
	for name, c := range map[string]struct {
		do    func(*world)
		check func(*world)
	}{
		"before its time": {
			do: func(*world) {},
			check: func(w *world) {
				w.expect(outcome{phase: history.PhasePending, condition: "Progressing=False Scheduled"})
			},
		},
		"after its window": {
			do: func(w *world) { w.Jump(tenPast.Add(time.Hour).Sub(w.Now())) },
			check: func(w *world) {
				w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", message: "did not start", finished: true})
			},
		},
		"deleted": {
			do: func(w *world) {
				w.After(time.Second, func() { w.remove(upgrade) })
			},
			check: func(w *world) {
				if w.exists(upgrade) {
					w.TB.Errorf("it is still there; %s", w.describe())
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.cluster.AcceptDelay = 24 * time.Hour
			w.requestElsewhere(desired) // by an administrator
			c.do(w)
			w.create(preset())
			w.RunFor(time.Minute)
			c.check(w)
			if update := w.cluster.ClusterVersion().Spec.DesiredUpdate; update == nil || update.Version != desired {
				t.Errorf("the request of the administrator was changed to %v", update)
			}
			for _, reason := range []string{"UpgradeStarted", "UpgradeFailed", "UpgradeCancelled", "UpgradeContinues", "CancellationAbandoned"} {
				if n := w.events(reason); n > 0 {
					t.Errorf("%d notifications %s of an upgrade that never started", n, reason)
				}
			}
			if w.holder() != "" || w.exists(upgrade) && len(w.get(upgrade).Finalizers) > 0 {
				t.Errorf("something is held; %s", w.describe())
			}
		})
	}
}

func TestLostRecordOfAChangedSpecIsCleanedUpFirst(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*upgradev1alpha1.UpgradeConfigSpec){
		"another version": func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.7" },
		"a later time":    newTime(tenPast.Add(24 * time.Hour)),
		"an unknown type": func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Type = "ARO" },
		"an invalid time": func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = "tomorrow" },
		"a downgrade":     func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.1" },
		"all of it": func(s *upgradev1alpha1.UpgradeConfigSpec) {
			s.Type, s.Desired.Version, s.UpgradeAt = "ARO", "4.4.7", formatTime(tenPast.Add(24*time.Hour))
		},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, upgradeConfig(upgrade))
				w.cluster.AcceptDelay = 6 * time.Hour
				w.runUntilRequested()
				w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) {
					s.Paused = new(true) // to start nothing else
					change(s)
				})
				w.clearStatus(upgrade)
				if restarted {
					w.Restart()
				}
				w.RunFor(time.Minute)
				if update := w.cluster.ClusterVersion().Spec.DesiredUpdate; update != nil || w.holder() != "" || len(w.get(upgrade).Finalizers) > 0 {
					t.Errorf("requested: %v; %s", update, w.describe())
				}
				if got := w.cluster.ClusterVersion().Spec.Channel; got != "stable-4.4" && got != channel {
					t.Errorf("the channel is %q", got)
				}
			})
		}
	}
}

// The Lease of an earlier release names no attempt: it counts for the one whose record was lost.
func TestLostRecordWithTheLeaseOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.AcceptDelay = 24 * time.Hour
	w.runUntilRequested()
	w.Process.Kill()
	lease := w.getLease()
	lease.Annotations = nil
	w.Update(lease)
	w.clearStatus(upgrade)
	w.Jump(2 * time.Hour) // past its window
	w.Begin()
	w.RunFor(time.Minute)
	if update := w.cluster.ClusterVersion().Spec.DesiredUpdate; update != nil || w.holder() != "" || len(w.get(upgrade).Finalizers) > 0 {
		t.Errorf("requested: %v; %s", update, w.describe())
	}
}

// The Lease notes the channel before the upgrade: a lost record does not keep it from being restored.
func TestChannelIsRestoredAlthoughTheRecordWasLost(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*upgradev1alpha1.UpgradeConfigSpec){
		"the same spec":   func(*upgradev1alpha1.UpgradeConfigSpec) {},
		"another channel": func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Channel = "candidate-4.4" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.ChangePools(func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true })
			w.runUntilStep("PreHealthCheck")
			if got := w.cluster.ClusterVersion().Spec.Channel; got != channel {
				t.Fatalf("the channel is %s", got)
			}
			w.Process.Kill()
			w.clearStatus(upgrade)
			w.updateSpec(upgrade, change)
			w.remove(upgrade)
			w.Begin()
			w.runUntil(func() bool { return !w.exists(upgrade) })
			if got := w.cluster.ClusterVersion().Spec.Channel; got != "stable-4.4" {
				t.Errorf("the channel is %s", got)
			}
		})
	}
}

// An attempt whose record was lost, and that the spec no longer requests, is cleaned up, whichever write fails or seems to
// fail, and if the process ends right after that. Only then, what the spec requests by now begins.
func TestLostAttemptThatIsNoLongerRequestedIsCleanedUp(t *testing.T) {
	t.Parallel()
	const next = "4.4.7"
	tomorrow := tenPast.Add(24 * time.Hour)
	for name, tc := range map[string]struct {
		change  func(*upgradev1alpha1.UpgradeConfigSpec)
		deleted bool
		want    string // the release that is requested in the end
	}{
		"postponed":       {change: newTime(tomorrow)},
		"another version": {change: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = next }, want: next},
		"another version, postponed": {change: func(s *upgradev1alpha1.UpgradeConfigSpec) {
			s.Desired.Version, s.UpgradeAt = next, formatTime(tomorrow)
		}},
		"another type":                  {change: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Type = "Other" }},
		"an unknown type":               {change: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Type = "Unknown" }},
		"an unknown type, then deleted": {change: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Type = "Unknown" }, deleted: true},
	} {
		for _, requested := range []bool{false, true} {
			run := func(t *testing.T, plan simulation.FaultPlan) {
				t.Helper()
				w := newWorld(t, upgradeConfig(upgrade))
				w.cluster.AcceptDelay = 6 * time.Hour
				if !requested {
					w.cordonWorker(true)
					w.runUntilStep("PreHealthCheck")
				} else {
					w.runUntilRequested()
				}
				w.Process.Kill()
				w.clearStatus(upgrade)
				w.updateSpec(upgrade, tc.change)
				if tc.deleted {
					w.remove(upgrade)
				}
				w.cordonWorker(false)
				w.Plan, w.Writes, w.requestedVersions = plan, plan, nil
				w.Begin()
				w.RunFor(10 * time.Minute)
				if got := w.requested(); got != tc.want {
					t.Errorf("requested in the end: %q, want %q", got, tc.want)
				}
				if slices.Contains(w.requestedVersions, desired) {
					t.Errorf("what is obsolete is requested again: %q", w.requestedVersions)
				}
				if got := w.cluster.ClusterVersion().Status.History[0].Version; got != installed {
					t.Errorf("the cluster is upgraded to %s", got)
				}
				if held := w.holder() != ""; held != (tc.want != "") {
					t.Errorf("the lock is held: %t; %s", held, w.describe())
				}
			}
			t.Run(fmt.Sprintf("%s, requested: %t", name, requested), func(t *testing.T) {
				t.Parallel()
				simulation.EachFault(t, 6, run)
				t.Run("then restarted", func(t *testing.T) {
					t.Parallel()
					simulation.EachFault(t, 6, func(t *testing.T, plan simulation.FaultPlan) {
						t.Helper()
						run(t, thenRestart(plan))
					}, simulation.Conflict, simulation.LoseAnswer)
				})
			})
		}
	}
}

// thenRestart returns a plan whose process ends at the first request to the API server after a fault.
func thenRestart(plan simulation.FaultPlan) simulation.FaultPlan {
	failed, restarted := false, false
	return func(r simulation.Request) simulation.Fault {
		if failed && !restarted && !r.Cached {
			restarted = true
			return simulation.Fault{Outcome: simulation.CrashBefore}
		}
		fault := plan(r)
		failed = failed || fault.Outcome != simulation.Serve
		return fault
	}
}

// The record and the Lease of an upgrade in progress are lost while the operator is down: the finalizer is all that shows
// that something may be left. It is removed before the finalizer, whatever the spec requests by then.
func TestForgottenUpgradeIsCleanedUp(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*world){
		"its window is over": func(w *world) { w.RunFor(time.Hour) },
		"postponed":          func(w *world) { w.updateSpec(upgrade, newTime(tenPast.Add(24*time.Hour))) },
		"an invalid time": func(w *world) {
			w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = "tomorrow" })
		},
		"at the version": func(w *world) {
			w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = installed })
		},
		"deleted":               func(w *world) { w.remove(upgrade) },
		"deleted hours ago":     func(w *world) { w.remove(upgrade); w.RunFor(time.Hour) },
		"forged to be finished": func(w *world) { w.forgeFinished() },
	} {
		for _, fails := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s, %d failures", name, fails), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, upgradeConfig(upgrade))
				w.cordonWorker(true)
				w.runUntilStep("PreHealthCheck")
				w.Process.Kill()
				w.clearStatus(upgrade)
				w.Delete(w.getLease())
				meanwhile(w)
				w.Begin()
				tries := 0
				w.snapshot.Upgraders = map[string]upgraders.ClusterUpgrader{"OSD": abandoningUpgrader{upgrader: w.snapshot.Upgraders["OSD"], abandon: func(context.Context) error {
					if len(w.get(upgrade).Finalizers) == 0 { //nolint:contextcheck // the world has one of its own
						t.Error("the finalizer is removed before")
					}
					if tries++; tries <= fails {
						return errors.New("the connection was refused")
					}
					return nil
				}}}
				w.RunFor(2 * time.Minute)
				if tries == 0 || fails == 0 && tries > 1 {
					t.Errorf("%d tries", tries)
				}
				if w.holder() != "" || w.exists(upgrade) && len(w.get(upgrade).Finalizers) > 0 {
					t.Errorf("something is held; %s", w.describe())
				}
			})
		}
	}
}

// The steps of an upgrade that ends remove what it leaves.
func TestFinishedUpgradeIsNotAbandoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.snapshot.Upgraders = map[string]upgraders.ClusterUpgrader{"OSD": abandoningUpgrader{upgrader: w.snapshot.Upgraders["OSD"], abandon: func(context.Context) error {
		t.Error("it is abandoned")
		return nil
	}}}
	w.runUntil(func() bool { return w.isFinished(upgrade) && len(w.get(upgrade).Finalizers) == 0 })
}

// forgeFinished replaces the history by an attempt that has ended.
func (w *world) forgeFinished() {
	w.TB.Helper()
	at, now := metav1.NewTime(tenPast.Local()), metav1.NewTime(w.Now().Truncate(time.Second).Local())
	cfg := w.get(upgrade)
	cfg.Status.History = []history.Record{{
		Version: desired, Phase: history.PhaseUpgraded, Attempt: 1, UpgradeAt: &at, StartTime: &now, CompleteTime: &now,
		Reason: "Upgraded", Message: "upgraded to " + desired,
	}}
	w.UpdateStatus(cfg)
}

// forgeStarted replaces the history by an attempt that has just started, as a client with the right
// to write the status can.
func (w *world) forgeStarted() {
	w.TB.Helper()
	clear(w.completions)
	now := metav1.NewTime(w.Now().Truncate(time.Second))
	cfg := w.get(upgrade)
	cfg.Status.History = []history.Record{{Version: desired, Phase: history.PhaseUpgrading, Attempt: 1, StartTime: &now}}
	w.UpdateStatus(cfg)
}

// requested returns the desired update of the cluster; empty if there is none.
func (w *world) requested() string {
	w.TB.Helper()
	version := simulation.Get(w.Harness, clusterstate.VersionKey, &configv1.ClusterVersion{})
	if version.Spec.DesiredUpdate == nil {
		return ""
	}
	return version.Spec.DesiredUpdate.Version
}

// The Lease notes that the update was requested, also if a forged record does not.
func TestRequestIsWithdrawnAfterTheRecordWasForged(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world){
		"the window closes":                   func(w *world) { w.runTo(time.Hour) },
		"the upgrade is held":                 func(w *world) { w.hold("maintenance"); w.RunFor(time.Minute) },
		"the operator restarts and is held":   func(w *world) { w.Restart(); w.hold("maintenance"); w.RunFor(time.Minute) },
		"forged again, and the window closes": func(w *world) { w.forgeStarted(); w.runTo(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 6 * time.Hour
			w.runUntilRequested()
			w.cordonWorker(true) // or the forged attempt would request it again
			w.forgeStarted()
			w.RunFor(time.Minute)
			if got := w.requested(); got != desired {
				t.Fatalf("the desired update is %q before the end", got)
			}
			end(w)
			if got := w.requested(); got != "" {
				t.Errorf("the desired update is still %q; %s", got, w.describe())
			}
		})
	}
}

// The steps of an attempt that has not started are run, whatever another client has written about them.
func TestStepsOfAForgedRecordAreRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.Process.Kill()
	w.cordonWorker(true)
	cfg := w.get(upgrade)
	at := metav1.NewTime(tenPast)
	forged := history.Record{Version: desired, Phase: history.PhasePending, Attempt: 1, UpgradeAt: &at}
	for _, step := range []string{"PreHealthCheck", "CapacityReserved", "VersionPinned"} {
		forged.Conditions = append(forged.Conditions, history.StepCondition{Type: step, Status: metav1.ConditionTrue, Reason: step + "Done", StartTime: &at, CompleteTime: &at})
	}
	cfg.Status.History = []history.Record{forged}
	w.UpdateStatus(cfg)
	w.Begin()
	w.runTo(30 * time.Minute)
	if got := w.requested(); got != "" {
		t.Errorf("%s is requested although a node is cordoned; %s", got, w.describe())
	}
}

func TestLostRecordAfterTheWindow(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]func(*world){
		"record lost":                     func(*world) {},
		"and upgrade paused":              (*world).pause,
		"and cluster unreadable at first": func(w *world) { w.failReads(5 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 6 * time.Hour
			w.runUntilRequested()
			w.clearStatus(upgrade)
			w.Jump(45 * time.Minute) // the machines were suspended
			during(w)
			w.Restart()
			w.runUntil(func() bool { return w.isFinished(upgrade) })
			if got := w.record(); got.Phase != history.PhaseFailed {
				t.Errorf("the phase is %s", got.Phase)
			}
			w.RunFor(12 * time.Hour)
			if w.cluster.ClusterVersion().Spec.DesiredUpdate != nil || w.cluster.ClusterVersion().Status.History[0].Version == desired {
				t.Errorf("the upgrade commences after its end; %s", w.describe())
			}
		})
	}
}

func TestLostRecordKeepsTheLockWhileTheClusterIsUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilStep("ControlPlaneUpgraded")
	w.clearStatus(upgrade)
	w.failReads(7 * time.Minute)
	w.create(upgradeConfig(client.ObjectKey{Namespace: "team-b", Name: "upgrade"}))
	w.RunFor(6 * time.Minute)
	if !strings.Contains(w.holder(), "team-a") {
		t.Errorf("the lock is held by %q; %s", w.holder(), w.describe())
	}
	if got := w.record().Phase; got != history.PhaseUnknown {
		t.Errorf("the phase is %s", got)
	}
	w.runUntil(func() bool { return w.record().CompleteTime != nil })
	if got := w.record().Phase; got != history.PhaseUpgraded {
		t.Errorf("the phase is %s", got)
	}
}

func TestFinalizerWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*upgradev1alpha1.UpgradeConfigSpec)
		phase  history.Phase
	}{
		"unchanged spec":    {change: func(*upgradev1alpha1.UpgradeConfigSpec) {}, phase: history.PhaseUpgraded},
		"postponed":         {change: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(tenPast.Add(24 * time.Hour)) }, phase: history.PhaseUpgraded},
		"unknown type":      {change: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Type = "ARO" }, phase: history.PhaseFailed},
		"downgrade":         {change: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.1" }, phase: history.PhaseFailed},
		"invalid version":   {change: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "latest" }, phase: history.PhaseFailed},
		"installed version": {change: func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = installed }, phase: history.PhaseUpgraded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.Writes = func(r simulation.Request) simulation.Fault { // the lock is acquired and the finalizer set
				if nameOf(r) == "patch UpgradeConfig/status" && w.holder() != "" {
					return simulation.Fault{Outcome: simulation.CrashBefore}
				}
				return simulation.Fault{}
			}
			w.runUntil(func() bool { return w.Lives > 1 })
			w.Writes = nil
			if cfg := w.get(upgrade); len(cfg.Finalizers) == 0 || len(cfg.Status.History) > 0 && cfg.Status.History[0].StartTime != nil {
				t.Fatalf("unexpected state after the crash; %s", w.describe())
			}
			w.updateSpec(upgrade, c.change)
			version := w.get(upgrade).Spec.Desired.Version
			w.runUntil(func() bool {
				return w.isFinished(upgrade) && w.record().Version == version && w.record().Phase == c.phase
			})
		})
	}
}

// A backup of etcd has lower resource versions than what the operator wrote last, so its cache seems to
// be behind for ever: the operator says so after a minute, and the window does not pass.
func TestRestoredBackupIsNotifiedAndDoesNotMissTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runTo(-5 * time.Minute)
	backup := w.Backup()
	w.updateSpec(upgrade, newTime(tenPast.Add(time.Hour)))
	w.runTo(-time.Second)
	w.Restore(backup)
	w.runTo(2 * time.Minute)
	if n := w.events("StateRestored"); n != 1 {
		t.Errorf("%d notifications of the restore; %s", n, w.describe())
	}
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
	if at := w.record().StartTime; at.Sub(tenPast) > 2*time.Minute {
		t.Errorf("the upgrade started at %s", at)
	}
}

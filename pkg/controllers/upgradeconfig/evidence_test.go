// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

func TestUpgradeStartedByAnotherClient(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t, upgradeConfig(upgrade))
		w.cordonWorker(true)
		w.runUntilStep("PreHealthCheck")
		w.requestElsewhere(desired)
		w.runFor(time.Minute)
		return w
	}
	t.Run("it is adopted", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.cordonWorker(false)
		w.runUntil(func() bool { return w.isFinished(upgrade) })
		w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
		if n := w.events("UpgradeFailed"); n > 0 {
			t.Errorf("%d notifications of a failure", n)
		}
	})
	t.Run("it continues without the object", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.remove(upgrade)
		w.runFor(10 * time.Second)
		if w.exists(upgrade) || w.events("UpgradeContinues") != 1 {
			t.Errorf("there: %t; %s", w.exists(upgrade), w.describe())
		}
	})
}

func TestNothingToDo_requires_updated_pools(t *testing.T) {
	t.Parallel()
	t.Run("re-created object", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade))
		w.cluster.WorkersDuration = 3 * time.Hour
		w.runUntilStep("AllWorkerNodesUpgraded")
		w.remove(upgrade)
		w.runUntil(func() bool { return !w.exists(upgrade) })
		w.create(upgradeConfig(upgrade))
		w.runFor(10 * time.Minute)
		w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True AllWorkerNodesUpgraded"})
		w.runUntil(func() bool { return w.isFinished(upgrade) })
		w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
	})
	t.Run("retry after a failure behind the commit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade))
		w.After(25*time.Minute, func() { w.cordonWorker(true) })
		w.runUntil(func() bool { return w.isFinished(upgrade) })
		w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False UnhealthyAfterUpgrade", finished: true})
		failed := w.record()
		w.updateSpec(upgrade, newTime(w.Now().Add(time.Hour)))
		w.runFor(10 * time.Minute)
		w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True PostClusterHealthCheck", message: "worker-0"})
		w.cordonWorker(false)
		w.runUntil(func() bool { return w.isFinished(upgrade) })
		w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
		want := []history.PreviousAttempt{{
			Attempt: 1, UpgradeAt: failed.UpgradeAt, Phase: history.PhaseFailed, Reason: "UnhealthyAfterUpgrade", Message: failed.Message,
			FailedStep: "PostClusterHealthCheck", StartTime: failed.StartTime, CommenceTime: failed.CommenceTime, CompleteTime: failed.CompleteTime,
		}}
		if diff := cmp.Diff(want, w.record().PreviousAttempts); diff != "" || failed.CommenceTime == nil {
			t.Errorf("previous attempts (-want +got):\n%s", diff)
		}
	})
}

func TestRevertedSpecShowsTheFormerUpgradeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runToCompletion()
	before := w.get(upgrade).Status
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version, s.UpgradeAt = "4.4.7", "2026-03-02T12:00:00Z" })
	w.runFor(time.Minute)
	w.expect(outcome{phase: history.PhasePending, condition: "Progressing=False Scheduled", message: "2026-03-02T12:00:00Z"})
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version, s.UpgradeAt = desired, formatTime(tenPast) })
	w.runFor(time.Minute)
	after := w.get(upgrade).Status
	for _, status := range []*v1alpha1.UpgradeConfigStatus{&before, &after} {
		status.ObservedGeneration = 0
		for i := range status.Conditions {
			status.Conditions[i].ObservedGeneration, status.Conditions[i].LastTransitionTime = 0, metav1.Time{}
		}
	}
	byType := cmp.Transformer("byType", func(all []metav1.Condition) map[string]metav1.Condition {
		m := map[string]metav1.Condition{}
		for _, c := range all {
			m[c.Type] = c
		}
		if c := m["Accepted"]; c.Reason == "Valid" { // whether another upgrade is in progress is no longer a question
			c.Message = ""
			m["Accepted"] = c
		}
		return m
	})
	if diff := cmp.Diff(before, after, byType); diff != "" {
		t.Errorf("status (-before +after):\n%s", diff)
	}
}

func TestLockOfAFinishedUpgradeIsBroken(t *testing.T) {
	t.Parallel()
	second := client.ObjectKey{Namespace: "team-b", Name: "upgrade"}
	for name, identity := range map[string]string{
		"identity of this release":     "upgrade.managed.openshift.io/UpgradeConfig/",
		"identity of a former release": "UpgradeConfig/",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(second, func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = installed }))
			w.runUntil(func() bool { all := w.get(second).Status.History; return len(all) > 0 && isFinished(all[0]) })
			w.createLock(nil)
			w.setIdentity(identity + second.String() + "/" + string(w.get(second).UID))
			w.create(upgradeConfig(upgrade))
			w.runTo(time.Minute)
			w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True ControlPlaneUpgraded"})
		})
	}
}

// setIdentity writes the holder's identity into the Lease.
func (w *world) setIdentity(identity string) {
	lease := w.getLease()
	lease.Spec.HolderIdentity = &identity
	w.must(w.client.Update(w.t.Context(), lease))
}

func TestPresetFinalizerIsNoEvidence(t *testing.T) {
	t.Parallel()
	preset := func() *v1alpha1.UpgradeConfig {
		cfg := upgradeConfig(upgrade)
		cfg.Finalizers = []string{v1alpha1.Finalizer}
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
					w.t.Errorf("it is still there; %s", w.describe())
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
			w.runFor(time.Minute)
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

func TestEachAttemptIsNotifiedAlsoIfItsNumberWasLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.Available = nil
	for n := 1; n <= 3; n++ {
		w.runUntil(func() bool { return w.isFinished(upgrade) && w.record().Key() == w.get(upgrade).Spec.UpgradeAt })
		if got := w.events("UpgradeFailed"); got != n {
			t.Errorf("%d notifications of %d failures", got, n)
		}
		w.clearStatus(upgrade)
		w.updateSpec(upgrade, newTime(w.Now().Add(time.Minute).Truncate(time.Second)))
		w.runFor(time.Second)
	}
}

func TestPauseWithdrawsWhatWasRequested(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ hold, release func(*world) }{
		"spec.paused": {
			hold:    (*world).pause,
			release: func(w *world) { w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Paused = nil }) },
		},
		"hold of the cluster": {
			hold:    func(w *world) { w.hold("the storage is migrated") },
			release: func(w *world) { w.hold("") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 5 * time.Minute
			w.runUntilRequested()
			c.hold(w)
			w.runFor(10 * time.Minute)
			if diff := cmp.Diff([]string{desired, ""}, w.requestedVersions); diff != "" {
				t.Errorf("requests while it is held (-want +got):\n%s", diff)
			}
			c.release(w)
			w.runUntil(func() bool { return w.isFinished(upgrade) })
			w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
			if diff := cmp.Diff([]string{desired, "", desired}, w.requestedVersions); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHoldOfTheCluster(t *testing.T) {
	t.Parallel()
	const shown = "held by annotation upgrade.managed.openshift.io/hold of the ClusterVersion: the storage is migrated"
	w := newWorld(t, upgradeConfig(upgrade))
	w.hold("the storage\n is migrated\x07")
	w.runTo(-time.Minute)
	w.expect(outcome{phase: history.PhasePending, condition: "Progressing=False Scheduled", message: shown})
	if n := w.events("UpgradeHeld"); n != 1 {
		t.Errorf("%d notifications before the window opens", n)
	}
	w.expectSeries("held", map[string]float64{"": 1})
	w.runTo(time.Minute)
	w.expect(outcome{phase: history.PhasePending, condition: "Progressing=False Held", message: shown})
	if n := w.events("UpgradeHeld"); n != 1 {
		t.Errorf("%d notifications", n)
	}
	w.runTo(31 * time.Minute)
	w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", message: "the storage is migrated", finished: true})

	w.updateSpec(upgrade, newTime(w.Now()))
	w.hold("")
	w.runUntilStep("ControlPlaneUpgraded")
	w.hold("too late")
	w.runFor(time.Second)
	w.expectSeries("held", map[string]float64{"": 0})
	w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True ControlPlaneUpgraded", message: "no effect once the upgrade has commenced"})
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
}

func TestDeletionReportsTheFailureThatIsBeingCleanedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.ControlPlaneDuration = 3 * time.Hour
	w.runUntilStep("ControlPlaneUpgraded")
	w.requestElsewhere("4.4.7")
	w.runFor(time.Minute)
	if got := w.condition("Succeeded"); !strings.HasPrefix(got, "False Superseded") {
		t.Fatalf("Succeeded is %q; %s", got, w.describe())
	}
	w.remove(upgrade)
	w.runFor(time.Minute)
	if w.exists(upgrade) || w.events("UpgradeFailed") != 1 || w.events("UpgradeContinues") != 0 {
		t.Errorf("there: %t, %d failures, %d continue", w.exists(upgrade), w.events("UpgradeFailed"), w.events("UpgradeContinues"))
	}
}

func TestLostRecordOfAChangedSpecIsCleanedUpFirst(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1alpha1.UpgradeConfigSpec){
		"another version": func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.7" },
		"a later time":    newTime(tenPast.Add(24 * time.Hour)),
		"an unknown type": func(s *v1alpha1.UpgradeConfigSpec) { s.Type = "ARO" },
		"an invalid time": func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = "tomorrow" },
		"a downgrade":     func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.1" },
		"all of it": func(s *v1alpha1.UpgradeConfigSpec) {
			s.Type, s.Desired.Version, s.UpgradeAt = "ARO", "4.4.7", formatTime(tenPast.Add(24*time.Hour))
		},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, upgradeConfig(upgrade))
				w.cluster.AcceptDelay = 6 * time.Hour
				w.runUntilRequested()
				w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) {
					s.Paused = new(true) // so that nothing else is started
					change(s)
				})
				w.clearStatus(upgrade)
				if restarted {
					w.restart()
				}
				w.runFor(time.Minute)
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

func TestRecordOfAFormerReleaseIsNoNewAttempt(t *testing.T) {
	t.Parallel()
	at := toMetaTime(tenPast.Add(-24 * time.Hour))
	for _, phase := range []history.Phase{history.PhaseFailed, history.PhaseUpgraded} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			cfg := upgradeConfig(upgrade)
			cfg.Status.History = []history.Record{{Version: desired, Phase: phase, StartTime: at}} // as the operator of today leaves it
			w := newWorld(t, cfg)
			w.runTo(time.Hour)
			if record := w.record(); record.Phase != phase || record.CompleteTime == nil || record.Key() != cfg.Spec.UpgradeAt {
				t.Errorf("the record is %+v", record)
			}
			if len(w.requestedVersions) > 0 {
				t.Errorf("requests: %q", w.requestedVersions)
			}
			want := "False StepFailed"
			if phase == history.PhaseUpgraded {
				want = "True Upgraded"
			}
			if got := w.condition("Succeeded"); !strings.HasPrefix(got, want) {
				t.Errorf("Succeeded is %q", got)
			}
			if got := w.condition("Accepted"); phase == history.PhaseUpgraded && !strings.HasPrefix(got, "False AlreadyUpgraded") {
				t.Errorf("Accepted is %q", got)
			}
		})
	}
}

func TestStalledUpgradeIsNotified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.ControlPlaneDuration = 3 * time.Hour
	w.runTo(2*time.Hour + time.Minute)
	if got := w.condition("Progressing"); !strings.HasPrefix(got, "True ControlPlaneUpgraded: stalled since 2026-03-01T14:10:2") {
		t.Errorf("Progressing is %q", got)
	}
	if stalled, recovered := w.events("UpgradeStalled"), w.events("UpgradeRecovered"); stalled != 1 || recovered != 0 {
		t.Errorf("%d notifications that it is stalled, %d that it recovered", stalled, recovered)
	}
	w.runToCompletion()
	if stalled, recovered := w.events("UpgradeStalled"), w.events("UpgradeRecovered"); stalled != 1 || recovered != 1 {
		t.Errorf("%d notifications that it was stalled, %d that it recovered", stalled, recovered)
	}
}

func TestFirstScreen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cluster func(*world)
		at      time.Duration
		want    []string // reason and parts of the message, in order
	}{
		"a failed pre-check":    {func(w *world) { w.cordonWorker(true) }, -time.Minute, []string{"Scheduled", "pre-check failed: PreHealthCheck: ", "worker-0", "starts at 2026-03-01T12:10:00Z"}},
		"a pause before":        {(*world).pause, -time.Minute, []string{"Scheduled", "paused by spec.paused", "2026-03-01T12:10:00Z"}},
		"a pause in the window": {(*world).pause, time.Minute, []string{"Paused", "paused by spec.paused", "2026-03-01T12:40:00Z"}},
		"a wait":                {func(w *world) { w.cordonWorker(true) }, time.Minute, []string{"PreHealthCheck", "worker-0", "(until 2026-03-01T12:40:00Z)"}},
		"a failure":             {func(w *world) { w.cordonWorker(true) }, time.Hour, []string{"PreHealthCheck", "failed: ", "worker-0", "to try again, set spec.upgradeAt to another time"}},
		"the lock": {
			func(w *world) {
				w.createLock(&lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"})
			},
			time.Minute,
			[]string{"ClusterLocked", "waiting for the upgrade of UpgradeJob team-b/job", "(until 2026-03-01T12:40:00Z)"},
		},
		"a missed window":   {(*world).pause, time.Hour, []string{"WindowMissed", "did not start by 2026-03-01T12:40:00Z", "paused", "to try again"}},
		"a retried failure": {func(w *world) { w.cordonWorker(true) }, time.Hour, []string{"PreHealthCheck", "failed: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			c.cluster(w)
			w.runTo(c.at)
			rest := w.condition("Progressing")
			for _, part := range c.want {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("%q is not in %q, which is all or the rest of Progressing", part, rest)
				}
				rest = after
			}
		})
	}
}

func TestCommencedUpgradeRecordsItsPrecedingVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.7" }))
	w.cluster.Available = []string{desired, "4.4.7"}
	w.cluster.ChangePools(func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true })
	w.runUntilStep("PreHealthCheck")
	if got := w.record(); got.PrecedingVersion != installed || got.CommenceTime != nil {
		t.Errorf("preceding %q, commenced %v", got.PrecedingVersion, got.CommenceTime)
	}
	w.cluster.ChangeVersion(func(version *configv1.ClusterVersion) { // meanwhile another client upgrades to 4.4.6
		version.Status.History = append([]configv1.UpdateHistory{{Version: desired, State: configv1.CompletedUpdate}}, version.Status.History...)
	})
	w.cluster.ChangeOperator(func(operator *configv1.ClusterOperator) { operator.Status.Versions[0].Version = desired })
	w.cluster.ChangePools(func(p *mcfgv1.MachineConfigPool) {
		p.Spec.Paused = false
		openshift.MarkUpdated(p, desired)
	})
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	got := w.record()
	if got.PrecedingVersion != desired || got.CommenceTime == nil || got.CommenceTime.Before(got.StartTime) || got.CompleteTime.Before(got.CommenceTime) {
		t.Errorf("preceding %q, started %v, commenced %v, completed %v", got.PrecedingVersion, got.StartTime, got.CommenceTime, got.CompleteTime)
	}
	if got.PrecedingChannel == nil || *got.PrecedingChannel != "stable-4.4" {
		t.Errorf("the preceding channel is %v", got.PrecedingChannel)
	}
}

func TestRejectedStatusEndsTheAttempt(t *testing.T) {
	t.Parallel()
	for often, times := range map[string]int{"once": 1, "always": 1 << 30} {
		for _, step := range []string{"VersionPinned", "ControlPlaneUpgraded"} {
			invalid := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("UpgradeConfig").GroupKind(), upgrade.Name,
				field.ErrorList{field.Invalid(field.NewPath("status"), "x", "by this test")})
			t.Run(step+" "+often, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, upgradeConfig(upgrade))
				abandoned := 0
				w.snapshot.Upgraders = map[string]ClusterUpgrader{"OSD": abandoningUpgrader{upgrader: w.snapshot.Upgraders["OSD"], abandon: func(context.Context) error {
					abandoned++
					return nil
				}}}
				w.runUntilStep(step)
				rejected := 0
				w.plan = func(r simulation.Request) simulation.Fault {
					if nameOf(r) == "patch UpgradeConfig/status" && rejected < times {
						rejected++
						return simulation.Fault{Outcome: simulation.Refuse, Err: invalid}
					}
					return simulation.Fault{}
				}
				w.pause()
				w.runFor(20 * time.Minute)
				if w.holder() != "" || len(w.get(upgrade).Finalizers) > 0 || abandoned == 0 {
					t.Errorf("abandoned %d times; %s", abandoned, w.describe())
				}
				if times == 1 {
					w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False StatusInvalid", message: "rejected the status", finished: true})
				}
			})
		}
	}
}

// errTooLarge is the answer of the API server to an object that etcd does not store.
var errTooLarge = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "etcdserver: request is too large"}}

// A status that becomes too large loses its oldest records, and the upgrade continues.
func TestStatus_that_is_too_large_loses_its_oldest_records(t *testing.T) {
	t.Parallel()
	cfg := upgradeConfig(upgrade)
	for i := range 8 {
		at := metav1.NewTime(noon.Add(-time.Duration(i+1) * 24 * time.Hour).Truncate(time.Second).Local())
		cfg.Status.History = append(cfg.Status.History, history.Record{
			Version: fmt.Sprintf("4.3.%d", 20-i), Phase: history.PhaseUpgraded, Attempt: 1, UpgradeAt: &at, StartTime: &at, CompleteTime: &at,
		})
	}
	w := newWorld(t, cfg)
	w.runUntilStep("VersionPinned")
	rejected := 0
	w.plan = func(r simulation.Request) simulation.Fault {
		if nameOf(r) == "patch UpgradeConfig/status" && rejected < 2 {
			rejected++
			return simulation.Fault{Outcome: simulation.Refuse, Err: errTooLarge}
		}
		return simulation.Fault{}
	}
	w.runToCompletion()
	var versions []string
	for _, r := range w.get(upgrade).Status.History {
		versions = append(versions, r.Version)
	}
	if diff := cmp.Diff([]string{desired, "4.3.20"}, versions); diff != "" || w.record().Phase != history.PhaseUpgraded {
		t.Errorf("the records are (-want +got):\n%s\n%s", diff, w.describe())
	}
}

// An object that is too large for anything that the operator adds does not hold the lock.
func TestObject_that_is_too_large_does_not_hold_the_lock(t *testing.T) {
	t.Parallel()
	for name, requests := range map[string][]string{
		"for the finalizer":            {"patch UpgradeConfig"},
		"for the status":               {"patch UpgradeConfig/status"},
		"for the finalizer and status": {"patch UpgradeConfig", "patch UpgradeConfig/status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.runTo(-time.Minute)
			w.plan = func(r simulation.Request) simulation.Fault {
				if r.Key == upgrade && slices.Contains(requests, nameOf(r)) && !r.Time.Before(tenPast) {
					return simulation.Fault{Outcome: simulation.Refuse, Err: errTooLarge}
				}
				return simulation.Fault{}
			}
			w.runFor(20 * time.Minute)
			if w.holder() != "" || w.requested() != "" {
				t.Errorf("the lock is held by %q, and %q is requested; %s", w.holder(), w.requested(), w.describe())
			}
		})
	}
}

// Another client may have made the object invalid for a while: the finalizer is added once it is valid.
func TestObject_that_is_invalid_for_a_while_is_upgraded_afterwards(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("UpgradeConfig").GroupKind(), upgrade.Name,
		field.ErrorList{field.Invalid(field.NewPath("spec"), "x", "by this test")})
	w := newWorld(t, upgradeConfig(upgrade))
	w.runTo(-time.Minute)
	rejected := 0
	w.plan = func(r simulation.Request) simulation.Fault {
		if r.Key == upgrade && nameOf(r) == "patch UpgradeConfig" && rejected < 3 {
			rejected++
			return simulation.Fault{Outcome: simulation.Refuse, Err: invalid}
		}
		return simulation.Fault{}
	}
	w.runFor(20 * time.Minute)
	if rejected != 3 || w.requested() == "" {
		t.Errorf("%d writes were rejected, and %q is requested; %s", rejected, w.requested(), w.describe())
	}
}

// A save that is rejected in the middle of a pass ends the attempt: the pass must not go on.
func TestRejectedStatus_stops_the_pass(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("UpgradeConfig").GroupKind(), upgrade.Name,
		field.ErrorList{field.Invalid(field.NewPath("status"), "x", "by this test")})
	for save := 2; save <= 12; save++ { // the first one starts the attempt
		t.Run(fmt.Sprintf("save %d", save), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			saves, requests := 0, 0
			w.plan = func(r simulation.Request) simulation.Fault {
				switch nameOf(r) {
				case "patch UpgradeConfig/status":
					if saves++; saves == save {
						return simulation.Fault{Outcome: simulation.Refuse, Err: invalid}
					}
				case "patch ClusterVersion":
					if saves >= save {
						requests++
					}
				}
				return simulation.Fault{}
			}
			w.runFor(20 * time.Minute)
			if requests > 0 {
				t.Errorf("the ClusterVersion was patched %d times after the end; %s", requests, w.describe())
			}
			w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False StatusInvalid", message: "rejected the status", finished: true})
		})
	}
}

func TestRunbook_of_another_version_has_no_image_of_the_spec(t *testing.T) {
	t.Parallel()
	cfg := upgradeConfig(upgrade)
	cfg.Spec.Desired.Image, cfg.Spec.Desired.AcceptedRisks = "quay.io/release@sha256:1", []string{"SlowBoots"}
	for version, want := range map[string]v1alpha1.Update{
		cfg.Spec.Desired.Version: cfg.Spec.Desired,
		"4.4.1":                  {Version: "4.4.1", Channel: cfg.Spec.Desired.Channel},
	} {
		if diff := cmp.Diff(want, withRecord(cfg, history.Record{Version: version}).Spec.Desired); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/admission"
)

func TestRetryAfterFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.Available = nil
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	first := w.record()
	if first.Phase != history.PhaseFailed || first.Attempt != 1 || len(first.Conditions) == 0 {
		t.Fatalf("the first attempt is %+v", first)
	}
	later := w.Now().Add(time.Hour)
	w.cluster.Offer(desired)
	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(later) })
	w.RunFor(time.Minute)
	if got := w.record(); got.Phase != history.PhasePending || got.Attempt != 2 || len(got.Conditions) > 0 || got.CompleteTime != nil {
		t.Errorf("the second attempt starts with %+v", got)
	}
	if apimeta.FindStatusCondition(w.get(upgrade).Status.Conditions, upgradev1alpha1.ConditionSucceeded) != nil {
		t.Error("Succeeded still shows the first attempt")
	}
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	if got := w.record(); got.Phase != history.PhaseUpgraded || got.Attempt != 2 || got.PrecedingVersion != installed {
		t.Errorf("the second attempt ends with %+v", got)
	}
	if n := len(w.get(upgrade).Status.History); n != 1 {
		t.Errorf("%d elements in the history", n)
	}
	if n := w.events("UpgradeStarted"); n != 2 {
		t.Errorf("%d notifications that an upgrade has started", n)
	}
}

func TestNextVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runToCompletion()
	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) {
		s.Desired.Version, s.UpgradeAt = "4.4.7", formatTime(w.Now().Add(time.Minute))
	})
	w.runUntil(func() bool { return w.record().Version == "4.4.7" && w.isFinished(upgrade) })
	all := w.get(upgrade).Status.History
	if len(all) != 2 || all[0].Phase != history.PhaseUpgraded || all[0].PrecedingVersion != desired || all[1].Version != desired {
		t.Errorf("the history is %+v", all)
	}

	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = desired }) // and back
	w.RunFor(time.Hour)
	cfg := w.get(upgrade)
	if c := apimeta.FindStatusCondition(cfg.Status.Conditions, upgradev1alpha1.ConditionAccepted); c.Reason != admission.ReasonDowngrade {
		t.Errorf("Accepted is %+v", c)
	}
	if got := cfg.Status.History; len(got) != 2 || got[0].Version != desired || got[0].Phase != history.PhaseUpgraded || got[1].Version != "4.4.7" {
		t.Errorf("the history is %+v", got)
	}
	if cfg.Status.ObservedGeneration != cfg.Generation {
		t.Error("the generation was not observed")
	}
}

func TestHistoryLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Jump(tenPast.Add(time.Hour).Sub(w.Now())) // the window of each is over
	w.create(upgradeConfig(upgrade))
	for i := range 20 {
		w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = fmt.Sprintf("4.5.%d", i) })
		w.RunFor(time.Minute)
	}
	all := w.get(upgrade).Status.History
	if len(all) != 16 || all[0].Version != "4.5.19" || all[15].Version != "4.5.4" {
		t.Errorf("%d elements, from %s to %s", len(all), all[0].Version, all[len(all)-1].Version)
	}
}

// The API server rejects such a change; an older CRD does not. Before the commit, such a spec is also what a
// lost record looks like: the attempt is withdrawn. Afterwards it goes on.
func TestSpecChangeOfTheAttemptInProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		until  func(*world)
		phase  history.Phase
		reason string
	}{
		"before the commit": {func(w *world) { w.cluster.AcceptDelay = 5 * time.Minute; w.runUntilRequested() }, history.PhaseFailed, engine.ReasonCancelled},
		"after the commit":  {func(w *world) { w.runUntilStep("ControlPlaneUpgraded") }, history.PhaseUpgraded, "Upgraded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			c.until(w)
			w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) {
				s.Desired.Version, s.UpgradeAt = "4.4.7", formatTime(tenPast.Add(-24*time.Hour))
			})
			w.runUntil(func() bool { return w.record().Version == "4.4.7" })
			all := w.get(upgrade).Status.History
			if len(all) != 2 || all[1].Version != desired || all[1].Phase != c.phase || all[1].Reason != c.reason {
				t.Errorf("the history is %+v", all)
			}
			if desired := w.cluster.ClusterVersion().Spec.DesiredUpdate; c.phase == history.PhaseFailed && desired != nil {
				t.Errorf("the request stays: %+v", desired)
			}
			w.RunFor(time.Minute)
			w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", finished: true})
		})
	}
}

func TestRevertedSpecShowsTheFormerUpgradeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runToCompletion()
	before := w.get(upgrade).Status
	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) {
		s.Desired.Version, s.UpgradeAt = "4.4.7", "2026-03-02T12:00:00Z"
	})
	w.RunFor(time.Minute)
	w.expect(outcome{phase: history.PhaseNew, condition: "Progressing=False Scheduled", message: "2026-03-02T12:00:00Z"})
	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) {
		s.Desired.Version, s.UpgradeAt = desired, formatTime(tenPast)
	})
	w.RunFor(time.Minute)
	after := w.get(upgrade).Status
	for _, status := range []*upgradev1alpha1.UpgradeConfigStatus{&before, &after} {
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

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// precheck returns the condition PreCheckPassed; empty if it is absent.
func (w *world) precheck() string {
	return w.condition(upgradev1alpha1.ConditionPreCheckPassed)
}

// nodeReady sets whether a node is ready.
func (w *world) nodeReady(is corev1.ConditionStatus) {
	w.cluster.ChangeNode("worker-0", func(node *corev1.Node) { node.Status.Conditions[0].Status = is })
}

// The results of the pre-check of a cluster with an unhealthy node, and of a healthy one.
const (
	precheckFailed = "False PreHealthCheck"
	precheckPassed = "True NothingFound"
)

func TestPreCheckRunsTwoHoursAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) {
		s.UpgradeAt = tenPast.Add(3 * time.Hour).Format(time.RFC3339)
	}))
	w.nodeReady(corev1.ConditionFalse)
	var texts []string
	for _, moment := range []struct {
		before time.Duration // the upgrade
		do     func()
		want   string
	}{
		{2*time.Hour + 6*time.Second, nil, ""},
		{2*time.Hour - 6*time.Second, nil, precheckFailed},
		{2*time.Hour - 7*time.Minute, func() { w.nodeReady(corev1.ConditionTrue) }, precheckFailed},
		{2*time.Hour - 9*time.Minute, nil, precheckPassed},
		{2*time.Hour - 10*time.Minute + 10*time.Second, func() { w.nodeReady(corev1.ConditionFalse) }, precheckPassed},
		{2*time.Hour - 10*time.Minute - 10*time.Second, func() { w.nodeReady(corev1.ConditionTrue) }, precheckFailed},
		{2*time.Hour - 11*time.Minute - 20*time.Second, nil, precheckPassed}, // the next check is a minute after the last one
		{time.Minute, nil, precheckPassed},
		{-time.Minute, nil, ""}, // the upgrade has started
	} {
		w.runTo(3*time.Hour - moment.before)
		got := w.precheck()
		texts = append(texts, got)
		if result, _, _ := strings.Cut(got, ":"); result != moment.want {
			t.Errorf("%s before the upgrade: %q, want %q", moment.before, got, moment.want)
		}
		phase := history.PhasePending
		switch {
		case moment.before > 2*time.Hour: // no gate has been evaluated
			phase = history.PhaseNew
		case moment.before < 0:
			phase = history.PhaseUpgrading
		}
		if got := w.record().Phase; got != phase {
			t.Errorf("%s before the upgrade: phase %s, want %s", moment.before, got, phase)
		}
		if moment.do != nil {
			moment.do()
		}
	}
	golden.Texts(t, "", slices.Compact(texts)...)
	if n := w.events("PreCheckFailed"); n != 1 {
		t.Errorf("%d Events PreCheckFailed", n)
	}
	if n := w.events("PreCheckPassed"); n != 1 {
		t.Errorf("%d Events PreCheckPassed", n)
	}
}

func TestPreCheckRunsOnceAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	calls := 0
	w.snapshot.Upgraders = map[string]upgraders.ClusterUpgrader{"OSD": countingUpgrader{w.snapshot.Upgraders["OSD"], &calls}}
	for range 9 * 60 {
		w.enqueue(upgrade)
		w.RunFor(time.Second)
		if w.precheck() == "" {
			t.Fatal("PreCheckPassed is absent")
		}
	}
	if calls < 9 || calls > 10 {
		t.Errorf("%d checks in nine minutes", calls)
	}
}

// countingUpgrader is an upgrader whose pre-checks of the health are counted.
type countingUpgrader struct {
	upgraders.ClusterUpgrader
	calls *int
}

func (c countingUpgrader) Runbook(attempt upgraders.Attempt) engine.Runbook {
	book := c.ClusterUpgrader.Runbook(attempt)
	for i := range book.Steps {
		if precheck := book.Steps[i].PreCheck; book.Steps[i].Name == "PreHealthCheck" {
			book.Steps[i].PreCheck = func(ctx context.Context, run engine.Run) (engine.Result, error) {
				*c.calls++
				return precheck(ctx, run)
			}
		}
	}
	return book
}

func TestPreCheckDisabled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.snapshot.Config.PreChecks.LeadTime.Duration = 0
	w.runTo(-time.Second)
	if got := w.precheck(); got != "" || w.record().Phase != history.PhaseNew {
		t.Errorf("got %q in phase %s", got, w.record().Phase)
	}
}

func TestPreCheckIsNotifiedAfterACrash(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"still failing":     func(*world) {},
		"passing meanwhile": func(w *world) { w.nodeReady(corev1.ConditionTrue) },
		"no longer due":     func(w *world) { w.snapshot.Config.PreChecks.LeadTime.Duration = time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.nodeReady(corev1.ConditionFalse)
			w.Writes = func(r simulation.Request) simulation.Fault {
				if w.Lives == 1 && nameOf(r) == "create Event" {
					change(w)
					return simulation.Fault{Outcome: simulation.CrashBefore}
				}
				return simulation.Fault{}
			}
			w.runUntil(func() bool { return w.Lives > 1 })
			w.RunFor(10 * time.Second)
			if n := w.events("PreCheckFailed"); n != 1 {
				t.Errorf("%d Events PreCheckFailed", n)
			}
		})
	}
}

func TestPreCheckOfAnotherVersionIsNotNotifiedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.nodeReady(corev1.ConditionFalse)
	w.RunFor(time.Second)
	w.nodeReady(corev1.ConditionTrue)
	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.7" })
	w.RunFor(time.Second)
	if n := w.events("PreCheckFailed"); n != 1 {
		t.Errorf("%d Events PreCheckFailed", n)
	}
}

func TestPreCheckRunsAtOnceAfterASpecChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.RunFor(time.Second)
	w.nodeReady(corev1.ConditionFalse)
	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.PDBForceDrainTimeout = new(int32(1)) })
	w.RunFor(time.Second)
	got := w.precheck()
	golden.Texts(t, "", got)
	if result, _, _ := strings.Cut(got, ":"); result != precheckFailed {
		t.Errorf("got %q", got)
	}
}

func TestInvalidConfigurationIsShown(t *testing.T) {
	t.Parallel()
	degraded := func(w *world) string { return w.condition(upgradev1alpha1.ConditionDegraded) }
	const kept = "True ConfigurationInvalid: the operator configuration is invalid; using the last valid one: "
	w := newWorld(t, upgradeConfig(upgrade))
	for _, moment := range []struct {
		trouble, want string
		events        int
	}{
		{"", "", 0},
		{"alerts.url: is wrong", kept + "alerts.url: is wrong", 1},
		{"webhook.url: is wrong", kept + "webhook.url: is wrong", 2},
		{"", "", 2},
		{"alerts.url: is wrong", kept + "alerts.url: is wrong", 2}, // notified before
	} {
		w.snapshot.ConfigError = moment.trouble
		w.enqueue(upgrade)
		w.RunFor(time.Second)
		if got := degraded(w); got != moment.want {
			t.Errorf("with %q: %q, want %q", moment.trouble, got, moment.want)
		}
		if n := w.events(reasonConfigurationInvalid); n != moment.events {
			t.Errorf("with %q there are %d Events, want %d", moment.trouble, n, moment.events)
		}
	}
	w.runToCompletion()
	if got := degraded(w); got != kept+"alerts.url: is wrong" {
		t.Errorf("after the upgrade: %q", got)
	}
	w.snapshot.ConfigError = ""
	w.enqueue(upgrade)
	w.RunFor(time.Second)
	if got := degraded(w); got != "" {
		t.Errorf("with a valid configuration: %q", got)
	}
}

func TestInvalidConfigurationIsNotifiedAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.snapshot.ConfigError = "alerts.url: is wrong"
	w.Writes = func(r simulation.Request) simulation.Fault {
		if w.Lives == 1 && nameOf(r) == "create Event" {
			w.snapshot.ConfigError = "" // with an invalid one the next life does not start
			return simulation.Fault{Outcome: simulation.CrashBefore}
		}
		return simulation.Fault{}
	}
	w.runUntil(func() bool { return w.Lives > 1 })
	w.RunFor(10 * time.Second)
	if n := w.events(reasonConfigurationInvalid); n != 1 {
		t.Errorf("%d Events", n)
	}
}

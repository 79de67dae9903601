// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// precheck is what the early check shows: its status, reason and message; empty if it is not shown.
func (w *world) precheck() string {
	c := apimeta.FindStatusCondition(w.get(upgrade).Status.Conditions, v1alpha1.ConditionPreCheckPassed)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// nodeReady lets a node become ready or not.
func (w *world) nodeReady(is corev1.ConditionStatus) {
	var node corev1.Node
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: "worker-0"}, &node); err != nil {
		w.t.Fatal(err)
	}
	node.Status.Conditions[0].Status = is
	if err := w.api.Status().Update(w.t.Context(), &node); err != nil {
		w.t.Fatal(err)
	}
	w.dirty[kindOf(&node)] = true
}

// What the early check shows of a cluster that has an ill node, and of one that has not.
const (
	channelNote    = `; VersionPinned: the channel is "stable-4.4"; the upgrade sets it to fast-4.4 when it begins, and only then it is known whether 4.4.6 is offered in it`
	precheckFailed = "False " + "PreHealthCheck: " + "PreHealthCheck: nodes not ready: worker-0" + channelNote
	precheckPassed = "True NothingFound: nothing would block the upgrade now" + channelNote
)

func TestWhatWouldBeInTheWayIsShownTwoHoursAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = tenPast.Add(3 * time.Hour).Format(time.RFC3339) }))
	w.nodeReady(corev1.ConditionFalse)
	for _, moment := range []struct {
		before time.Duration // the upgrade
		do     func()
		want   string
	}{
		{2*time.Hour + 6*time.Second, nil, ""},
		{2*time.Hour - 6*time.Second, nil, precheckFailed},
		{2*time.Hour - 7*time.Minute, func() { w.nodeReady(corev1.ConditionTrue) }, precheckFailed},
		{2*time.Hour - 9*time.Minute, nil, precheckPassed},
		{2*time.Hour - 10*time.Minute, func() { w.nodeReady(corev1.ConditionFalse) }, precheckPassed},
		{2*time.Hour - 10*time.Minute - 10*time.Second, func() { w.nodeReady(corev1.ConditionTrue) }, precheckFailed},
		{2*time.Hour - 11*time.Minute - 20*time.Second, nil, precheckPassed}, // it was not to be asked again before
		{time.Minute, nil, precheckPassed},
		{-time.Minute, nil, ""}, // it has begun
	} {
		w.runTo(3*time.Hour - moment.before)
		if got := w.precheck(); got != moment.want {
			t.Errorf("%s before the upgrade it shows %q, want %q", moment.before, got, moment.want)
		}
		if moment.do != nil {
			moment.do()
		}
	}
	if n := w.events("PreCheckFailed"); n != 1 {
		t.Errorf("%d Events tell of the one thing that was in the way", n)
	}
	if n := w.events("PreCheckPassed"); n != 1 {
		t.Errorf("%d Events tell that nothing is in the way", n)
	}
}

func TestTheEarlyCheckAsksOnceAMinuteHoweverMuchChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	calls := 0
	w.snapshot.Upgraders = map[string]ClusterUpgrader{"OSD": countingUpgrader{w.snapshot.Upgraders["OSD"], &calls}}
	for range 9 * 60 {
		w.queue(upgrade)
		w.runFor(time.Second)
		if w.precheck() == "" {
			t.Fatal("nothing is shown")
		}
	}
	if calls < 9 || calls > 10 {
		t.Errorf("in nine minutes the health was asked for %d times", calls)
	}
}

// countingUpgrader is an upgrader whose health check is counted while it is early.
type countingUpgrader struct {
	ClusterUpgrader
	calls *int
}

func (c countingUpgrader) Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook {
	book := c.ClusterUpgrader.Runbook(cfg)
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

func TestThereIsNoEarlyCheckIfNoneIsWanted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.snapshot.Config.PreChecks.LeadTime.Duration = 0
	w.runTo(-time.Second)
	if got := w.precheck(); got != "" {
		t.Errorf("it shows %q", got)
	}
}

func TestWhatTheEarlyCheckHadFoundIsToldAlsoByTheNextLife(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"if it is still so":      func(*world) {},
		"if it is so no more":    func(w *world) { w.nodeReady(corev1.ConditionTrue) },
		"if it is not asked yet": func(w *world) { w.snapshot.Config.PreChecks.LeadTime.Duration = time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.nodeReady(corev1.ConditionFalse)
			w.plan = func(_ int, what string) answer {
				if w.processes == 1 && what == "create Event" {
					change(w)
					return crashBefore
				}
				return applied
			}
			w.runUntil(func() bool { return w.processes > 1 })
			w.runFor(10 * time.Second)
			if n := w.events("PreCheckFailed"); n != 1 {
				t.Errorf("%d Events tell of what was in the way", n)
			}
		})
	}
}

func TestWhatTheEarlyCheckHadFoundIsNotToldOfAnotherSpec(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.nodeReady(corev1.ConditionFalse)
	w.runFor(time.Second)
	w.nodeReady(corev1.ConditionTrue)
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.7" })
	w.runFor(time.Second)
	if n := w.events("PreCheckFailed"); n != 1 {
		t.Errorf("%d Events tell of what was in the way of one version", n)
	}
}

func TestAChangedUpgradeConfigIsCheckedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runFor(time.Second)
	w.nodeReady(corev1.ConditionFalse)
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.PDBForceDrainTimeout = new(int32(1)) })
	w.runFor(time.Second)
	if got := w.precheck(); got != precheckFailed {
		t.Errorf("it shows %q", got)
	}
}

func TestAnInvalidConfigurationIsShownAlsoAfterTheEnd(t *testing.T) {
	t.Parallel()
	degraded := func(w *world) string {
		c := apimeta.FindStatusCondition(w.get(upgrade).Status.Conditions, v1alpha1.ConditionDegraded)
		if c == nil {
			return ""
		}
		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}
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
		{"alerts.url: is wrong", kept + "alerts.url: is wrong", 2}, // that was told
	} {
		w.snapshot.ConfigError = moment.trouble
		w.queue(upgrade)
		w.runFor(time.Second)
		if got := degraded(w); got != moment.want {
			t.Errorf("with %q it shows %q, want %q", moment.trouble, got, moment.want)
		}
		if n := w.events(reasonConfigurationInvalid); n != moment.events {
			t.Errorf("with %q there are %d Events, want %d", moment.trouble, n, moment.events)
		}
	}
	w.runToCompletion()
	if got := degraded(w); got != kept+"alerts.url: is wrong" {
		t.Errorf("after the upgrade it shows %q", got)
	}
	w.snapshot.ConfigError = ""
	w.queue(upgrade)
	w.runFor(time.Second)
	if got := degraded(w); got != "" {
		t.Errorf("with a valid configuration it shows %q", got)
	}
}

func TestThatAConfigurationWasNotTakenIsToldAlsoByTheNextLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.snapshot.ConfigError = "alerts.url: is wrong"
	w.plan = func(_ int, what string) answer {
		if w.processes == 1 && what == "create Event" {
			w.snapshot.ConfigError = "" // with any other the next one would not start
			return crashBefore
		}
		return applied
	}
	w.runUntil(func() bool { return w.processes > 1 })
	w.runFor(10 * time.Second)
	if n := w.events(reasonConfigurationInvalid); n != 1 {
		t.Errorf("%d Events tell of the configuration that was not taken", n)
	}
}

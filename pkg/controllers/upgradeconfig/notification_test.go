// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// An upgrade whose record and lock were lost ends with nothing to do, and its end is published.
func TestEndWithoutEvidenceIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cordonWorker(false)
	w.runUntilStep("AllWorkerNodesUpgraded")
	w.cordonWorker(true)
	w.runUntilStep("PostClusterHealthCheck")
	w.setLockHolder(&lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "7"})
	down := w.Now().Add(40 * time.Minute)
	w.Writes = simulation.Fault{Outcome: simulation.Refuse}.If(func(r simulation.Request) bool {
		return nameOf(r) == "create Event" && w.Now().Before(down)
	})
	w.clearStatus(upgrade)
	w.RunFor(20 * time.Minute)
	w.Restart()
	w.RunFor(30 * time.Minute)
	w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True AlreadyAtVersion", finished: true})
	if n := w.events("AlreadyAtVersion"); n != 1 {
		t.Errorf("%d notifications of the end", n)
	}
}

// lossyWebhook is a webhook whose queue is lost with its process.
type lossyWebhook struct {
	down      bool
	delivered int // records
}

func (*lossyWebhook) Publish(context.Context, corev1.ObjectReference, engine.Notification) error {
	return nil
}

func (w *lossyWebhook) PublishSteps(context.Context, corev1.ObjectReference, history.Record) error {
	if !w.down {
		w.delivered++
	}
	return nil
}

func (*lossyWebhook) Reset(string) {}

func (w *lossyWebhook) PendingError(string) error {
	if w.down {
		return errors.New("the receiver is down")
	}
	return nil
}

func TestResultIsDeliveredByALaterProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.reconciler.lifecycle.Notifier.Webhook = &lossyWebhook{down: true}
	w.runToCompletion()
	w.RunFor(time.Hour)
	if w.holder() != "" || len(w.get(upgrade).Finalizers) > 0 {
		t.Fatalf("a receiver that is down keeps the lock; %s", w.describe())
	}
	for life, want := range []int{1, 0} {
		w.Restart()
		webhook := &lossyWebhook{}
		w.reconciler.lifecycle.Notifier.Webhook = webhook
		w.RunFor(time.Hour)
		if webhook.delivered != want {
			t.Errorf("life %d delivers %d records, want %d", life+2, webhook.delivered, want)
		}
	}
}

// The clock was ahead when the receiver was last tried in vain.
func TestResultIsDelivered_after_the_clock_was_ahead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	webhook := &lossyWebhook{down: true}
	w.reconciler.lifecycle.Notifier.Webhook = webhook
	w.runToCompletion()
	w.RunFor(10 * time.Minute)
	w.Process.Clock().Step(12 * time.Hour)
	w.RunFor(10 * time.Minute)
	w.Process.Clock().Step(-12 * time.Hour)
	webhook.down = false
	w.RunFor(20 * time.Minute)
	if webhook.delivered == 0 {
		t.Errorf("the result is not delivered; %s", w.describe())
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
		w.RunFor(time.Second)
	}
}

func TestStalledUpgradeIsNotified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.ControlPlaneDuration = 3 * time.Hour
	w.runTo(2*time.Hour + time.Minute)
	if got := w.condition("Progressing"); !strings.HasPrefix(got, "True ControlPlaneUpgraded: slow since 2026-03-01T14:10:2") {
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

// The API server removes Events after an hour; a process that starts later does not repeat them.
func TestSlownessIsNotNotifiedAgainAfterItsEventsAreGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.ControlPlaneDuration = 3 * time.Hour
	w.runTo(2*time.Hour + 20*time.Minute)
	forget := func() {
		w.Must(w.User.DeleteAllOf(t.Context(), &corev1.Event{}, client.InNamespace(upgrade.Namespace)))
		w.Restart()
		w.RunFor(7 * time.Minute)
		if stalled, recovered := w.events("UpgradeStalled"), w.events("UpgradeRecovered"); stalled+recovered > 0 {
			t.Errorf("after %s: %d notifications that it is stalled, %d that it recovered", w.Now().Sub(noon), stalled, recovered)
		}
	}
	forget()
	w.cluster.ChangePools(func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true }) // the workers keep it in progress
	w.runUntilStep("AllWorkerNodesUpgraded")
	w.RunFor(20 * time.Minute)
	if recovered := w.events("UpgradeRecovered"); recovered != 1 {
		t.Errorf("%d notifications that it recovered", recovered)
	}
	forget()
}

func TestMissedWindowIsNotifiedOnceEventsCanBeWritten(t *testing.T) {
	t.Parallel()
	for when, outage := range map[string]time.Duration{"at once": 0, "after three minutes": 3 * time.Minute, "after two hours": 2 * time.Hour, "never": 48 * time.Hour} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Paused = new(true) }))
			end := tenPast.Add(30*time.Minute + outage)
			w.Writes = simulation.Fault{Outcome: simulation.Refuse}.If(func(r simulation.Request) bool {
				return nameOf(r) == "create Event" && w.Now().Before(end)
			})
			w.runUntil(func() bool { return len(w.get(upgrade).Status.History) > 0 && w.record().CompleteTime != nil })
			if late := w.Now().Sub(tenPast.Add(30 * time.Minute)); late > time.Second {
				t.Errorf("the end was recorded %s late", late)
			}
			w.RunFor(25 * time.Hour)
			want := 1
			if outage > 24*time.Hour {
				want = 0
			}
			if got := w.events("WindowMissed"); got != want {
				t.Errorf("%d Events, want %d", got, want)
			}
			if err := w.RunUntil(7*24*time.Hour, func() bool { return false }); !errors.Is(err, simulation.ErrQuiet) {
				t.Errorf("reconciles are still requested: %v", err)
			}
		})
	}
}

func TestUpgradeWithoutEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.Writes = refuse("create Event")
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	record := w.record()
	if record.Phase != history.PhaseUpgraded {
		t.Errorf("the phase is %s; %s", record.Phase, w.describe())
	}
	for _, step := range []string{"StartedNotificationSent", "CompletedNotificationSent"} {
		if c := find(w.get(upgrade).Status.History, desired, 1, step); c == nil || c.Reason != "NotDelivered" {
			t.Errorf("%s: %+v", step, c)
		}
	}
	if held := w.Now().Sub(record.CompleteTime.Time); held > publishTimeout+2*time.Minute {
		t.Errorf("the lock was held for %s after the end", held)
	}
}

// slowWebhook is a webhook whose receiver is down until some time after the end of the upgrade.
type slowWebhook struct {
	w    *world
	down time.Duration
}

func (slowWebhook) Publish(context.Context, corev1.ObjectReference, engine.Notification) error {
	return nil
}

func (slowWebhook) PublishSteps(context.Context, corev1.ObjectReference, history.Record) error {
	return nil
}

func (slowWebhook) Reset(string) {}

func (s slowWebhook) PendingError(string) error {
	if s.w.Now().Before(s.w.record().CompleteTime.Add(s.down)) {
		return errors.New("the receiver is down")
	}
	return nil
}

func TestWebhookReceiverDown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ down, held time.Duration }{
		"up":                {-time.Second, 0},
		"back in a while":   {2 * time.Minute, 2 * time.Minute},
		"down for too long": {24 * time.Hour, publishTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.reconciler.lifecycle.Notifier.Webhook = slowWebhook{w, tc.down}
			w.runToCompletion()
			held := w.Now().Sub(w.record().CompleteTime.Time)
			if held < tc.held || held > tc.held+2*time.Minute {
				t.Errorf("the lock was held for %s after the end, want %s or a little longer", held, tc.held)
			}
		})
	}
}

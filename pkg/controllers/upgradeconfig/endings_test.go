// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// A pending attempt whose cache lags does not end for what the cluster looked like before.
func TestPendingAttemptIsNotEndedByALaggingCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.ControlPlaneDuration = 3 * time.Hour
	w.cluster.ChangeVersion(func(version *configv1.ClusterVersion) { version.Spec.Channel = channel })
	w.pause()
	w.runTo(20 * time.Minute)
	w.lag(20*time.Minute, "ClusterVersion")
	w.requestElsewhere(desired)
	w.runTo(35 * time.Minute)
	if w.isFinished(upgrade) {
		t.Fatalf("it ended on an outdated cache; %s", w.describe())
	}
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
}

// An upgrade whose record and lock were lost ends as one that has nothing to do, and that is published.
func TestEndWithoutEvidenceIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cordonWorker(false)
	w.runUntilStep("AllWorkerNodesUpgraded")
	w.cordonWorker(true)
	w.runUntilStep("PostClusterHealthCheck")
	w.setLockHolder(&lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "7"})
	down := w.Now().Add(40 * time.Minute)
	w.plan = func(r simulation.Request) simulation.Fault {
		if nameOf(r) == "create Event" && w.Now().Before(down) {
			return simulation.Fault{Outcome: simulation.Refuse}
		}
		return simulation.Fault{}
	}
	w.clearStatus(upgrade)
	w.runFor(20 * time.Minute)
	w.restart()
	w.runFor(30 * time.Minute)
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
	w.runFor(time.Hour)
	if w.holder() != "" || len(w.get(upgrade).Finalizers) > 0 {
		t.Fatalf("a receiver that is down keeps the lock; %s", w.describe())
	}
	for life, want := range []int{1, 0} {
		w.restart()
		webhook := &lossyWebhook{}
		w.reconciler.lifecycle.Notifier.Webhook = webhook
		w.runFor(time.Hour)
		if webhook.delivered != want {
			t.Errorf("life %d delivers %d records, want %d", life+2, webhook.delivered, want)
		}
	}
}

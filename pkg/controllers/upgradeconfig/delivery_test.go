// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// receiver receives the notifications of a webhook.
type receiver struct {
	down  bool
	ended map[string]bool // the attempts whose end it knows, by version and key
}

// queue is a webhook whose queue is lost with its process.
type queue struct {
	to      *receiver
	pending bool
}

func (*queue) Publish(context.Context, corev1.ObjectReference, engine.Notification) error { return nil }

func (q *queue) PublishSteps(_ context.Context, _ corev1.ObjectReference, record history.Record) error {
	q.pending = q.pending || q.to.down
	if !q.to.down && record.Finished() {
		q.to.ended[record.Version+" "+record.Key()] = true
	}
	return nil
}

func (*queue) Reset(string) {}

func (q *queue) PendingError(string) error {
	if q.pending && q.to.down {
		return errors.New("the receiver is down")
	}
	return nil
}

// What is undelivered belongs to the object: the end of an attempt is delivered although another one was requested
// before, and the operator was restarted.
func TestEndIsDelivered_although_another_attempt_was_requested(t *testing.T) {
	t.Parallel()
	const next = "4.4.7"
	for name, tc := range map[string]struct {
		fails   bool
		request func(*world) func(*upgradev1alpha1.UpgradeConfigSpec)
		started bool // whether the other attempt starts while the receiver is down
	}{
		"a retry": {fails: true, request: func(w *world) func(*upgradev1alpha1.UpgradeConfigSpec) {
			return newTime(w.Now().Add(24 * time.Hour).Truncate(time.Second))
		}},
		"a retry that starts": {fails: true, started: true, request: func(w *world) func(*upgradev1alpha1.UpgradeConfigSpec) {
			return newTime(w.Now().Truncate(time.Second))
		}},
		"the next version": {started: true, request: func(w *world) func(*upgradev1alpha1.UpgradeConfigSpec) {
			return func(s *upgradev1alpha1.UpgradeConfigSpec) {
				s.Desired.Version = next
				newTime(w.Now().Truncate(time.Second))(s)
			}
		}},
	} {
		for moment, after := range map[string]time.Duration{"at once": 0, "later": time.Hour} {
			t.Run(name+" "+moment, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, upgradeConfig(upgrade))
				if tc.fails {
					w.cluster.Available = nil
				}
				r := &receiver{down: true, ended: map[string]bool{}}
				w.reconciler.lifecycle.Notifier.Webhook = &queue{to: r}
				w.runUntil(func() bool { return w.isFinished(upgrade) })
				ended := w.record()
				w.RunFor(after)
				w.updateSpec(upgrade, tc.request(w))
				w.RunFor(20 * time.Minute)
				if got := w.record(); tc.started != ((got.Version != ended.Version || got.Key() != ended.Key()) && got.StartTime != nil) {
					t.Errorf("the other attempt started at %v; %s", got.StartTime, w.describe())
				}
				w.Restart()
				w.reconciler.lifecycle.Notifier.Webhook = &queue{to: r}
				r.down = false
				w.RunFor(20 * time.Minute)
				if !r.ended[ended.Version+" "+ended.Key()] {
					t.Errorf("the receiver does not know that %s has ended; it knows %v; %s", ended.Version, r.ended, w.describe())
				}
				w.RunFor(25 * time.Hour)
				last := w.record()
				if last.Key() == ended.Key() && last.Version == ended.Version || !last.Finished() {
					t.Errorf("the other attempt is %+v", last)
				}
			})
		}
	}
}

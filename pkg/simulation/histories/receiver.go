// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// receiver receives the notifications of a webhook.
type receiver struct {
	down bool
	// steps contains the steps whose end was delivered (see stepKey).
	steps map[string]bool
	// tell is called for each delivered milestone.
	tell func(attempt, milestone string)
}

// stepKey identifies a step of an attempt.
func stepKey(uid string, r record.Record, step string) string {
	at := ""
	if r.UpgradeAt != nil {
		at = r.UpgradeAt.UTC().Format(time.RFC3339)
	}
	return uid + " " + r.Version + " " + at + " " + step
}

// retryInterval is the delay after a failed delivery.
const retryInterval = 30 * time.Second

// webhook delivers notifications to the receiver. Its queue is lost when its process ends.
type webhook struct {
	world    *simulation.World
	receiver *receiver
	alive    func() bool

	queue  []delivery
	queued map[string]map[string]bool // by UID
	busy   bool
}

// delivery is a pending notification. step is set only for the end of a step, and milestone only if
// that step has succeeded.
type delivery struct{ uid, step, attempt, milestone string }

func (h *runner) newWebhook(env simulation.Env) notify.AsyncPublisher {
	return &webhook{
		world: h.world, receiver: &h.receiver, queued: map[string]map[string]bool{},
		alive: func() bool {
			for _, leader := range h.leaders {
				if leader.Clock() == env.Clock {
					return leader.Alive()
				}
			}
			return false
		},
	}
}

// Publish queues a notification unless it was queued before.
func (w *webhook) Publish(_ context.Context, ref corev1.ObjectReference, n engine.Notification) error {
	w.add(n.ID, delivery{uid: string(ref.UID)})
	return nil
}

func (w *webhook) add(id string, d delivery) {
	if w.queued[d.uid][id] {
		return
	}
	if w.queued[d.uid] == nil {
		w.queued[d.uid] = map[string]bool{}
	}
	w.queued[d.uid][id] = true
	w.queue = append(w.queue, d)
	w.deliverAfter(0)
}

// PublishSteps queues notifications about the steps in the record.
func (w *webhook) PublishSteps(_ context.Context, ref corev1.ObjectReference, r record.Record) error {
	for _, n := range notify.FromRecord(ref, r) {
		d := delivery{uid: string(ref.UID)}
		if n.Class != engine.ClassWaiting && n.Class != engine.ClassUnknown {
			d.step = stepKey(d.uid, r, n.Step)
		}
		if n.Class == engine.ClassDone || n.Class == engine.ClassSkipped {
			d.attempt, d.milestone = stepKey(d.uid, r, ""), string(n.Milestone)
		}
		w.add(n.ID, d)
	}
	return nil
}

// Reset forgets the queued notifications about an object.
func (w *webhook) Reset(uid string) { delete(w.queued, uid) }

// PendingError returns an error if notifications about an object are pending.
func (w *webhook) PendingError(uid string) error {
	for _, d := range w.queue {
		if d.uid == uid {
			return errors.New("the receiver is down")
		}
	}
	return nil
}

func (w *webhook) deliverAfter(d time.Duration) {
	if w.busy {
		return
	}
	w.busy = true
	w.world.After(d, func() {
		w.busy = false
		switch {
		case !w.alive() || len(w.queue) == 0:
		case w.receiver.down:
			w.deliverAfter(retryInterval)
		default:
			for _, d := range w.queue {
				w.receiver.steps[d.step] = true
				if d.milestone != "" {
					w.receiver.tell(d.attempt, d.milestone)
				}
			}
			w.queue = nil
		}
	})
}

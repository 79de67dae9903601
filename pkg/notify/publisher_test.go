// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// fakePublisher records the published notifications and returns err.
type fakePublisher struct {
	name  string
	calls *[]string
	err   error
}

func (t fakePublisher) record(call string) error {
	*t.calls = append(*t.calls, t.name+" "+call)
	return t.err
}

func (t fakePublisher) Publish(_ context.Context, _ corev1.ObjectReference, n engine.Notification) error {
	return t.record(n.ID)
}

func (t fakePublisher) PublishSteps(_ context.Context, _ corev1.ObjectReference, record history.Record) error {
	return t.record(record.Version)
}

func (t fakePublisher) NotifiedTime(corev1.ObjectReference, history.Record, ...engine.Notification) metav1.Time {
	return metav1.Time{}
}
func (t fakePublisher) Reset(uid string)              { _ = t.record("forget " + uid) }
func (t fakePublisher) PendingError(uid string) error { return t.record("delivered " + uid) }

func TestPublisher_waits_for_Events_and_not_for_the_webhook(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for name, tc := range map[string]struct {
		events, webhook error
		none            bool
		want            []string
	}{
		"all is well":             {nil, nil, false, []string{"webhook id", "events id", "webhook 4.4.6", "events 4.4.6", "webhook delivered u", "webhook forget u", "events forget u"}},
		"the webhook is full":     {nil, down, false, []string{"webhook id", "events id", "webhook 4.4.6", "events 4.4.6", "webhook delivered u", "webhook forget u", "events forget u"}},
		"events fail":             {down, nil, false, []string{"webhook id", "events id", "webhook 4.4.6", "events 4.4.6", "webhook delivered u", "webhook forget u", "events forget u"}},
		"no webhook":              {nil, nil, true, []string{"events id", "events 4.4.6", "events forget u"}},
		"no webhook, events fail": {down, nil, true, []string{"events id", "events 4.4.6", "events forget u"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			publisher := notify.MultiPublisher{Events: fakePublisher{"events", &calls, tc.events}, Webhook: fakePublisher{"webhook", &calls, tc.webhook}}
			if tc.none {
				publisher.Webhook = nil
			}
			publishErr := publisher.Publish(t.Context(), corev1.ObjectReference{}, engine.Notification{ID: "id"})
			stepsErr := publisher.PublishSteps(t.Context(), corev1.ObjectReference{}, history.Record{Version: "4.4.6"})
			pendingErr := publisher.PendingError("u")
			publisher.Reset("u")
			if !errors.Is(publishErr, tc.events) || !errors.Is(stepsErr, tc.events) || !errors.Is(pendingErr, tc.webhook) {
				t.Errorf("got %v, %v, %v", publishErr, stepsErr, pendingErr)
			}
			if diff := cmp.Diff(tc.want, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

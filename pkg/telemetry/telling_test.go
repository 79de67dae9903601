// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/telemetry"
)

// teller writes down what it is told, and answers with err.
type teller struct {
	name  string
	calls *[]string
	err   error
}

func (t teller) say(what string) error {
	*t.calls = append(*t.calls, t.name+" "+what)
	return t.err
}

func (t teller) Notify(_ context.Context, _ corev1.ObjectReference, n engine.Notice) error {
	return t.say(n.ID)
}

func (t teller) Tell(_ context.Context, _ corev1.ObjectReference, record history.History) error {
	return t.say(record.Version)
}
func (t teller) Forget(uid string)          { _ = t.say("forget " + uid) }
func (t teller) Delivered(uid string) error { return t.say("delivered " + uid) }

func TestTellingWaitsForTheEventsAndNotForTheWebhook(t *testing.T) {
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
		"there is no webhook":     {nil, nil, true, []string{"events id", "events 4.4.6", "events forget u"}},
		"no webhook, events fail": {down, nil, true, []string{"events id", "events 4.4.6", "events forget u"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			telling := telemetry.Telling{Events: teller{"events", &calls, tc.events}, Webhook: teller{"webhook", &calls, tc.webhook}}
			if tc.none {
				telling.Webhook = nil
			}
			notified := telling.Notify(t.Context(), corev1.ObjectReference{}, engine.Notice{ID: "id"})
			told := telling.Tell(t.Context(), corev1.ObjectReference{}, history.History{Version: "4.4.6"})
			delivered := telling.Delivered("u")
			telling.Forget("u")
			if !errors.Is(notified, tc.events) || !errors.Is(told, tc.events) || !errors.Is(delivered, tc.webhook) {
				t.Errorf("got %v, %v, %v", notified, told, delivered)
			}
			if diff := cmp.Diff(tc.want, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/mock/gomock"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
)

// sent matches the request that sends the notification with this ID.
func sent(id string) gomock.Matcher {
	return gomock.Cond(func(r httpclient.Request) bool {
		var e event.Event
		return r.Method == http.MethodPost && r.ContentType == "application/cloudevents+json; charset=UTF-8" && r.StatusOnly &&
			json.Unmarshal(r.Body, &e) == nil && e.Validate() == nil && e.ID() == id
	})
}

// answer returns the error for a receiver's status code.
func answer(code int, retryAfter time.Duration) error {
	return &httpclient.StatusError{Code: code, RetryAfter: retryAfter}
}

// TestSender_calls declares each expected call of the sender. Any other call fails the test. Time
// is virtual.
func TestSender_calls(t *testing.T) {
	t.Parallel()
	type call struct {
		id  string
		err error
	}
	for name, tc := range map[string]struct {
		sourceErrors int // the number of times that the source is unknown
		publish      []string
		calls        []call
		took         time.Duration // until the last call
	}{
		"without notifications":                   {},
		"one call per notification, in order":     {publish: []string{"a", "b"}, calls: []call{{"a", nil}, {"b", nil}}},
		"published twice":                         {publish: []string{"a", "a"}, calls: []call{{"a", nil}}},
		"failure delays the next notification":    {publish: []string{"a", "b"}, calls: []call{{"a", errors.New("connection refused")}, {"a", nil}, {"b", nil}}, took: time.Second},
		"receiver requests a delay":               {publish: []string{"a"}, calls: []call{{"a", answer(http.StatusServiceUnavailable, time.Minute)}, {"a", nil}}, took: time.Minute},
		"receiver requests a day":                 {publish: []string{"a"}, calls: []call{{"a", answer(http.StatusServiceUnavailable, 24*time.Hour)}, {"a", nil}}, took: 5 * time.Minute},
		"rejected for good":                       {publish: []string{"a", "b"}, calls: []call{{"a", answer(http.StatusUnprocessableEntity, 0)}, {"b", nil}}},
		"rejected credentials are tried again":    {publish: []string{"a"}, calls: []call{{"a", answer(http.StatusUnauthorized, 0)}, {"a", nil}}, took: time.Second},
		"source unknown twice":                    {sourceErrors: 2, publish: []string{"a"}, calls: []call{{"a", nil}}, took: 3 * time.Second},
		"source unknown counts toward the delays": {sourceErrors: 1, publish: []string{"a"}, calls: []call{{"a", errors.New("timeout")}, {"a", nil}}, took: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var wall clock.RealClock // virtual in this test
				sender := NewMockSender(gomock.NewController(t))
				var last time.Time
				var expected []any
				for _, c := range tc.calls {
					expected = append(expected, sender.EXPECT().Do(gomock.Any(), sent(c.id)).DoAndReturn(
						func(context.Context, httpclient.Request) ([]byte, error) { last = wall.Now(); return nil, c.err }))
				}
				gomock.InOrder(expected...)
				failures := tc.sourceErrors
				hook := webhook.New(webhook.Options{Clock: wall, Source: func(context.Context) (string, error) {
					if failures--; failures >= 0 {
						return "", errors.New("no ClusterVersion")
					}
					return "urn:uuid:cluster", nil
				}})
				hook.SetSender(sender)
				start := wall.Now()
				for _, id := range tc.publish {
					if err := hook.Publish(t.Context(), subject, engine.Notification{ID: id, Type: corev1.EventTypeNormal, Reason: "R", Message: "m"}); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- hook.Start(ctx) }()
				wall.Sleep(time.Hour)
				synctest.Wait()
				if err := hook.PendingError("u-1"); err != nil {
					t.Errorf("pending: %v", err)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if len(tc.calls) > 0 {
					if diff := cmp.Diff(tc.took, last.Sub(start)); diff != "" {
						t.Errorf("time until the last call (-want +got):\n%s", diff)
					}
				}
			})
		})
	}
}

// TestSender_of_a_former_receiver_is_not_called replaces the sender while a notification waits for
// its next attempt.
func TestSender_of_a_former_receiver_is_not_called(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var wall clock.RealClock // virtual in this test
		controller := gomock.NewController(t)
		former, next := NewMockSender(controller), NewMockSender(controller)
		hook := webhook.New(webhook.Options{Clock: wall, Source: func(context.Context) (string, error) { return "urn:uuid:cluster", nil }})
		hook.SetSender(former)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- hook.Start(ctx) }()

		former.EXPECT().Do(gomock.Any(), sent("a")).Return(nil, answer(http.StatusBadGateway, 0))
		if err := hook.Publish(t.Context(), subject, engine.Notification{ID: "a", Type: corev1.EventTypeNormal, Reason: "R", Message: "m"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		next.EXPECT().Do(gomock.Any(), sent("a")).Return(nil, nil)
		hook.SetSender(next)
		synctest.Wait()
		if err := hook.PendingError("u-1"); err != nil {
			t.Errorf("pending: %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
)

var subject = corev1.ObjectReference{Kind: "UpgradeConfig", Namespace: "ns", Name: "cluster"}

// receiver records notifications and returns err.
type receiver struct {
	err      error
	notified []notify.ObjectNotification
}

func (r *receiver) Publish(_ context.Context, subject corev1.ObjectReference, n engine.Notification) error {
	r.notified = append(r.notified, notify.ObjectNotification{Subject: subject, Notification: n})
	return r.err
}

func TestSend(t *testing.T) {
	t.Parallel()
	down := errors.New("the connection was refused")
	since := time.Date(2020, 5, 1, 12, 0, 0, 0, time.UTC)
	notYet := func(again time.Duration) engine.Result {
		return engine.WaitFor(again, "NotDelivered", "not sent yet: the connection was refused")
	}
	cases := map[string]struct {
		err   error
		after time.Duration // since the start of the step
		want  engine.Result
	}{
		"sent":                                   {nil, 0, engine.Done("the upgrade has begun")},
		"sent after a while":                     {nil, time.Hour, engine.Done("the upgrade has begun")},
		"the receiver is down":                   {down, 0, notYet(time.Second)},
		"the receiver has been down for a while": {down, time.Minute, notYet(30 * time.Second)},
		"last attempt before the timeout":        {down, 4 * time.Minute, notYet(time.Minute)},
		"skipped at the timeout":                 {down, 5 * time.Minute, engine.Skip("NotDelivered", "not sent within 5m0s: the connection was refused")},
		"skipped after a long pause":             {down, time.Hour, engine.Skip("NotDelivered", "not sent within 5m0s: the connection was refused")},
		"the clock has jumped back":              {down, -time.Hour, notYet(time.Second)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &receiver{err: tc.err}
			begun := notify.ObjectNotification{Subject: subject, Notification: engine.Notification{
				ID: "id-1", Version: "4.4.6", Attempt: 2, Type: notify.Normal, Reason: "UpgradeStarted", Message: "the upgrade has begun",
			}}
			step := notify.Send(r, begun)
			got, err := step(t.Context(), engine.Run{Started: since.Add(-time.Hour), Since: since, Now: since.Add(tc.after)})
			if err != nil || got != tc.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tc.want)
			}
			if diff := cmp.Diff([]notify.ObjectNotification{begun}, r.notified); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

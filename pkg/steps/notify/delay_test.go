// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
)

var delayed = notify.ObjectNotification{Subject: subject, Notification: engine.Notification{ID: "id-1", Type: notify.Warning, Reason: "UpgradeDelayed", Message: "it is late"}}

var errDown = errors.New("down")

func TestDelayKeepAlive(t *testing.T) {
	t.Parallel()
	noon := time.Date(2020, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		after time.Duration // since the start of the upgrade
		err   error
		want  engine.Result
		sent  int
	}{
		"just started":        {0, nil, engine.WaitFor(30*time.Minute, "NotDelayed", "not delayed yet"), 0},
		"almost late":         {29 * time.Minute, nil, engine.WaitFor(time.Minute, "NotDelayed", "not delayed yet"), 0},
		"late":                {30 * time.Minute, nil, engine.Done("it is late"), 1},
		"late, with an error": {time.Hour, errDown, engine.Result{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &receiver{err: tc.err}
			got, err := notify.DelayKeepAlive(r, 30*time.Minute, delayed)(t.Context(), engine.Run{Started: noon, Since: noon, Now: noon.Add(tc.after)})
			if !errors.Is(err, tc.err) || got != tc.want {
				t.Errorf("got %+v, %v, want %+v, %v", got, err, tc.want, tc.err)
			}
			var want []notify.ObjectNotification
			for range tc.sent {
				want = append(want, delayed)
			}
			if diff := cmp.Diff(want, r.notified); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSendIfDelayed(t *testing.T) {
	t.Parallel()
	noon := time.Date(2020, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		before, since time.Duration // from the start of the upgrade to the start of the step, and from there until now
		err           error
		want          engine.Result
		sent          int
	}{
		"it commenced in time":                    {29 * time.Minute, 0, nil, engine.Skip("NotDelayed", "the upgrade commenced in time"), 0},
		"it did, and the operator was down since": {29 * time.Minute, time.Hour, nil, engine.Skip("NotDelayed", "the upgrade commenced in time"), 0},
		"not in time":                             {30 * time.Minute, 0, nil, engine.Done("it is late"), 1},
		"not in time, not delivered":              {time.Hour, 0, errors.New("down"), engine.WaitFor(time.Second, "NotDelivered", "not sent yet: down"), 1},
		"not delivered for five hours":            {time.Hour, 5 * time.Hour, errors.New("down"), engine.Skip("NotDelivered", "not sent within 5m0s: down"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &receiver{err: tc.err}
			since := noon.Add(tc.before)
			got, err := notify.SendIfDelayed(r, 30*time.Minute, delayed)(t.Context(), engine.Run{Started: noon, Since: since, Now: since.Add(tc.since)})
			if err != nil || got != tc.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tc.want)
			}
			if len(r.notified) != tc.sent {
				t.Errorf("sent %v, want %d notifications", r.notified, tc.sent)
			}
		})
	}
}

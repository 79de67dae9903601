// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"errors"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
)

func TestNoticeKeepAlive(t *testing.T) {
	t.Parallel()
	errRead := errors.New("the connection was refused")
	for name, tc := range map[string]struct {
		notice *notify.ObjectNotification
		failed error // the error of the read or the delivery
		want   engine.Result
		sent   int
	}{
		"nothing to say":           {nil, nil, engine.Done("there is nothing to say"), 0},
		"something to say":         {&delayed, nil, engine.Done("it is late"), 1},
		"something to say, failed": {&delayed, errDown, engine.Result{}, 1},
		"not known":                {nil, errRead, engine.Result{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &receiver{err: tc.failed}
			notice := func(context.Context) (*notify.ObjectNotification, error) {
				if tc.notice == nil {
					return nil, tc.failed
				}
				return tc.notice, nil
			}
			got, err := notify.NoticeKeepAlive(r, notice)(t.Context(), engine.Run{})
			if !errors.Is(err, tc.failed) || got != tc.want || len(r.notified) != tc.sent {
				t.Errorf("got %+v, %v and %d notifications", got, err, len(r.notified))
			}
		})
	}
}

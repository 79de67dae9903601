// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
)

// failingSender fails until it has no errors left.
type failingSender struct {
	errs     []error
	accepted int
}

// Do accepts a notification or returns the next error.
func (s *failingSender) Do(context.Context, httpclient.Request) ([]byte, error) {
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return nil, err
	}
	s.accepted++
	return nil, nil
}

func TestFlush_delivers_until_an_attempt_fails(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	sender := &failingSender{errs: []error{down}}
	w := webhook.New(webhook.Options{
		Source: func(context.Context) (string, error) { return "cluster", nil },
		Clock:  testclock.NewFakeClock(noon), Log: logr.Discard(),
	})
	w.SetSender(sender)
	ref := corev1.ObjectReference{Kind: "UpgradeConfig", Name: "example", UID: "uid"}
	for _, id := range []string{"first", "second"} {
		if err := w.Publish(t.Context(), ref, engine.Notification{ID: id, Milestone: engine.MilestoneStarted}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context()); !errors.Is(err, down) || w.PendingError("uid") == nil {
		t.Errorf("a receiver that is down: got %v and pending %v, want %v and an error", err, w.PendingError("uid"), down)
	}
	if err := w.Flush(t.Context()); err != nil || sender.accepted != 2 || w.PendingError("uid") != nil {
		t.Errorf("the receiver is back: got %v, %d accepted, pending %v; want 2 accepted and no error", err, sender.accepted, w.PendingError("uid"))
	}
}

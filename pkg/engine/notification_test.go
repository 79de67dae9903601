// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// A receiver that was notified by an earlier release recognizes the repetition by this one.
func TestNotificationID_is_stable(t *testing.T) {
	t.Parallel()
	if got, want := engine.NotificationID("39fbb566-06b0", "2026-03-01T12:00:00Z", "4.4.6 PreHealthCheck", "True"), "a6e3122e485b714b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNotificationID_is_unique(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, id := range []string{
		engine.NotificationID("a", "1", "Step", "True"), engine.NotificationID("b", "1", "Step", "True"), engine.NotificationID("a", "2", "Step", "True"),
		engine.NotificationID("a", "1", "Step", "False"), engine.NotificationID("a", "1", "Steps", "True"), engine.NotificationID("a", "1", "StepTrue", ""),
		engine.NotificationID("a1", "1", "Step", "True"), engine.NotificationID("a", "11", "Step", "True"), engine.NotificationID("a 1", "1", "Step", "True"), engine.NotificationID("a", "1", "1 Step", "True"),
	} {
		if other, is := seen[id]; is {
			t.Errorf("number %d has the ID of number %d", i, other)
		}
		seen[id] = i
	}
}

func TestNotificationID_differs_by_attempt_and_version(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range []engine.AttemptRef{{Version: "4.4.6", Key: "1"}, {Version: "4.4.6", Key: "2"}, {Version: "4.4.7", Key: "1"}, {Version: "4.4.7", Key: "11"}} {
		if seen[s.ID()] {
			t.Errorf("%s is the key of two", s.ID())
		}
		seen[s.ID()] = true
	}
}

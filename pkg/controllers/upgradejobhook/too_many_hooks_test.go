// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package upgradejobhook_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// If an event selects too many hooks, 48 run, because their results fit into a step. The others
// fail with a message that says what to do. Each of them determines whether this aborts the
// upgrade.
func TestTooManyHooks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("fifty Jobs take seconds")
	}
	const hooks, run = 50, 48
	w := newWorld(t, newUpgrade("upgrade", nil))
	for i := range hooks {
		w.Create(newHook(fmt.Sprintf("hook-%02d", i), exits0, maintenancev1beta1.EventStart))
	}
	w.Begin()
	record := w.runUntil("upgrade", 20*time.Hour)
	if len(w.created) != run {
		t.Errorf("%d Jobs were created, want %d", len(w.created), run)
	}
	step := record.Step("StartHooksDone")
	failed := 0
	for _, item := range step.Items {
		if strings.HasPrefix(item.Message, "TooManyHooks: 50 hooks select the event, and at most 48 run; combine hooks") {
			failed++
		}
	}
	if failed != hooks-run || step.CompleteTime == nil || !strings.Contains(step.Message, "2 failed") {
		t.Errorf("%d hooks have failed so, want %d; the step: %s %s: %s\n%+v", failed, hooks-run, step.Status, step.Reason, step.Message, step.Items)
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
)

// TestEvents checks the Events of an update at each stage.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("shop")
	w.Begin()
	w.RunFor(time.Minute)
	expect := func(step string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, w.takeEvents()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	const progressing = "Normal UpdateProgressing: The update from 4.4.5 to 4.4.6 is progressing."
	expect("an idle cluster")
	w.update()
	w.RunFor(time.Minute)
	expect("an update has begun", progressing)
	w.answer(w.reports("shop", updatev1beta1.LevelWarning, "slow"))
	w.RunFor(time.Minute)
	expect("a warning")
	w.answer(w.reports("shop", updatev1beta1.LevelError, "disk"))
	w.RunFor(time.Minute)
	expect("an error, which is no reason to be stuck", "Warning InsightReported: Summary of disk (error of shop)")
	for range 40 {
		w.answer(w.reports("shop", updatev1beta1.LevelError, "disk"))
		w.RunFor(15 * time.Second)
	}
	expect("ten minutes with the same error")
	w.restart()
	w.RunFor(time.Minute)
	expect("a restart")
	w.answer(insight.Answer{Informer: "shop", Result: insight.Unreachable, Reason: updatev1beta1.ReasonTimeout, Message: "no answer"})
	w.RunFor(time.Minute)
	expect("an informer that does not answer")
	w.answer(w.reports("shop", updatev1beta1.LevelError))
	w.RunFor(2 * time.Minute)
	expect("the error is resolved", "Normal InsightResolved: Summary of disk: resolved (informer shop)")
	w.answer(w.reports("shop", updatev1beta1.LevelError, "disk"))
	w.RunFor(time.Minute)
	expect("the error is back", "Warning InsightReported: Summary of disk (error of shop)")
	w.answer(insight.Answer{Informer: "shop", Result: insight.Disabled})
	w.RunFor(2 * time.Minute)
	expect("the informer is disabled",
		"Normal InsightResolved: Summary of disk: no longer reported, because informer shop was disabled or deleted")
	w.RunFor(90 * time.Minute)
	expect("nothing has changed for an hour and a half", "Warning UpdateStuck: The control plane has made no progress")
}

// TestEvents_of_one_change_are_bounded reports twenty errors at the same time.
func TestEvents_of_one_change_are_bounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("shop")
	w.Begin()
	w.update()
	w.RunFor(time.Minute)
	w.takeEvents()
	var uids []string
	for n := range 20 {
		uids = append(uids, fmt.Sprintf("uid-%02d", n))
	}
	w.answer(w.reports("shop", updatev1beta1.LevelError, uids...))
	w.RunFor(time.Minute)
	if n := len(w.takeEvents()); n != 10 {
		t.Errorf("%d Events", n)
	}
}

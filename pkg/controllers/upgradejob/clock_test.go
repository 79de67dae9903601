// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"strings"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
)

// An attempt that was requested while the clock of the operator was ahead has a window of that clock. It
// waits for the window once the clock is right, says until when, and is cancelled by a deletion.
func TestRetry_while_the_clock_is_ahead(t *testing.T) {
	t.Parallel()
	const ahead = 3 * time.Hour
	for name, tc := range map[string]struct {
		event   maintenancev1beta1.HookEvent // of a hook while the clock is set back
		step    string
		message string
		locked  bool
	}{
		"set back before the start":  {maintenancev1beta1.EventCreate, "CreateHooksDone", "starts at ", false},
		"set back before the commit": {maintenancev1beta1.EventUpgradeStart, "UpgradeStartHooksDone", "the window opens at ", true},
	} {
		for then, deleted := range map[string]bool{"": false, ", and deleted": true} {
			t.Run(name+then, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.cluster.Rejection = "the signature is missing"
				w.Create(newJob(delayWorker("30m", "2h")))
				w.untilEnded()
				w.cluster.Rejection = ""
				w.cluster.ReportHealthy()
				w.Create(hook("slow", maintenancev1beta1.HookFailureIgnore, map[string]string{kubelet.Duration: "10m"}, tc.event))
				commits := w.commits

				w.Process.Clock().Step(ahead)
				w.annotate(maintenancev1beta1.RetryAnnotation, "again")
				w.untilStep(tc.step)
				w.Process.Clock().Step(-ahead)
				w.RunFor(20 * time.Minute)
				opens := w.record().UpgradeAt.UTC().Format(time.RFC3339)
				if locked := w.lockHolder() != ""; !strings.HasPrefix(w.message(), tc.message+opens) || locked != tc.locked || w.commits != commits {
					t.Errorf("locked: %t, %d requests, %s", locked, w.commits-commits, w.describe())
				}
				if deleted {
					w.deleteJob(time.Minute)
					if w.workers().Spec.Paused || w.commits != commits {
						t.Errorf("after the deletion, the pool is paused: %t, %d requests", w.workers().Spec.Paused, w.commits-commits)
					}
					return
				}
				w.untilEnded()
				if w.record().Phase != history.PhaseUpgraded || w.record().CommenceTime.Before(w.record().UpgradeAt) {
					t.Errorf("it commenced at %s; %s", w.record().CommenceTime, w.describe())
				}
			})
		}
	}
}

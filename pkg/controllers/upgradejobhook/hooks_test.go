// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package upgradejobhook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

var allEvents = []maintenancev1beta1.HookEvent{
	maintenancev1beta1.EventCreate, maintenancev1beta1.EventStart, maintenancev1beta1.EventUpgradeStart, maintenancev1beta1.EventUpgradeComplete,
	maintenancev1beta1.EventMachineConfigPoolUnpause, maintenancev1beta1.EventMachineConfigPoolUpdated,
	maintenancev1beta1.EventSuccess, maintenancev1beta1.EventFailure, maintenancev1beta1.EventSkip, maintenancev1beta1.EventFinish,
}

func TestHooks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hooks   []*maintenancev1beta1.UpgradeJobHook
		upgrade string            // its name
		labels  map[string]string // of the UpgradeJob
		pools   []string
		created map[string]int
		steps   map[string]string
	}{
		"no hooks": {
			steps: map[string]string{"StartHooksDone": "NoHooks", "FinishHooksDone": "NoHooks"},
		},
		"every event of a success": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{newHook("a", exits0, allEvents...)}, pools: []string{"day", "night"},
			created: map[string]int{
				"upgrade: Create/a": 1, "upgrade: Start/a": 1, "upgrade: UpgradeStart/a": 1, "upgrade: UpgradeComplete/a": 1,
				"upgrade: MachineConfigPoolUnpause/day/a": 1, "upgrade: MachineConfigPoolUpdated/day/a": 1,
				"upgrade: MachineConfigPoolUnpause/night/a": 1, "upgrade: MachineConfigPoolUpdated/night/a": 1,
				"upgrade: Success/a": 1, "upgrade: Finish/a": 1,
			},
			steps: map[string]string{
				"CreateHooksDone": "Done [Create/a Succeeded]",
				"DelayedPoolsUpdated": "Done [MachineConfigPoolUnpause/day Completed] [MachineConfigPoolUpdated/day Completed]" +
					" [MachineConfigPoolUnpause/night Completed] [MachineConfigPoolUpdated/night Completed]",
			},
		},
		"every event of a failure": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{newHook("a", exits0, allEvents...)}, upgrade: "broken",
			created: map[string]int{
				"broken: Create/a": 1, "broken: Start/a": 1, "broken: UpgradeStart/a": 1, "broken: UpgradeComplete/a": 1,
				"broken: Failure/a": 1, "broken: Finish/a": 1,
			},
		},
		"several hooks run at a time": {
			hooks:   []*maintenancev1beta1.UpgradeJobHook{newHook("b", takes10m, maintenancev1beta1.EventStart), newHook("a", exits0, maintenancev1beta1.EventStart)},
			created: map[string]int{"upgrade: Start/a": 1, "upgrade: Start/b": 1},
			steps:   map[string]string{"StartHooksDone": "Done [Start/a Succeeded] [Start/b Succeeded]"},
		},
		"a failure is ignored": {
			hooks:   []*maintenancev1beta1.UpgradeJobHook{newHook("a", exits1, maintenancev1beta1.EventStart), newHook("b", exits0, maintenancev1beta1.EventStart)},
			created: map[string]int{"upgrade: Start/a": 1, "upgrade: Start/b": 1},
			steps: map[string]string{
				"StartHooksDone":  "Done [Start/a Failed: BackoffLimitExceeded] [Start/b Succeeded]",
				"PostHealthCheck": "Done",
			},
		},
		"a failure aborts": {
			hooks:   []*maintenancev1beta1.UpgradeJobHook{aborting(newHook("a", exits1, maintenancev1beta1.EventStart))},
			created: map[string]int{"upgrade: Start/a": 1},
			steps: map[string]string{
				"StartHooksDone":   "HookFailed [Start/a Failed: BackoffLimitExceeded]",
				"UpgradeCommenced": "", "FailureHooksDone": "NoHooks",
			},
		},
		"a failure aborts although another hook runs": {
			hooks:   []*maintenancev1beta1.UpgradeJobHook{aborting(newHook("a", exits1, maintenancev1beta1.EventStart)), newHook("b", neverEnds, maintenancev1beta1.EventStart)},
			created: map[string]int{"upgrade: Start/a": 1, "upgrade: Start/b": 1},
			steps: map[string]string{
				"StartHooksDone": "HookFailed [Start/a Failed: BackoffLimitExceeded] [Start/b Running]",
			},
		},
		"a failure for a pool aborts": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{aborting(newHook("a", exits1, maintenancev1beta1.EventMachineConfigPoolUpdated))}, pools: []string{"night"},
			created: map[string]int{"upgrade: MachineConfigPoolUpdated/night/a": 1},
			steps: map[string]string{
				"DelayedPoolsUpdated": "HookFailed [MachineConfigPoolUpdated/night/a Failed: BackoffLimitExceeded]",
				"PostHealthCheck":     "",
			},
		},
		"a failure after the outcome aborts nothing": {
			hooks:   []*maintenancev1beta1.UpgradeJobHook{aborting(newHook("a", exits1, maintenancev1beta1.EventSuccess))},
			created: map[string]int{"upgrade: Success/a": 1},
			steps: map[string]string{
				"SuccessHooksDone": "Done [Success/a Failed: BackoffLimitExceeded]",
			},
		},
		"selector that matches": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{selecting(newHook("a", exits0, maintenancev1beta1.EventStart), map[string]string{"upgrade-config": "x"})}, labels: map[string]string{"upgrade-config": "x"},
			created: map[string]int{"upgrade: Start/a": 1},
		},
		"selector that does not match": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{selecting(newHook("a", exits0, maintenancev1beta1.EventStart), map[string]string{"upgrade-config": "y"})}, labels: map[string]string{"upgrade-config": "x"},
			steps: map[string]string{"StartHooksDone": "NoHooks"},
		},
		"ServiceAccount that is not allowed": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{newHook("a", `{"template":{"spec":{"serviceAccountName":"admin","containers":[{"name":"a","image":"a"}]}}}`, maintenancev1beta1.EventStart)},
			steps: map[string]string{
				"StartHooksDone": "Done [Start/a Failed: ServiceAccountNotAllowed]",
			},
		},
		"template that the API server rejects": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{aborting(newHook("a", `{"template":{"spec":{"containers":[{"name":"a"}]}}}`, maintenancev1beta1.EventStart))},
			steps: map[string]string{"UpgradeCommenced": ""},
		},
		"template that is not an object": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{newHook("a", `{"template":{"spec":[]}}`, maintenancev1beta1.EventStart)},
			steps: map[string]string{
				"StartHooksDone": "Done [Start/a Failed: InvalidTemplate]",
			},
		},
		"UpgradeJob that is too large": {
			hooks: []*maintenancev1beta1.UpgradeJobHook{newHook("a", exits0, maintenancev1beta1.EventStart)}, labels: map[string]string{"large": strings.Repeat("a", 100<<10)},
			steps: map[string]string{
				"StartHooksDone": "Done [Start/a Failed: EnvironmentTooLarge]",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pools = tc.pools
			for _, hook := range tc.hooks {
				w.Create(hook)
			}
			if tc.upgrade == "" {
				tc.upgrade = "upgrade"
			}
			w.Create(newUpgrade(tc.upgrade, tc.labels))
			w.Begin()
			record := w.runUntil(tc.upgrade, 20*time.Hour)
			if tc.created == nil {
				tc.created = map[string]int{}
			}
			if diff := cmp.Diff(tc.created, w.created); diff != "" {
				t.Errorf("created Jobs (-want +got):\n%s", diff)
			}
			w.expect(record, tc.steps)
		})
	}
}

func TestNext_hook_runs_for_one_upgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, next(newHook("once", exits0, maintenancev1beta1.EventStart, maintenancev1beta1.EventFinish)), newHook("always", exits0, maintenancev1beta1.EventFinish))
	w.Create(newUpgrade("first", nil))
	w.Begin()
	w.runUntil("first", time.Hour)
	w.Create(newUpgrade("second", nil))
	w.runUntil("second", time.Hour)
	want := map[string]int{"first: Start/once": 1, "first: Finish/once": 1, "first: Finish/always": 1, "second: Finish/always": 1}
	if diff := cmp.Diff(want, w.created); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	job := simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: "first"}, &maintenancev1beta1.UpgradeJob{})
	if diff := cmp.Diff(&maintenancev1beta1.HookClaim{Name: "first", UID: string(job.UID)}, w.hook("once").Status.ClaimedBy); diff != "" {
		t.Errorf("claimed by (-want +got):\n%s", diff)
	}
}

// A hook for the next upgrade is claimed by the UID of an UpgradeJob, so a re-created UpgradeJob of
// the same name does not run it.
func TestNext_hook_is_claimed_by_UID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, next(newHook("once", exits0, maintenancev1beta1.EventStart)), newHook("always", exits0, maintenancev1beta1.EventFinish))
	hook := w.hook("once")
	hook.Status.ClaimedBy = &maintenancev1beta1.HookClaim{Name: "first", UID: "former"}
	w.UpdateStatus(hook)
	w.Create(newUpgrade("first", nil))
	w.Begin()
	w.runUntil("first", time.Hour)
	if diff := cmp.Diff(map[string]int{"first: Finish/always": 1}, w.created); diff != "" {
		t.Errorf("created Jobs (-want +got):\n%s", diff)
	}
}

// A hook for the next upgrade stays available if it could not run for the first one.
func TestNext_hook_that_cannot_run_is_not_used_up(t *testing.T) {
	t.Parallel()
	w := newWorld(t, next(newHook("once", exits0, maintenancev1beta1.EventStart)))
	w.Create(newUpgrade("first", map[string]string{"large": strings.Repeat("a", 100<<10)}))
	w.Begin()
	if got := step(w.runUntil("first", time.Hour), "StartHooksDone"); !strings.Contains(got, "EnvironmentTooLarge") {
		t.Fatalf("the hook could run: %s", got)
	}
	if by := w.hook("once").Status.ClaimedBy; by != nil {
		t.Errorf("the hook is claimed by %+v", by)
	}
	w.Create(newUpgrade("second", nil))
	w.runUntil("second", time.Hour)
	if diff := cmp.Diff(map[string]int{"second: Start/once": 1}, w.created); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

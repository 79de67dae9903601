// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// jobs returns the UpgradeJobs, the earliest first.
func (w *world) jobs() []maintenancev1beta1.UpgradeJob {
	w.TB.Helper()
	list := simulation.List(w.Harness, &maintenancev1beta1.UpgradeJobList{})
	slices.SortFunc(list.Items, func(a, b maintenancev1beta1.UpgradeJob) int {
		return strings.Compare(string(a.Spec.StartAfter), string(b.Spec.StartAfter))
	})
	return list.Items
}

// daily returns an UpgradeConfig whose slots begin at 14:00.
func daily(edits ...func(*maintenancev1beta1.UpgradeJob)) *maintenancev1beta1.UpgradeConfig {
	return &maintenancev1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "daily"},
		Spec: maintenancev1beta1.UpgradeConfigSpec{
			Schedule: maintenancev1beta1.UpgradeConfigSchedule{Cron: "0 14 * * *", Location: "UTC"}, PinVersionWindow: new(maintenancev1beta1.Duration("30m")),
			MaxUpgradeStartDelay: "1h",
			JobTemplate:          maintenancev1beta1.UpgradeJobTemplate{Spec: maintenancev1beta1.UpgradeJobTemplateSpec{Config: newJob(edits...).Spec.Config}},
		},
	}
}

// TestSlots serves three daily slots, with a hook, a delayed pool, and an operator that ends in the
// second one.
func TestSlots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(hook("notify", maintenancev1beta1.HookFailureAbort, nil, maintenancev1beta1.EventStart))
	w.Create(daily(delayWorker("1h", "2h")))
	for day, version := range []string{"4.4.6", "4.4.7", "4.4.8"} {
		w.cluster.Offer(version)
		slot := startAfter.AddDate(0, 0, day)
		w.RunTo(slot.Add(-time.Minute))
		if day == 1 {
			w.RunTo(slot.Add(10 * time.Minute)) // committed
			w.Process.Kill()
			w.RunTo(slot.Add(90 * time.Minute)) // the pool is overdue
			w.Begin()
		}
		w.RunTo(slot.Add(4 * time.Hour))
		jobs := w.jobs()
		if len(jobs) != day+1 {
			t.Fatalf("day %d: %d UpgradeJobs", day, len(jobs))
		}
		job := &jobs[day]
		if len(job.Status.History) != 1 || job.Status.History[0].Phase != history.PhaseUpgraded || job.Spec.DesiredVersion.Version != version {
			t.Errorf("day %d: %s to %s: %+v", day, job.Name, job.Spec.DesiredVersion.Version, job.Status.History)
		}
		if installed := w.cluster.ClusterVersion().Status.History[0].Version; installed != version {
			t.Errorf("day %d: %s is installed, want %s", day, installed, version)
		}
		if w.workers().Spec.Paused {
			t.Errorf("day %d: the delayed pool is still paused", day)
		}
		w.expectReleased()
	}
	hooks := simulation.List(w.Harness, &batchv1.JobList{}, client.InNamespace(namespace))
	if len(hooks.Items) != 3 {
		t.Errorf("%d Jobs of the hook, want one for each slot", len(hooks.Items))
	}
}

// The delays of a slot in virtual time. A request takes no time, and a cache lags by 5 ms.
const (
	maxCommitDelay = 5 * time.Second
	maxHookDelay   = 100 * time.Millisecond
)

// A slot is served at once: nothing waits for a time that no gate calls for.
func TestSlots_are_served_at_once(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		objects  []client.Object
		edits    []func(*maintenancev1beta1.UpgradeJob)
		hooks    time.Duration // how long the hooks before the commit take
		unpinned bool          // the UpgradeJob is created when the slot begins
	}{
		"without hooks":      {},
		"that is not pinned": {unpinned: true},
		"with a hook that is not pinned": {
			objects: []client.Object{hook("notify", maintenancev1beta1.HookFailureAbort, map[string]string{kubelet.Duration: "10s"}, maintenancev1beta1.EventStart)},
			hooks:   10 * time.Second, unpinned: true,
		},
		"with a delayed pool": {edits: []func(*maintenancev1beta1.UpgradeJob){delayWorker("1h", "2h")}},
		"with a hook": {
			objects: []client.Object{hook("notify", maintenancev1beta1.HookFailureAbort, map[string]string{kubelet.Duration: "10s"}, maintenancev1beta1.EventStart)},
			hooks:   10 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Create(tc.objects...)
			config := daily(tc.edits...)
			if tc.unpinned {
				config.Spec.PinVersionWindow = nil
			}
			w.Create(config)
			lag := simulation.Fault{Lag: []string{"UpgradeJob", "UpgradeConfig", "Lease", "ClusterVersion", "MachineConfigPool", "Job", "Pod"}, LagFor: 5 * time.Millisecond}
			w.Writes = func(simulation.Request) simulation.Fault { return lag }
			var committed, hooked time.Time
			w.Observe(func(change simulation.Change) {
				if _, is := change.New.(*batchv1.Job); is && change.Old == nil {
					hooked = w.Now()
				}
				if committed.IsZero() && w.commits > 0 {
					committed = w.Now()
				}
			})
			w.RunTo(startAfter.Add(30 * time.Minute))
			if delay := committed.Sub(startAfter) - tc.hooks; delay < 0 || delay > maxCommitDelay {
				t.Errorf("commenced %s after the slot, without the hooks; limit %s; %s", delay, maxCommitDelay, w.describe())
			}
			if delay := hooked.Sub(startAfter); len(tc.objects) > 0 && (delay < 0 || delay > maxHookDelay) {
				t.Errorf("the first Job of a hook was created %s after the slot; limit %s", delay, maxHookDelay)
			}
		})
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func newConfig(start time.Time) *upgradev1alpha1.UpgradeConfig {
	return &upgradev1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "config"},
		Spec: upgradev1alpha1.UpgradeConfigSpec{
			Type: "OSD", UpgradeAt: start.UTC().Format(time.RFC3339), PDBForceDrainTimeout: new(int32(60)),
			Desired: upgradev1alpha1.Update{Version: desired, Channel: channel},
		},
	}
}

// configRecord returns the newest record of the UpgradeConfig.
func (w *world) configRecord() history.Record {
	w.TB.Helper()
	cfg := simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: "config"}, &upgradev1alpha1.UpgradeConfig{})
	if len(cfg.Status.History) == 0 {
		return history.Record{}
	}
	return cfg.Status.History[0]
}

// The upgrades of both kinds compete for one lock.
func TestBothKinds(t *testing.T) {
	t.Parallel()
	later := func(job *maintenancev1beta1.UpgradeJob) { job.Spec.DesiredVersion.Version = "4.4.7" }
	for name, tc := range map[string]struct {
		configStart time.Duration // relative to the window of the UpgradeJob
		firstIsJob  bool
	}{
		"the UpgradeConfig starts first": {configStart: -time.Minute},
		"the UpgradeJob starts first":    {configStart: time.Minute, firstIsJob: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tc.firstIsJob {
				w.Create(newJob())
			} else {
				w.Create(newJob(later))
			}
			cfg := newConfig(startAfter.Add(tc.configStart))
			if tc.firstIsJob {
				cfg.Spec.Desired.Version = "4.4.7"
			}
			w.Create(cfg)
			w.RunTo(startAfter.Add(10 * time.Minute))
			if tc.firstIsJob {
				if r := w.configRecord(); r.StartTime != nil || !strings.Contains(r.Message, "UpgradeJob "+namespace+"/job") {
					t.Errorf("the UpgradeConfig is %s: %s", r.Phase, r.Message)
				}
			} else {
				current := w.record().Conditions[len(w.record().Conditions)-1]
				if current.Type != "LockAcquired" || !strings.Contains(current.Message, "UpgradeConfig "+namespace+"/config") {
					t.Errorf("%s: %s", current.Type, current.Message)
				}
			}
			ended := func() bool { return w.record().CompleteTime != nil && w.configRecord().CompleteTime != nil }
			w.Await(5*time.Hour, ended)
			w.settle()
			if w.record().Phase != history.PhaseUpgraded || w.configRecord().Phase != history.PhaseUpgraded || w.commits != 1 {
				t.Errorf("the UpgradeConfig is %s: %s; %d first requests; the UpgradeJob: %s", w.configRecord().Phase, w.configRecord().Message, w.commits, w.describe())
			}
			first, second := w.configRecord(), w.record()
			if tc.firstIsJob {
				first, second = second, first
			}
			if first.CompleteTime.After(second.CommenceTime.Time) {
				t.Errorf("the second upgrade commenced at %s, before the first had ended at %s", second.CommenceTime, first.CompleteTime)
			}
		})
	}
}

// An UpgradeJob that expires while another upgrade has the lock names it.
func TestBothKinds_expired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cluster.ControlPlaneDuration = 90 * time.Minute
	w.Create(newConfig(startAfter.Add(-time.Minute)))
	w.Create(newJob(func(job *maintenancev1beta1.UpgradeJob) { job.Spec.DesiredVersion.Version = "4.4.7" }))
	w.RunTo(startAfter.Add(62 * time.Minute))
	if got, want := w.outcome(), (outcome{phase: history.PhaseSkipped, reason: "Expired", step: "LockAcquired", commits: 1}); got != want {
		t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
	}
	if message := w.record().Message; !strings.Contains(message, "UpgradeConfig "+namespace+"/config") {
		t.Errorf("the message %q does not name the upgrade that has the lock", message)
	}
	w.Await(5*time.Hour, func() bool { return w.configRecord().CompleteTime != nil })
	w.settle()
}

// An upgrade of one kind breaks the Lease of one of the other kind that was deleted, or has ended, while no
// operator ran.
func TestBothKinds_lease_that_is_left(t *testing.T) {
	t.Parallel()
	remove := func(w *world, o client.Object) {
		o.SetFinalizers(nil)
		w.Update(o)
		w.Delete(o)
	}
	end := func(w *world, o client.Object) {
		now := metav1.NewTime(w.Now().Truncate(time.Second))
		var records []history.Record
		switch o := o.(type) {
		case *maintenancev1beta1.UpgradeJob:
			records = o.Status.History
		case *upgradev1alpha1.UpgradeConfig:
			records = o.Status.History
		}
		records[0].Phase, records[0].CompleteTime = history.PhaseFailed, &now
		w.UpdateStatus(o)
		o.SetFinalizers(nil)
		w.Update(o)
	}
	for name, tc := range map[string]struct {
		jobHolds bool
		leave    func(*world, client.Object)
	}{
		"of a deleted UpgradeJob":    {jobHolds: true, leave: remove},
		"of an ended UpgradeJob":     {jobHolds: true, leave: end},
		"of a deleted UpgradeConfig": {leave: remove},
		"of an ended UpgradeConfig":  {leave: end},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var first, second client.Object = newJob(), newConfig(startAfter.Add(5 * time.Minute))
			if !tc.jobHolds {
				first, second = newConfig(startAfter.Add(-5*time.Minute)), newJob()
			}
			w.Create(first)
			w.Create(second)
			held := func() bool { return strings.Contains(w.lockHolder(), "/"+first.GetName()+"/") }
			w.Await(5*time.Hour, held)
			w.Process.Kill()
			w.Must(w.User.Get(t.Context(), client.ObjectKeyFromObject(first), first))
			tc.leave(w, first)
			if !held() {
				t.Fatalf("the lock is held by %q", w.lockHolder())
			}
			w.Begin()
			record := w.configRecord
			if !tc.jobHolds {
				record = w.record
			}
			if err := w.RunUntil(5*time.Hour, func() bool { return record().CompleteTime != nil }); err != nil {
				t.Fatalf("%v; the lock is held by %q; %s", err, w.lockHolder(), w.describe())
			}
			// The first one may have upgraded the cluster before the second one could begin.
			if r := record(); r.Phase != history.PhaseUpgraded && r.Reason != "AlreadyAtVersion" {
				t.Errorf("the second upgrade is %s: %s", r.Phase, r.Message)
			}
			w.settle()
			if holder := w.lockHolder(); holder != "" {
				t.Errorf("the lock is held by %q", holder)
			}
		})
	}
}

// lockHolder returns the identity of the holder of the lock, or an empty string.
func (w *world) lockHolder() string {
	lease := simulation.Find(w.Harness, client.ObjectKey{Namespace: namespace, Name: lock.Name}, &coordinationv1.Lease{})
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// While another upgrade has the lock, the UpgradeJob says that the windows of its delayed pools have passed, and it
// is skipped for that before it pauses a pool.
func TestBothKinds_expired_pools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cluster.ControlPlaneDuration = 90 * time.Minute
	w.Create(newConfig(startAfter.Add(-time.Minute)))
	w.Create(newJob(delayWorker("10m", "45m"), func(job *maintenancev1beta1.UpgradeJob) {
		job.Spec.DesiredVersion.Version = "4.4.7"
		job.Spec.StartBefore = timestamp(startAfter.Add(6 * time.Hour))
		job.Spec.Config.UpgradeTimeout = "12h"
	}))
	const expired = "machine config pools can no longer be updated in their windows: worker; delayMax has passed"
	for _, at := range []struct {
		after time.Duration
		want  bool
	}{{40 * time.Minute, false}, {50 * time.Minute, true}} {
		w.RunTo(startAfter.Add(at.after))
		c := meta.FindStatusCondition(w.job().Status.Conditions, maintenancev1beta1.ConditionAccepted)
		if got := c != nil && c.Status == metav1.ConditionFalse && c.Reason == "InvalidPools" && c.Message == expired; got != at.want {
			t.Errorf("after %s, Accepted is %+v", at.after, c)
		}
	}
	w.Await(8*time.Hour, func() bool { return w.record().CompleteTime != nil && w.configRecord().CompleteTime != nil })
	w.settle()
	if r := w.record(); r.Phase != maintenancev1beta1.PhaseSkipped || r.Reason != "UnpausingPoolsExpired" || !strings.Contains(r.Message, expired) {
		t.Errorf("%s", w.describe())
	}
	if w.workers().Spec.Paused {
		t.Error("the pool is left paused")
	}
}

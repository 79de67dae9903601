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
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeschedule"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// withSchedules adds the controller of UpgradeConfigs to the operator.
func withSchedules(w *world) {
	w.extra = func(env simulation.Env, w *world) []manager.Controller {
		scheduleMetrics, err := metrics.NewSchedules(w.registry, upgradeschedule.Results()...)
		if err != nil {
			w.t.Fatal(err)
		}
		events := &notify.Events{Client: env.Client, Clock: env.Clock, OnFailure: w.metrics.IncEventFailures}
		r := &upgradeschedule.Reconciler{Clock: env.Clock, WatchNamespaces: []string{namespace}, Events: events, Metrics: scheduleMetrics}
		return []manager.Controller{r.Controller()}
	}
}

// jobs returns the UpgradeJobs, the earliest first.
func (w *world) jobs() []v1beta1.UpgradeJob {
	w.t.Helper()
	var list v1beta1.UpgradeJobList
	if err := w.client.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b v1beta1.UpgradeJob) int {
		return strings.Compare(string(a.Spec.StartAfter), string(b.Spec.StartAfter))
	})
	return list.Items
}

// TestSlots serves three daily slots, with a hook, a delayed pool, and an operator that ends in the
// second one.
func TestSlots(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withSchedules)
	w.create(hook("notify", v1beta1.HookFailureAbort, nil, v1beta1.EventStart))
	w.create(&v1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "daily"},
		Spec: v1beta1.UpgradeConfigSpec{
			Schedule: v1beta1.UpgradeConfigSchedule{Cron: "0 14 * * *", Location: "UTC"}, PinVersionWindow: new(v1beta1.Duration("30m")),
			MaxUpgradeStartDelay: "1h",
			JobTemplate:          v1beta1.UpgradeJobTemplate{Spec: v1beta1.UpgradeJobTemplateSpec{Config: newJob(delayWorker("1h", "2h")).Spec.Config}},
		},
	})
	for day, version := range []string{"4.4.6", "4.4.7", "4.4.8"} {
		w.cluster.Offer(version)
		slot := startAfter.AddDate(0, 0, day)
		w.until(slot.Add(-time.Minute))
		if day == 1 {
			w.until(slot.Add(10 * time.Minute)) // committed
			w.process.Kill()
			w.until(slot.Add(90 * time.Minute)) // the pool is overdue
			w.start()
		}
		w.until(slot.Add(4 * time.Hour))
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
	var hooks batchv1.JobList
	if err := w.client.List(t.Context(), &hooks, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(hooks.Items) != 3 {
		t.Errorf("%d Jobs of the hook, want one for each slot", len(hooks.Items))
	}
}

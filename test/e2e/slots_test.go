// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
)

// The limits of a slot without hooks.
const (
	maxStatusWrites = 2  // for each step
	maxEvents       = 2  // for each step: it waits, and it is done
	maxOtherWrites  = 15 // without Events
)

// slots is a cluster with an UpgradeConfig whose slots are a minute apart.
type slots struct {
	t        *testing.T
	user     client.Client
	cluster  *devcluster.Cluster
	operator *devcluster.Operator
	releases []string
}

// TestSlots_on_a_real_API_server serves three slots through the binary: one without hooks, whose
// requests are counted, one with a hook, and one in which the operator is killed while the hook runs.
func TestSlots_on_a_real_API_server(t *testing.T) {
	t.Parallel()
	const served = 3
	all := releases(served)
	s := slots{t: t, cluster: startCluster(t, devcluster.Spec{Version: installed, Speed: fast, Releases: all[:1]})}
	s.user = newUserClient(t, s.cluster)
	s.operator = startOperator(t, s.cluster, devcluster.OperatorOptions{})
	for _, release := range all {
		s.releases = append(s.releases, release.Version)
	}
	began := time.Now()
	config := &v1beta1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: "updates"}}
	config.Spec = v1beta1.UpgradeConfigSpec{
		Schedule:             v1beta1.UpgradeConfigSchedule{Cron: "* * * * *", Location: "UTC"},
		PinVersionWindow:     new(v1beta1.Duration("30s")),
		MaxUpgradeStartDelay: "30m",
		JobTemplate: v1beta1.UpgradeJobTemplate{Spec: v1beta1.UpgradeJobTemplateSpec{Config: v1beta1.UpgradeJobConfig{
			UpgradeTimeout:          "1h",
			PreUpgradeHealthChecks:  v1beta1.HealthChecks{CheckCriticalAlerts: new(false)},
			PostUpgradeHealthChecks: v1beta1.HealthChecks{CheckCriticalAlerts: new(false)},
		}}},
	}
	if err := s.user.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}

	s.checkRequests(s.awaitEnd(0), began, time.Now())
	s.createHook()
	s.cluster.Catalog.Set(all[1]) // slots without an update are not served
	s.awaitEnd(1)
	s.cluster.Catalog.Set(all[2])
	s.awaitHook(2)
	if err := s.operator.Restart(); err != nil {
		t.Fatal(err)
	}
	s.awaitEnd(2)
	s.checkServed()
	checkAftermath(t, s.cluster, s.operator)
}

// jobs returns the UpgradeJobs, the earliest first.
func (s *slots) jobs(ctx context.Context) ([]v1beta1.UpgradeJob, error) {
	var list v1beta1.UpgradeJobList
	if err := s.user.List(ctx, &list); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1beta1.UpgradeJob) int {
		return strings.Compare(string(a.Spec.StartAfter), string(b.Spec.StartAfter))
	})
	return list.Items, nil
}

// awaitEnd waits until the upgrade of a slot is over, and returns it.
func (s *slots) awaitEnd(slot int) *v1beta1.UpgradeJob {
	s.t.Helper()
	var ended *v1beta1.UpgradeJob
	eventually(s.t, 4*time.Minute, fmt.Sprintf("slot %d is served", slot), func(ctx context.Context) error {
		jobs, err := s.jobs(ctx)
		switch {
		case err != nil:
			return err
		case len(jobs) <= slot:
			return fmt.Errorf("%d UpgradeJobs", len(jobs))
		}
		if job := &jobs[slot]; len(job.Status.History) == 0 || !job.Status.History[0].Finished() || len(job.Finalizers) > 0 {
			return fmt.Errorf("it is not over: %+v", job.Status)
		}
		ended = &jobs[slot]
		return nil
	})
	return ended
}

// createHook creates a hook that takes some seconds for event Start.
func (s *slots) createHook() {
	s.t.Helper()
	hook := &v1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: "announce"}}
	hook.Spec = v1beta1.UpgradeJobHookSpec{
		Events: []v1beta1.HookEvent{v1beta1.EventStart}, Run: v1beta1.HookRunAll, FailurePolicy: v1beta1.HookFailureAbort,
		Template: v1beta1.HookJobTemplate{Spec: runtime.RawExtension{Raw: []byte(`{"backoffLimit": 0, "template": {
			"metadata": {"annotations": {"devcluster.openshift.io/duration": "3s"}},
			"spec": {"restartPolicy": "Never", "containers": [{"name": "announce", "image": "example.com/announce"}]}}}`)}},
	}
	if err := s.user.Create(s.t.Context(), hook); err != nil {
		s.t.Fatal(err)
	}
}

// awaitHook waits until that number of Jobs of the hook were created.
func (s *slots) awaitHook(n int) {
	s.t.Helper()
	eventually(s.t, 3*time.Minute, fmt.Sprintf("%d Jobs of the hook", n), func(ctx context.Context) error {
		jobs, err := s.hookJobs(ctx)
		if err == nil && len(jobs) < n {
			err = fmt.Errorf("%d Jobs", len(jobs))
		}
		return err
	})
}

func (s *slots) hookJobs(ctx context.Context) ([]batchv1.Job, error) {
	var list batchv1.JobList
	err := s.user.List(ctx, &list, client.InNamespace(devcluster.OperatorNamespace))
	return list.Items, err
}

// checkServed fails unless each slot was served once, with its hook.
func (s *slots) checkServed() {
	s.t.Helper()
	jobs, err := s.jobs(s.t.Context())
	hookJobs, hookErr := s.hookJobs(s.t.Context())
	if err := errors.Join(err, hookErr); err != nil {
		s.t.Fatal(err)
	}
	var versions []string
	for i := range jobs {
		record := jobs[i].Status.History[0]
		versions = append(versions, record.Version)
		if record.Phase != history.PhaseUpgraded || len(jobs[i].Status.History) != 1 {
			s.t.Errorf("%s is %s after %d attempts: %s", jobs[i].Name, record.Phase, len(jobs[i].Status.History), record.Message)
		}
	}
	if !slices.Equal(versions, s.releases) {
		s.t.Errorf("the slots have upgraded to %q, want %q", versions, s.releases)
	}
	if len(hookJobs) != len(s.releases)-1 {
		s.t.Errorf("%d Jobs of the hook, want one for each of the last slots", len(hookJobs))
	}
	all := auditedRequests(s.t, s.cluster)
	if n := count(slices.DeleteFunc(all, func(r request) bool { return r.Stage != stageComplete }), "patch clusterversions"); n != len(s.releases) {
		s.t.Errorf("%d requests of versions in %d slots", n, len(s.releases))
	}
}

// checkRequests fails if a slot without hooks takes more requests than it may.
func (s *slots) checkRequests(job *v1beta1.UpgradeJob, from, until time.Time) {
	s.t.Helper()
	made := slices.DeleteFunc(requests(s.t, s.cluster, from), func(r request) bool { return r.Received.After(until) })
	steps := len(job.Status.History[0].Conditions)
	s.t.Logf("A slot of %d steps:\n%s", steps, tally(made))
	others, reads, events := 0, 0, count(made, "create events")
	for _, r := range made {
		switch {
		case r.Verb == "get" || r.Verb == "list":
			reads++
		case r.operation() != "patch upgradejobs/status" && r.operation() != "create events":
			others++
		}
	}
	if events > maxEvents*steps {
		s.t.Errorf("%d Events in %d steps, want at most %d for each", events, steps, maxEvents)
	}
	if n := count(made, "patch upgradejobs/status"); n > maxStatusWrites*steps {
		s.t.Errorf("%d writes of the status in %d steps, want at most %d for each", n, steps, maxStatusWrites)
	}
	if others > maxOtherWrites {
		s.t.Errorf("%d other writes, want at most %d", others, maxOtherWrites)
	}
	if n := count(made, "list upgradejobs"); n > 1 {
		s.t.Errorf("the UpgradeJobs were listed %d times, want once", n)
	}
	if n := count(made, "patch clusterversions"); n != 1 {
		s.t.Errorf("a version was requested %d times, want once", n)
	}
	s.t.Logf("%d reads, %d Events, %d other writes", reads, events, others)
}

// BenchmarkMaintenanceObjects measures the operator with many objects of scheduled maintenance, none
// of which has anything to do.
func BenchmarkMaintenanceObjects(b *testing.B) {
	b.Log("Method: 100 UpgradeConfigs, 100 UpgradeJobHooks, and 500 UpgradeJobs that have ended; requests in the API server's audit log" +
		" in two minutes, beginning when the operator has settled, and VmRSS and RssAnon at their end.")
	for b.Loop() {
		cluster := startCluster(b, devcluster.Spec{Version: installed, Speed: fast})
		user := newUserClient(b, cluster)
		createMaintenanceObjects(b, user, 100, 100, 500)
		operator := startOperator(b, cluster, devcluster.OperatorOptions{})
		var began time.Time
		eventually(b, 5*time.Minute, "the operator makes no request any more", func(context.Context) error {
			if made := requests(b, cluster, time.Now().Add(-10*time.Second)); len(made) > 0 {
				return fmt.Errorf("%d requests in ten seconds", len(made))
			}
			began = time.Now()
			return nil
		})
		sleep(b, 2*time.Minute)
		made := requests(b, cluster, began)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(len(made)), "requests")
		memory := statusOf(b, operator.Replicas()[0].PID(), "VmRSS")
		b.ReportMetric(float64(memory)/1024, "MiB")
		b.ReportMetric(float64(statusOf(b, operator.Replicas()[0].PID(), "RssAnon"))/1024, "MiB-anonymous")
		if len(made) > 0 || memory > maxMemory {
			b.Errorf("%d requests, %d KiB resident, want none and at most %d\n%s", len(made), memory, maxMemory, tally(made))
		}
	}
}

// createMaintenanceObjects creates UpgradeConfigs whose next slots are days ahead, hooks, and
// UpgradeJobs of the UpgradeConfigs in turn that have ended.
func createMaintenanceObjects(tb testing.TB, user client.Client, configs, hooks, jobs int) {
	tb.Helper()
	far := time.Now().AddDate(0, 0, 20).UTC()
	owners := make([]*v1beta1.UpgradeConfig, configs)
	create := func(object client.Object) {
		if err := user.Create(tb.Context(), object); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range configs {
		owners[i] = &v1beta1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: fmt.Sprintf("config-%03d", i)}}
		owners[i].Spec = v1beta1.UpgradeConfigSpec{
			Schedule:                   v1beta1.UpgradeConfigSchedule{Cron: fmt.Sprintf("%d 3 %d %d *", i%60, far.Day(), far.Month()), Location: "UTC"},
			SuccessfulJobsHistoryLimit: new(int32(100)),
		}
		create(owners[i])
	}
	for i := range hooks {
		hook := &v1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: fmt.Sprintf("hook-%03d", i)}}
		hook.Spec = v1beta1.UpgradeJobHookSpec{
			Events: []v1beta1.HookEvent{v1beta1.EventStart}, Run: v1beta1.HookRunAll, FailurePolicy: v1beta1.HookFailureIgnore,
			Template: v1beta1.HookJobTemplate{Spec: runtime.RawExtension{Raw: []byte(`{"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "hook", "image": "example.com/hook"}]}}}`)}},
		}
		create(hook)
	}
	ended := metav1.NewTime(time.Now().Add(-24 * time.Hour).Truncate(time.Second))
	for i := range jobs {
		owner := owners[i%configs]
		start := metav1.NewTime(time.Now().Add(-time.Duration(i+48) * time.Hour).UTC().Truncate(time.Second))
		job := &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: devcluster.OperatorNamespace, Name: fmt.Sprintf("job-%03d", i), Labels: map[string]string{v1beta1.ConfigLabel: string(owner.UID)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "UpgradeConfig", Name: owner.Name, UID: owner.UID, Controller: new(true)}},
		}}
		job.Spec.StartAfter, job.Spec.StartBefore = v1beta1.Timestamp(start.Format(time.RFC3339)), v1beta1.Timestamp(start.Add(time.Hour).UTC().Format(time.RFC3339))
		create(job)
		job.Status.History = []history.Record{{Attempt: 1, Phase: history.PhaseUpgraded, UpgradeAt: &start, StartTime: &start, CompleteTime: &ended}}
		if err := user.Status().Update(tb.Context(), job); err != nil {
			tb.Fatal(err)
		}
	}
}

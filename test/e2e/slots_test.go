// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// The limits of a slot. A step waits, and it is done.
const (
	maxStatusWritesOfStep = 2
	maxEventsOfStep       = 2
	maxOtherWrites        = 15 // without Events
	maxReads              = 6
	maxWritesOfHookJob    = 4
)

// The limits of the delays after the start of a slot. Tests share the machine with others.
const (
	maxCommitDelay           = 5 * time.Second
	maxHookDelay             = 100 * time.Millisecond
	maxHookDelayBesideOthers = 2 * time.Second
)

// slots is a cluster with an UpgradeConfig whose slots are a minute apart.
type slots struct {
	tb       testing.TB
	user     client.WithWatch
	cluster  *devcluster.Cluster
	operator *devcluster.Operator
	releases []updategraph.Release
	config   *maintenancev1beta1.UpgradeConfig
}

// TestSlots_on_a_real_API_server serves three slots through the binary: one without hooks, one with hooks and a delayed
// pool, and one whose hook runs while the operator is killed. It counts the requests of the first two slots, and of
// an UpgradeJob that waits for days.
func TestSlots_on_a_real_API_server(t *testing.T) {
	t.Parallel()
	s := startSlots(t, 3)
	s.measure(15*time.Second, maxHookDelayBesideOthers)
	s.cluster.Catalog.Set(s.releases[2])
	s.awaitHook(3)
	if err := s.operator.Restart(); err != nil {
		t.Fatal(err)
	}
	s.awaitEnd(2)
	s.checkServed()
	s.checkPrinted(t)
	checkAftermath(t, s.cluster, s.operator)
}

func BenchmarkSlots(b *testing.B) {
	b.Log("Method: requests in the API server's audit log: of an UpgradeJob whose start is days ahead while the cluster changes in ways" +
		" that do not matter, of a slot without hooks, and of a slot with two hooks and a delayed pool.")
	for b.Loop() {
		s := startSlots(b, 2)
		b.ReportMetric(0, "ns/op")
		for _, f := range s.measure(2*time.Minute, maxHookDelay) {
			b.ReportMetric(float64(f.measured), strings.ReplaceAll(f.name, " ", "-"))
		}
	}
}

func startSlots(tb testing.TB, served int) *slots {
	tb.Helper()
	s := &slots{tb: tb, releases: releases(served)}
	s.cluster = startCluster(tb, openshiftsim.ClusterSpec{
		Version: installed, Speed: fast, Releases: s.releases[:1], Pools: []machineconfig.Pool{{Name: "night", Nodes: 1}},
	})
	s.user = newUserClient(tb, s.cluster)
	s.operator = startOperator(tb, s.cluster, devcluster.OperatorOptions{})
	return s
}

// figure is a number of requests with its bounds.
type figure struct {
	name                  string
	measured, least, most int
}

// measure serves the first two slots, and returns their figures. A figure out of its bounds is an
// error.
func (s *slots) measure(idle, hookDelay time.Duration) []figure {
	s.tb.Helper()
	figures := []figure{s.measurePin(idle)}
	began := time.Now()
	s.config = s.createConfig("updates", "* * * * *", "30s")
	figures = append(figures, s.measureSlot(s.awaitEnd(0), began)...)

	s.createHook("announce", maintenancev1beta1.HookRunAll)
	s.createHook("announce-once", maintenancev1beta1.HookRunNext)
	s.delayPool()
	began = time.Now()
	s.cluster.Catalog.Set(s.releases[1]) // slots without an update are not served
	figures = append(figures, s.measureHooks(s.awaitEnd(1), began, hookDelay)...)
	for _, f := range figures {
		s.tb.Logf("%s: %d", f.name, f.measured)
		if f.measured < f.least || f.measured > f.most {
			s.tb.Errorf("%s: %d, want %d to %d", f.name, f.measured, f.least, f.most)
		}
	}
	return figures
}

// createConfig creates an UpgradeConfig.
func (s *slots) createConfig(name, cron string, pin maintenancev1beta1.Duration) *maintenancev1beta1.UpgradeConfig {
	s.tb.Helper()
	config := &maintenancev1beta1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: name}}
	config.Spec = maintenancev1beta1.UpgradeConfigSpec{
		Schedule:             maintenancev1beta1.UpgradeConfigSchedule{Cron: cron, Location: "UTC"},
		PinVersionWindow:     &pin,
		MaxUpgradeStartDelay: "30m",
		JobTemplate: maintenancev1beta1.UpgradeJobTemplate{Spec: maintenancev1beta1.UpgradeJobTemplateSpec{Config: maintenancev1beta1.UpgradeJobConfig{
			UpgradeTimeout:          "1h",
			PreUpgradeHealthChecks:  maintenancev1beta1.HealthChecks{CheckCriticalAlerts: new(false)},
			PostUpgradeHealthChecks: maintenancev1beta1.HealthChecks{CheckCriticalAlerts: new(false)},
		}}},
	}
	if err := s.user.Create(s.tb.Context(), config); err != nil {
		s.tb.Fatal(err)
	}
	return config
}

// measurePin counts the requests while an UpgradeJob waits for a start in two days. It then deletes
// the UpgradeJob with its UpgradeConfig.
func (s *slots) measurePin(idle time.Duration) figure {
	s.tb.Helper()
	start := time.Now().UTC().AddDate(0, 0, 2)
	config := s.createConfig("days-ahead", fmt.Sprintf("%d %d %d %d *", start.Minute(), start.Hour(), start.Day(), start.Month()), "72h")
	eventually(s.tb, 2*time.Minute, "the version is pinned", func(ctx context.Context) error {
		jobs, err := s.jobs(ctx)
		if err == nil && (len(jobs) != 1 || len(jobs[0].Status.History) != 1 || jobs[0].Status.History[0].Phase != history.PhasePending) {
			err = fmt.Errorf("the UpgradeJobs are %+v", jobs)
		}
		return err
	})
	awaitQuiet(s.tb, s.cluster)
	_, made := disturb(s.tb, s.cluster, s.user, s.operator, idle)
	s.tb.Logf("An UpgradeJob that starts in two days, in %s:\n%s", idle, tally(made))
	if err := s.user.Delete(s.tb.Context(), config); err != nil {
		s.tb.Fatal(err)
	}
	eventually(s.tb, 2*time.Minute, "the UpgradeJob is deleted with its UpgradeConfig", func(ctx context.Context) error {
		jobs, err := s.jobs(ctx)
		if err == nil && len(jobs) > 0 {
			err = fmt.Errorf("%d UpgradeJobs", len(jobs))
		}
		return err
	})
	awaitQuiet(s.tb, s.cluster)
	return figure{name: "requests between pin and start", measured: len(made)}
}

// delayPool makes new UpgradeJobs delay pool night.
func (s *slots) delayPool() {
	s.tb.Helper()
	before := s.config.DeepCopy()
	s.config.Spec.JobTemplate.Spec.Config.MachineConfigPools = []maintenancev1beta1.MachineConfigPoolConfig{{
		MachineConfigPoolSelector: maintenancev1beta1.MachineConfigPoolSelector{MatchLabels: maintenancev1beta1.PoolLabels{
			Labels: map[string]string{"pools.operator.machineconfiguration.openshift.io/night": ""},
		}},
		DelayUpgrade: maintenancev1beta1.DelayUpgrade{DelayMin: "15s", DelayMax: "30m"},
	}}
	if err := s.user.Patch(s.tb.Context(), s.config, client.MergeFrom(before)); err != nil {
		s.tb.Fatal(err)
	}
}

// jobs returns the UpgradeJobs, the earliest first.
func (s *slots) jobs(ctx context.Context) ([]maintenancev1beta1.UpgradeJob, error) {
	var list maintenancev1beta1.UpgradeJobList
	if err := s.user.List(ctx, &list); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b maintenancev1beta1.UpgradeJob) int {
		return strings.Compare(string(a.Spec.StartAfter), string(b.Spec.StartAfter))
	})
	return list.Items, nil
}

// awaitEnd waits until the upgrade of a slot is over, and returns it.
func (s *slots) awaitEnd(slot int) *maintenancev1beta1.UpgradeJob {
	s.tb.Helper()
	var ended *maintenancev1beta1.UpgradeJob
	eventually(s.tb, 4*time.Minute, fmt.Sprintf("slot %d is served", slot), func(ctx context.Context) error {
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
func (s *slots) createHook(name string, run maintenancev1beta1.HookRun) {
	s.tb.Helper()
	hook := &maintenancev1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: name}}
	hook.Spec = maintenancev1beta1.UpgradeJobHookSpec{
		Events: []maintenancev1beta1.HookEvent{maintenancev1beta1.EventStart}, Run: run, FailurePolicy: maintenancev1beta1.HookFailureAbort,
		Template: maintenancev1beta1.HookJobTemplate{Spec: runtime.RawExtension{Raw: []byte(`{"backoffLimit": 0, "template": {
			"metadata": {"annotations": {"devcluster.openshift.io/duration": "3s"}},
			"spec": {"restartPolicy": "Never", "volumes": [{"name": "chat", "secret": {"secretName": "chat", "optional": true}}], "containers": [{"name": "announce", "image": "example.com/announce"}]}}}`)}},
	}
	if err := s.user.Create(s.tb.Context(), hook); err != nil {
		s.tb.Fatal(err)
	}
	eventually(s.tb, time.Minute, "the hook is accepted", func(ctx context.Context) error {
		err := s.user.Get(ctx, client.ObjectKeyFromObject(hook), hook)
		if err == nil && !meta.IsStatusConditionTrue(hook.Status.Conditions, maintenancev1beta1.ConditionAccepted) {
			err = fmt.Errorf("the conditions are %+v", hook.Status.Conditions)
		}
		return err
	})
}

// awaitHook waits until that number of Jobs of hooks were created.
func (s *slots) awaitHook(n int) {
	s.tb.Helper()
	eventually(s.tb, 3*time.Minute, fmt.Sprintf("%d Jobs of hooks", n), func(ctx context.Context) error {
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
	s.tb.Helper()
	jobs, err := s.jobs(s.tb.Context())
	hookJobs, hookErr := s.hookJobs(s.tb.Context())
	if err := errors.Join(err, hookErr); err != nil {
		s.tb.Fatal(err)
	}
	var versions []string
	for i := range jobs {
		record := jobs[i].Status.History[0]
		versions = append(versions, record.Version)
		if record.Phase != history.PhaseUpgraded || len(jobs[i].Status.History) != 1 {
			s.tb.Errorf("%s is %s after %d attempts: %s", jobs[i].Name, record.Phase, len(jobs[i].Status.History), record.Message)
		}
	}
	var released []string
	for _, release := range s.releases {
		released = append(released, release.Version)
	}
	if !slices.Equal(versions, released) {
		s.tb.Errorf("the slots have upgraded to %q, want %q", versions, released)
	}
	if want := len(s.releases); len(hookJobs) != want { // one hook in the second slot only, and one in all but the first
		s.tb.Errorf("%d Jobs of hooks, want %d", len(hookJobs), want)
	}
	all := auditedRequests(s.tb, s.cluster)
	if n := count(slices.DeleteFunc(all, func(r request) bool { return r.Stage != stageComplete }), "patch clusterversions"); n != len(s.releases) {
		s.tb.Errorf("%d requests of versions in %d slots", n, len(s.releases))
	}
}

// checkPrinted compares what kubectl prints of the slots.
func (s *slots) checkPrinted(t *testing.T) {
	t.Helper()
	jobs, err := s.jobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	term := newTerminal(t, s.cluster, s.operator)
	for command, patterns := range map[string][]string{
		"get upgradejobs": {
			`(?m)^NAME +VERSION +PHASE +STEP +START +SINCE +MESSAGE$`,
			`(?m)^updates-\d{10}-\w+ +` + regexp.QuoteMeta(s.releases[2].Version) + ` +Upgraded +Upgraded +\S+Z +\S+ +upgraded from \S+ to \S+$`,
		},
		"get upgradeconfigs.managedupgrade.appuio.io": {
			`(?m)^NAME +CRON +WEEK +LOCATION +SUSPENDED +NEXT +LAST$`, `(?m)^updates +\* \* \* \* \* +(UTC +)?false +\S+Z +\w+$`,
		},
		"get maintenance": {
			`upgradejob\S*/updates-`, `upgradeconfig\S*/updates`, `upgradejobhook\S*/announce-once`,
		},
		"describe upgradejob " + jobs[1].Name: {
			`(?s)Conditions:.*Type: +Succeeded`, `(?s)History:.*Items:.*Name: +Start/announce\n +Status: +Succeeded.*Type: +StartHooksDone`, `(?s)Events:.*Normal +UpgradeCompleted`,
		},
	} {
		printed := term.run(t.Context(), t, "oc -n "+s.config.Namespace+" "+command)
		for _, pattern := range patterns {
			if !regexp.MustCompile(pattern).MatchString(printed) {
				t.Errorf("oc %s prints\n%s\nwant a match of %s", command, printed, pattern)
			}
		}
	}
}

// measureSlot returns the figures of a slot without hooks.
func (s *slots) measureSlot(job *maintenancev1beta1.UpgradeJob, from time.Time) []figure {
	s.tb.Helper()
	made := requests(s.tb, s.cluster, from)
	steps := len(job.Status.History[0].Conditions)
	reads := countReads(made)
	status, events := count(made, "patch upgradejobs/status"), count(made, "create events")
	s.tb.Logf("A slot of %d steps, %d reads:\n%s", steps, reads, tally(made))
	return []figure{
		{"status writes", status, steps / 2, maxStatusWritesOfStep * steps}, // a step that may be repeated is saved with the next one
		{"Events", events, 1, maxEventsOfStep * steps},
		{"other writes", len(made) - reads - status - events, 1, maxOtherWrites},
		{"lists", count(made, "list upgradejobs"), 1, 1},
		{"version requests", count(made, "patch clusterversions"), 1, 1},
		{"reads that no cache serves", reads, 0, maxReads},
		{"ms until the commit", s.delay(job, made, "patch clusterversions"), 0, int(maxCommitDelay.Milliseconds())},
	}
}

// delay returns the milliseconds from the start of a slot to the first request of an operation.
func (s *slots) delay(job *maintenancev1beta1.UpgradeJob, made []request, operation string) int {
	s.tb.Helper()
	start, err := time.Parse(time.RFC3339, string(job.Spec.StartAfter))
	at := slices.IndexFunc(made, func(r request) bool { return r.operation() == operation })
	if err != nil || at < 0 {
		s.tb.Fatalf("no request %q, %v", operation, err)
	}
	return int(made[at].Received.Sub(start).Milliseconds())
}

// measureHooks returns the figures of a slot with two hooks and a delayed pool.
func (s *slots) measureHooks(job *maintenancev1beta1.UpgradeJob, from time.Time, hookDelay time.Duration) []figure {
	s.tb.Helper()
	made := requests(s.tb, s.cluster, from)
	steps := len(job.Status.History[0].Conditions)
	s.tb.Logf("A slot of %d steps with two hooks and a delayed pool:\n%s", steps, tally(made))
	var events corev1.EventList
	if err := s.user.List(s.tb.Context(), &events, client.MatchingFields{"reason": "HookSucceeded", "involvedObject.uid": string(job.UID)}); err != nil {
		s.tb.Fatal(err)
	}
	jobs := count(made, "create jobs")
	ofHooks := len(events.Items) + jobs + count(made, "patch jobs") + count(made, "patch upgradejobhooks/status")
	status, allEvents := count(made, "patch upgradejobs/status"), count(made, "create events")
	others := len(made) - countReads(made) - status - allEvents - (ofHooks - len(events.Items)) - count(made, "patch machineconfigpools")
	return []figure{
		{"Events with hooks", allEvents - len(events.Items), 1, maxEventsOfStep * steps},
		{"other writes with hooks", others, 1, maxOtherWrites},
		{"status writes with hooks", status, steps / 2, maxStatusWritesOfStep * steps},
		{"Jobs of hooks", jobs, 2, 2},
		{"ms until the first Job", s.delay(job, made, "create jobs"), 0, int(hookDelay.Milliseconds())},
		{"writes of both hooks", ofHooks, 1, maxWritesOfHookJob * jobs},
		{"patches of the delayed pool", count(made, "patch machineconfigpools"), 2, 2},
		{"lists with hooks", count(made, "list upgradejobs"), 1, 1},
		{"version requests with hooks", count(made, "patch clusterversions"), 1, 1},
	}
}

func countReads(made []request) int {
	reads := 0
	for _, r := range made {
		if r.Verb == "get" || r.Verb == "list" {
			reads++
		}
	}
	return reads
}

// awaitQuiet waits until the operator makes no request for ten seconds, and returns when that was seen.
func awaitQuiet(tb testing.TB, cluster *devcluster.Cluster) time.Time {
	tb.Helper()
	var seen time.Time
	eventually(tb, 5*time.Minute, "the operator makes no request any more", func(context.Context) error {
		seen = time.Now()
		if made := requests(tb, cluster, seen.Add(-10*time.Second)); len(made) > 0 {
			return fmt.Errorf("%d requests in ten seconds", len(made))
		}
		return nil
	})
	return seen
}

// BenchmarkMaintenanceObjects measures the operator with many objects of scheduled maintenance that
// have nothing to do.
func BenchmarkMaintenanceObjects(b *testing.B) {
	b.Log("Method: 100 UpgradeConfigs, 100 UpgradeJobHooks, and 500 UpgradeJobs that have ended; requests in the API server's audit log" +
		" in two minutes, beginning when the operator has settled, and VmRSS and RssAnon at their end.")
	for b.Loop() {
		cluster := startCluster(b, openshiftsim.ClusterSpec{Version: installed, Speed: fast})
		user := newUserClient(b, cluster)
		createMaintenanceObjects(b, user, 100, 100, 500)
		operator := startOperator(b, cluster, devcluster.OperatorOptions{})
		began := awaitQuiet(b, cluster)
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

// createMaintenanceObjects creates hooks, UpgradeConfigs whose next slots are days ahead, and finished
// UpgradeJobs of these UpgradeConfigs in turn.
func createMaintenanceObjects(tb testing.TB, user client.Client, configs, hooks, jobs int) {
	tb.Helper()
	far := time.Now().AddDate(0, 0, 20).UTC()
	owners := make([]*maintenancev1beta1.UpgradeConfig, configs)
	create := func(object client.Object) {
		if err := user.Create(tb.Context(), object); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range configs {
		owners[i] = &maintenancev1beta1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: fmt.Sprintf("config-%03d", i)}}
		owners[i].Spec = maintenancev1beta1.UpgradeConfigSpec{
			Schedule:                   maintenancev1beta1.UpgradeConfigSchedule{Cron: fmt.Sprintf("%d 3 %d %d *", i%60, far.Day(), far.Month()), Location: "UTC"},
			SuccessfulJobsHistoryLimit: new(int32(100)),
		}
		create(owners[i])
	}
	for i := range hooks {
		hook := &maintenancev1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: fmt.Sprintf("hook-%03d", i)}}
		hook.Spec = maintenancev1beta1.UpgradeJobHookSpec{
			Events: []maintenancev1beta1.HookEvent{maintenancev1beta1.EventStart}, Run: maintenancev1beta1.HookRunAll, FailurePolicy: maintenancev1beta1.HookFailureIgnore,
			Template: maintenancev1beta1.HookJobTemplate{Spec: runtime.RawExtension{Raw: []byte(`{"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "hook", "image": "example.com/hook"}]}}}`)}},
		}
		create(hook)
	}
	ended := metav1.NewTime(time.Now().Add(-24 * time.Hour).Truncate(time.Second))
	for i := range jobs {
		owner := owners[i%configs]
		start := metav1.NewTime(time.Now().Add(-time.Duration(i+48) * time.Hour).UTC().Truncate(time.Second))
		job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: devcluster.OperatorNamespace, Name: fmt.Sprintf("job-%03d", i), Labels: map[string]string{maintenancev1beta1.ConfigLabel: string(owner.UID)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: maintenancev1beta1.GroupVersion.String(), Kind: "UpgradeConfig", Name: owner.Name, UID: owner.UID, Controller: new(true)}},
		}}
		job.Spec.StartAfter, job.Spec.StartBefore = maintenancev1beta1.Timestamp(start.Format(time.RFC3339)), maintenancev1beta1.Timestamp(start.Add(time.Hour).UTC().Format(time.RFC3339))
		create(job)
		job.Status.History = []history.Record{{Attempt: 1, Phase: history.PhaseUpgraded, UpgradeAt: &start, StartTime: &start, CompleteTime: &ended}}
		if err := user.Status().Update(tb.Context(), job); err != nil {
			tb.Fatal(err)
		}
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package upgradejobhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

const namespace = devcluster.OperatorNamespace

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	m.Run()
}

// register returns the upgraders of UpgradeConfigs. This test has no UpgradeConfigs.
func register(deps upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
	return map[string]upgraders.ClusterUpgrader{"OSD": upgraders.OSD{Deps: deps}}, nil
}

// testEnv is a dev cluster with the operator, and a receiver for requests of hooks.
type testEnv struct {
	t       *testing.T
	cluster *devcluster.Cluster
	client  client.Client
	url     string

	mu       sync.Mutex
	received []string
}

func start(t *testing.T) *testEnv {
	t.Helper()
	e := &testEnv{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.received = append(e.received, string(body))
	}))
	t.Cleanup(server.Close)
	e.url = server.URL
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	spec := openshiftsim.ClusterSpec{Speed: 240, Masters: 1, Workers: 1, Releases: []updategraph.Release{
		{Version: "4.20.5", Channels: []string{"stable-4.20"}}, {Version: "4.20.6", Channels: []string{"stable-4.20"}},
	}}
	var err error
	e.cluster, err = devcluster.Start(ctx, devcluster.Options{Dir: t.TempDir(), Spec: spec})
	e.must(err)
	t.Cleanup(func() {
		if err := e.cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	e.must(e.cluster.Deploy(ctx, "../../.."))
	scheme, err := devcluster.Scheme()
	e.must(err)
	e.must(errors.Join(upgradev1alpha1.AddToScheme(scheme), maintenancev1beta1.AddToScheme(scheme)))
	e.client, err = client.New(e.cluster.RESTConfig(), client.Options{Scheme: scheme})
	e.must(err)
	e.runOperator()
	return e
}

// runOperator runs the operator with its own permissions until the test ends.
func (e *testEnv) runOperator() {
	t := e.t
	t.Helper()
	access, err := e.cluster.ServiceAccountConfig(t.Context(), namespace, devcluster.OperatorServiceAccount)
	e.must(err)
	file := filepath.Join(t.TempDir(), "config.yaml")
	e.must(os.WriteFile(file, []byte("apiVersion: config.upgrade.managed.openshift.io/v1alpha1\nkind: OperatorConfig\nalerts: {url: \"\"}\nalertmanager: {url: \"\"}\n"), 0o600))
	options := manager.Options{Namespace: namespace, ConfigFile: file, MetricsBind: "0", HealthBind: "0", LogLevel: "info", LogFormat: "json"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- operator.Run(ctx, options, access, logr.Discard(), clock.RealClock{}, register)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (e *testEnv) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *testEnv) create(objects ...client.Object) {
	e.t.Helper()
	for _, object := range objects {
		e.must(e.client.Create(e.t.Context(), object))
	}
}

// eventually polls until a function returns an empty text. On a timeout, it fails with the last
// text.
func (e *testEnv) eventually(limit time.Duration, missing func() string) {
	e.t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		last := missing()
		if last == "" {
			return
		}
		select {
		case <-deadline.C:
			e.t.Fatal(last)
		case <-ticker.C:
		}
	}
}

func (e *testEnv) record(name string) history.Record {
	e.t.Helper()
	var job maintenancev1beta1.UpgradeJob
	e.must(e.client.Get(e.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &job))
	if len(job.Status.History) == 0 {
		return history.Record{}
	}
	return job.Status.History[0]
}

// awaitEnd waits until an UpgradeJob has ended and no Job of a hook has a finalizer.
func (e *testEnv) awaitEnd(name string, limit time.Duration) history.Record {
	e.t.Helper()
	e.eventually(limit, func() string {
		if record := e.record(name); record.CompleteTime == nil {
			text, err := json.Marshal(record.Conditions)
			e.must(err)
			return "the UpgradeJob has not ended: " + string(text)
		}
		for _, job := range e.jobs() {
			if len(job.Finalizers) > 0 && job.Annotations["managedupgrade.appuio.io/upgradejob"] == name {
				return "a Job has finalizers: " + job.Name + " " + strings.Join(job.Finalizers, " ")
			}
		}
		return ""
	})
	return e.record(name)
}

func (e *testEnv) jobs() []batchv1.Job {
	e.t.Helper()
	var jobs batchv1.JobList
	e.must(e.client.List(e.t.Context(), &jobs, client.InNamespace(namespace)))
	return jobs.Items
}

// jobOf returns the Job of an item of an UpgradeJob, or nil if there is none.
func (e *testEnv) jobOf(upgrade, item string) *batchv1.Job {
	e.t.Helper()
	jobs := e.jobs()
	i := slices.IndexFunc(jobs, func(job batchv1.Job) bool {
		return job.Annotations["managedupgrade.appuio.io/upgradejob"] == upgrade && job.Annotations["managedupgrade.appuio.io/item"] == item
	})
	if i < 0 {
		return nil
	}
	return &jobs[i]
}

// itemOf returns an item of a record in the form "Failed: message".
func itemOf(record history.Record, name string) string {
	for _, c := range record.Conditions {
		for _, item := range c.Items {
			if item.Name == name {
				return item.Status + ": " + item.Message
			}
		}
	}
	return "none"
}

func upgradeJob(name string, labels map[string]string) *maintenancev1beta1.UpgradeJob {
	now := time.Now().UTC()
	return &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: maintenancev1beta1.UpgradeJobSpec{
			StartAfter:  maintenancev1beta1.Timestamp(now.Add(-time.Second).Format(time.RFC3339)),
			StartBefore: maintenancev1beta1.Timestamp(now.Add(time.Hour).Format(time.RFC3339)),
		},
	}
}

func hookOf(name, pod string, annotations map[string]string, job map[string]any, selected string, events ...maintenancev1beta1.HookEvent) *maintenancev1beta1.UpgradeJobHook {
	spec := map[string]any{"backoffLimit": 0, "template": map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": json.RawMessage(pod)}}
	maps.Copy(spec, job)
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	return &maintenancev1beta1.UpgradeJobHook{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: maintenancev1beta1.UpgradeJobHookSpec{
			Events: events, Selector: &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"hooks": selected}},
			Template: maintenancev1beta1.HookJobTemplate{Spec: runtime.RawExtension{Raw: raw}},
		},
	}
}

const onePod = `{"containers":[{"name":"a","image":"example.com/a:1"}]}`

// seedHook is the hook of the design with another receiver. Its curl runs as a local process.
const seedHook = `
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeJobHook
metadata:
  name: cluster-upgrade-notify-ext
  namespace: %s
spec:
  events:
    - Create
    - Start
    - Finish
    - Success
    - Failure
  run: Next # [Next, All]
  failurePolicy: Ignore # [Abort, Ignore]
  selector:
    matchLabels:
      upgrade-config: cluster-upgrade
  template:
    spec:
      template:
        metadata:
          annotations:
            devcluster.openshift.io/run: local
        spec:
          containers:
          - name: notify
            image: curlimages/curl:8.1.2 # sponsored OSS image
            args:
            - -XPOST
            - -H
            - "Content-Type: application/json"
            - -d
            - '{"event": $(EVENT_NAME), "version": $(JOB_spec_desiredVersion_image)}'
            - %s
          restartPolicy: Never
      backoffLimit: 3
      ttlSecondsAfterFinished: 1
      activeDeadlineSeconds: 300 # 5m
`

// The cases share a cluster that runs one upgrade at a time.
func TestHooks_on_an_API_server(t *testing.T) {
	e := start(t)
	t.Run("invalid templates", e.testInvalidTemplates)
	t.Run("hook of the design", e.testSeedHook)
	t.Run("time to live and deletion", e.testDeletion)
	t.Run("quota", e.testQuota)
	t.Run("outcomes", e.testOutcomes)
	t.Run("two upgrades at once", e.testNext)
	t.Run("deleted UpgradeJob", e.testDeletedUpgradeJob)
	t.Run("hooks that change", e.testChanges)
	t.Run("large annotations", e.testLargeAnnotations)
	e.t = t
	e.checkLeftBehind()
}

// checkLeftBehind fails if anything remains of ended upgrades.
func (e *testEnv) checkLeftBehind() {
	e.t.Helper()
	e.eventually(time.Minute, func() string {
		series, err := ctrlmetrics.Registry.Gather()
		e.must(err)
		scene := aftermath.Scene{Objects: e.client, Namespace: namespace, Now: time.Now(), Series: series}
		if err := scene.Check(e.t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (e *testEnv) testInvalidTemplates(t *testing.T) {
	e.t = t
	never := maintenancev1beta1.EventSkip
	for name, tc := range map[string]struct{ pod, want string }{
		"valid":         {onePod, "True Valid"},
		"unknown-field": {`{"containers":[{"name":"a","image":"a","imagee":"b"}]}`, `unknown field "spec.template.spec.containers[0].imagee"`},
		"wrong-type":    {`{"containers":"a"}`, "False InvalidTemplate"},
		"no-image":      {`{"containers":[{"name":"a"}]}`, "spec.template.spec.containers[0].image: Required value"},
		"policy":        {`{"restartPolicy":"Always","containers":[{"name":"a","image":"a"}]}`, `spec.template.spec.restartPolicy: Required value`},
		"account":       {`{"serviceAccountName":"managed-upgrade-operator","containers":[{"name":"a","image":"a"}]}`, "False ServiceAccountNotAllowed"},
	} {
		e.create(hookOf(name, tc.pod, nil, nil, "none", never))
		e.eventually(time.Minute, func() string {
			var hook maintenancev1beta1.UpgradeJobHook
			e.must(e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &hook))
			accepted := apimeta.FindStatusCondition(hook.Status.Conditions, maintenancev1beta1.ConditionAccepted)
			if accepted == nil {
				return "hook " + name + " has no condition"
			}
			if text := string(accepted.Status) + " " + accepted.Reason + ": " + accepted.Message; !strings.Contains(text, tc.want) {
				return fmt.Sprintf("hook %s: got %s, want %s", name, text, tc.want)
			}
			return ""
		})
	}
	if jobs := e.jobs(); len(jobs) > 0 {
		t.Errorf("%d Jobs were created", len(jobs))
	}
}

func (e *testEnv) testSeedHook(t *testing.T) {
	e.t = t
	var hook maintenancev1beta1.UpgradeJobHook
	e.must(yaml.UnmarshalStrict(fmt.Appendf(nil, seedHook, namespace, e.url), &hook))
	e.create(&hook)
	var version configv1.ClusterVersion
	e.must(e.client.Get(t.Context(), client.ObjectKey{Name: "version"}, &version))
	release := version.Status.AvailableUpdates[0]
	upgrade := upgradeJob("upgrade", map[string]string{"upgrade-config": "cluster-upgrade"})
	upgrade.Spec.DesiredVersion = maintenancev1beta1.DesiredVersion{Version: release.Version, Image: release.Image}
	e.create(upgrade)
	record := e.awaitEnd("upgrade", 2*time.Minute)
	before := version.Generation
	e.must(e.client.Get(t.Context(), client.ObjectKeyFromObject(&version), &version))
	if n := version.Generation - before; n != 1 {
		t.Errorf("the spec of the ClusterVersion was changed %d times, want once", n)
	}
	if record.Phase != history.PhaseUpgraded {
		t.Errorf("the upgrade ended %s: %s: %s", record.Phase, record.Reason, record.Message)
	}
	var want []string
	for _, event := range []string{"Create", "Start", "Success", "Finish"} {
		want = append(want, fmt.Sprintf(`{"event": %q, "version": %q}`, event, release.Image))
		if got := itemOf(record, event+"/cluster-upgrade-notify-ext"); !strings.HasPrefix(got, "Succeeded: ") {
			t.Errorf("item of event %s: %s", event, got)
		}
	}
	e.mu.Lock()
	received := slices.Clone(e.received)
	e.mu.Unlock()
	if diff := cmp.Diff(want, received); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	e.eventually(time.Minute, func() string {
		if jobs := e.jobs(); len(jobs) > 0 {
			return fmt.Sprintf("%d Jobs are left after their time to live", len(jobs))
		}
		return ""
	})
}

// testDeletion checks that results outlive their Jobs. One Job is deleted after its time to live
// and one by a user while it runs, while the step waits for a third.
func (e *testEnv) testDeletion(t *testing.T) {
	e.t = t
	e.create(
		hookOf("short", onePod, nil, map[string]any{"ttlSecondsAfterFinished": 0}, "deletion", maintenancev1beta1.EventStart),
		hookOf("endless", onePod, map[string]string{"devcluster.openshift.io/never-ends": "true"}, nil, "deletion", maintenancev1beta1.EventStart),
		hookOf("slow", onePod, map[string]string{"devcluster.openshift.io/never-ends": "true"}, map[string]any{"activeDeadlineSeconds": 15}, "deletion", maintenancev1beta1.EventStart),
		upgradeJob("deletion", map[string]string{"hooks": "deletion"}),
	)
	e.eventually(time.Minute, func() string {
		short := e.jobOf("deletion", "Start/short")
		if short == nil || short.DeletionTimestamp == nil || len(short.Finalizers) == 0 {
			return fmt.Sprintf("the Job whose time to live has passed is not kept: %+v", short)
		}
		return ""
	})
	e.eventually(time.Minute, func() string {
		endless := e.jobOf("deletion", "Start/endless")
		if endless == nil {
			return "no Job"
		}
		e.must(e.client.Delete(t.Context(), endless, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		return ""
	})
	record := e.awaitEnd("deletion", time.Minute)
	for item, want := range map[string]string{
		"Start/short": "Succeeded: Job ", "Start/endless": "was deleted before it had ended; it is not run again", "Start/slow": "DeadlineExceeded",
	} {
		if got := itemOf(record, item); !strings.Contains(got, want) {
			t.Errorf("item %s: got %s, want %s", item, got, want)
		}
	}
	e.eventually(time.Minute, func() string {
		if e.jobOf("deletion", "Start/short") != nil || e.jobOf("deletion", "Start/endless") != nil {
			return "the deleted Jobs are left"
		}
		return ""
	})
}

func (e *testEnv) testQuota(t *testing.T) {
	e.t = t
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"}}
	quota.Spec.Hard = corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}
	e.create(quota)
	e.eventually(time.Minute, func() string {
		var current corev1.ResourceQuota
		e.must(e.client.Get(t.Context(), client.ObjectKeyFromObject(quota), &current))
		if len(current.Status.Hard) == 0 {
			return "the quota is not in effect"
		}
		return ""
	})
	e.create(hookOf("limited", onePod, nil, nil, "quota", maintenancev1beta1.EventStart), upgradeJob("quota", map[string]string{"hooks": "quota"}))
	record := e.awaitEnd("quota", time.Minute)
	if got := itemOf(record, "Start/limited"); !strings.HasPrefix(got, "Failed: Forbidden: ") || !strings.Contains(got, "exceeded quota: small") {
		t.Errorf("got %s", got)
	}
	e.must(e.client.Delete(t.Context(), quota))
}

// testOutcomes checks the hooks of an upgrade that a hook aborts, and of a skipped upgrade.
func (e *testEnv) testOutcomes(t *testing.T) {
	e.t = t
	aborting := hookOf("approve", onePod, map[string]string{"devcluster.openshift.io/exit-code": "1"}, nil, "aborted", maintenancev1beta1.EventStart)
	aborting.Spec.FailurePolicy = maintenancev1beta1.HookFailureAbort
	now := time.Now().UTC()
	e.create(aborting, &maintenancev1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "freeze"},
		Spec: maintenancev1beta1.UpgradeSuspensionWindowSpec{
			Start: maintenancev1beta1.Timestamp(now.Add(-time.Hour).Format(time.RFC3339)), End: maintenancev1beta1.Timestamp(now.Add(time.Hour).Format(time.RFC3339)),
			JobSelector: &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"hooks": "suspended"}},
		},
	})
	for _, name := range []string{"aborted", "suspended"} {
		e.create(
			hookOf("report-"+name, onePod, nil, nil, name, maintenancev1beta1.EventSuccess, maintenancev1beta1.EventFailure, maintenancev1beta1.EventSkip, maintenancev1beta1.EventFinish),
			upgradeJob(name, map[string]string{"hooks": name}),
		)
	}
	for name, want := range map[string]struct {
		phase history.Phase
		ran   map[string]bool // by event
	}{
		"aborted":   {history.PhaseFailed, map[string]bool{"Success": false, "Failure": true, "Skip": false, "Finish": true}},
		"suspended": {history.PhaseSkipped, map[string]bool{"Success": false, "Failure": false, "Skip": true, "Finish": true}},
	} {
		record := e.awaitEnd(name, 2*time.Minute)
		if record.Phase != want.phase {
			t.Errorf("%s: the upgrade ended %s: %s: %s", name, record.Phase, record.Reason, record.Message)
		}
		for event, ran := range want.ran {
			if got := itemOf(record, event+"/report-"+name); strings.HasPrefix(got, "Succeeded: ") != ran {
				t.Errorf("%s: that the hook ran on event %s is %t, by its item: %s", name, event, !ran, got)
			}
		}
	}
}

// testNext creates two upgrades at the same time that select the same hook for the next upgrade.
func (e *testEnv) testNext(t *testing.T) {
	e.t = t
	hook := hookOf("once", onePod, nil, nil, "next", maintenancev1beta1.EventCreate, maintenancev1beta1.EventFinish)
	hook.Spec.Run = maintenancev1beta1.HookRunNext
	e.create(hook, upgradeJob("first", map[string]string{"hooks": "next"}), upgradeJob("second", map[string]string{"hooks": "next"}))
	records := map[string]history.Record{"first": e.awaitEnd("first", 2*time.Minute), "second": e.awaitEnd("second", 2*time.Minute)}
	e.must(e.client.Get(t.Context(), client.ObjectKeyFromObject(hook), hook))
	if hook.Status.ClaimedBy == nil {
		t.Fatal("the hook is not claimed")
	}
	for name, record := range records {
		for _, event := range []string{"Create", "Finish"} {
			ran, claimed := strings.HasPrefix(itemOf(record, event+"/once"), "Succeeded: "), hook.Status.ClaimedBy.Name == name
			if ran != claimed {
				t.Errorf("the hook is claimed by %s, and that it ran on event %s of %s is %t", hook.Status.ClaimedBy.Name, event, name, ran)
			}
		}
	}
}

func (e *testEnv) testDeletedUpgradeJob(t *testing.T) {
	e.t = t
	e.create(
		hookOf("hung", onePod, map[string]string{"devcluster.openshift.io/never-ends": "true"}, nil, "deleted", maintenancev1beta1.EventCreate),
		upgradeJob("deleted", map[string]string{"hooks": "deleted"}),
	)
	e.eventually(time.Minute, func() string {
		if e.jobOf("deleted", "Create/hung") == nil {
			return "no Job"
		}
		return ""
	})
	e.must(e.client.Delete(t.Context(), upgradeJob("deleted", nil)))
	e.eventually(time.Minute, func() string {
		if job := e.jobOf("deleted", "Create/hung"); job != nil {
			return fmt.Sprintf("the Job is left: deleted at %s, finalizers %s", job.DeletionTimestamp, job.Finalizers)
		}
		return ""
	})
}

// testChanges creates, edits, and deletes hooks in the middle of an event, and deletes a Job
// together with its finalizer. Changes apply to later events.
func (e *testEnv) testChanges(t *testing.T) {
	e.t = t
	hangs, short := map[string]string{"devcluster.openshift.io/never-ends": "true"}, map[string]any{"activeDeadlineSeconds": 15}
	events := []maintenancev1beta1.HookEvent{maintenancev1beta1.EventStart, maintenancev1beta1.EventFinish}
	edited, removed := hookOf("edited", onePod, hangs, short, "changes", events...), hookOf("removed", onePod, hangs, short, "changes", events...)
	e.create(edited, removed, hookOf("forced", onePod, hangs, nil, "changes", maintenancev1beta1.EventStart), upgradeJob("changes", map[string]string{"hooks": "changes"}))
	e.eventually(time.Minute, func() string {
		for _, name := range []string{"edited", "removed", "forced"} {
			if e.jobOf("changes", "Start/"+name) == nil {
				return "there is no Job of hook " + name
			}
		}
		return ""
	})
	template := hookOf("edited", onePod, nil, nil, "changes").Spec.Template
	exits, err := json.Marshal(template)
	e.must(err)
	e.must(e.client.Patch(t.Context(), edited, client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op": "replace", "path": "/spec/template", "value": %s}]`, exits))))
	e.must(e.client.Delete(t.Context(), removed))
	e.create(hookOf("late", onePod, nil, nil, "changes", events...))
	e.must(e.client.Delete(t.Context(), e.jobOf("changes", "Start/forced"), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	e.eventually(time.Minute, func() string {
		forced := e.jobOf("changes", "Start/forced")
		if forced == nil {
			return ""
		}
		forced.Finalizers = nil
		if err := e.client.Update(t.Context(), forced); err != nil { // another controller writes it concurrently
			return err.Error()
		}
		return "the Job is still there"
	})
	record := e.awaitEnd("changes", 2*time.Minute)
	for item, want := range map[string]string{
		"Start/edited": "DeadlineExceeded", "Start/removed": "DeadlineExceeded", "Start/forced": "Failed: ", "Start/late": "none",
		"Finish/edited": "Succeeded: ", "Finish/removed": "none", "Finish/late": "Succeeded: ",
	} {
		if got := itemOf(record, item); !strings.Contains(got, want) {
			t.Errorf("item %s: got %s, want %s", item, got, want)
		}
	}
}

// testLargeAnnotations runs a hook as a local process with the environment of an UpgradeJob whose
// annotations have the maximum size. The annotations are omitted, so the process starts despite the
// limits of the system.
func (e *testEnv) testLargeAnnotations(t *testing.T) {
	e.t = t
	pod := fmt.Sprintf(`{"containers":[{"name":"a","image":"example.com/a:1","command":["sh","-c","curl -sS -XPOST -d \"$JOB_metadata_name $JOB_TRUNCATED\" %s"]}]}`, e.url)
	e.create(hookOf("large", pod, map[string]string{"devcluster.openshift.io/run": "local"}, nil, "large", maintenancev1beta1.EventStart))
	for name, tc := range map[string]struct {
		size      int
		truncated string
	}{"small-annotations": {1 << 10, ""}, "large-annotations": {256<<10 - 100, "true"}} {
		upgrade := upgradeJob(name, map[string]string{"hooks": "large"})
		upgrade.Annotations = map[string]string{"example.com/large": strings.Repeat("$", tc.size)}
		e.create(upgrade)
		record := e.awaitEnd(name, time.Minute)
		if got := itemOf(record, "Start/large"); !strings.HasPrefix(got, "Succeeded: ") {
			t.Errorf("%s: %s", name, got)
		}
		want := fmt.Sprintf("%q %s", name, tc.truncated)
		e.mu.Lock()
		if last := e.received[len(e.received)-1]; last != want {
			t.Errorf("%s: received %.100q, want %q", name, last, want)
		}
		e.mu.Unlock()
	}
}

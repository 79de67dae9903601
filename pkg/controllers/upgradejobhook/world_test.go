// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package upgradejobhook_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejobhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

const namespace = "upgrades"

// world is an API server with the CRDs of this project, nodes, the controllers of Jobs, and the
// operator: the controllers under test, and one that runs UpgradeJobs by a runbook of hooks.
type world struct {
	*simulation.World
	t   *testing.T
	api client.WithWatch

	config   config.Hooks
	pools    []string        // that the upgrade delays
	hold     time.Duration   // how long the upgrade takes before it commences
	jobPlan  simulation.Plan // of the kube-controller-manager
	plan     simulation.Plan // of the operator
	program  simulation.Program
	process  *simulation.Process
	registry *prometheus.Registry
	created  map[string]int // Jobs that were created, by item
	events   []string       // that the operator wrote
	requests int            // of the operator to the API server
	changed  chan event.GenericEvent
}

var genericEvent = event.GenericEvent{Object: &v1beta1.UpgradeJobHook{}}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	definitions, err := openshift.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		World: simulation.New(simulation.Options{Definitions: definitions, MaxBurst: 2000}), t: t, created: map[string]int{},
		config: config.Default().Hooks, changed: make(chan event.GenericEvent, 1),
	}
	w.api = w.Client("test")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-0"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.must(w.Add(node))
	w.must(openshift.StartPods(w.World, func(r simulation.Request) simulation.Fault {
		if w.jobPlan == nil {
			return simulation.Fault{}
		}
		return w.jobPlan(r)
	}))
	w.Observe(w.observe)
	w.create(objects...)
	w.program = simulation.Program{Name: "operator", Controllers: w.controllers, Plan: func(r simulation.Request) simulation.Fault {
		if !r.Cached {
			w.requests++
		}
		if w.plan == nil {
			return simulation.Fault{}
		}
		return w.plan(r)
	}}
	return w
}

func (w *world) start() {
	w.t.Helper()
	process, err := w.World.Start(&w.program)
	w.must(err)
	w.process = process
}

func (w *world) observe(change simulation.Change) {
	if job, ok := change.New.(*batchv1.Job); ok && change.Old == nil && change.Actor == "operator" {
		w.created[job.Annotations["managedupgrade.appuio.io/upgradejob"]+": "+job.Annotations["managedupgrade.appuio.io/item"]]++
	}
	if event, ok := change.New.(*corev1.Event); ok && change.Old == nil {
		w.events = append(w.events, event.Type+" "+event.Reason+" "+event.InvolvedObject.Name+": "+event.Message)
	}
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	w.registry = prometheus.NewRegistry()
	counted, err := metrics.NewHooks(w.registry)
	if err != nil {
		return nil, err
	}
	events := &notify.Events{Client: env.Client, Clock: env.Clock}
	runner := &hooks.Runner{
		Client: env.Client, Live: env.Live, Config: func() config.Hooks { return w.config }, Publisher: events, Metrics: counted,
	}
	reconciler := &upgradejobhook.Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock, WatchNamespaces: []string{namespace}, Runner: runner,
		ConfigChanged: w.changed, Publisher: events, Metrics: counted,
	}
	return append(reconciler.Controllers(), w.upgrades(env, runner)), nil
}

// upgrades runs UpgradeJobs by a runbook of hooks: as the controller of UpgradeJobs does, but without
// a cluster.
func (w *world) upgrades(env simulation.Env, runner *hooks.Runner) manager.Controller {
	kind := facts.UpgradeJobs([]string{namespace})
	kind.Requests = manager.Self
	saved := map[client.ObjectKey]string{} // resource versions
	return manager.Controller{
		Name: "upgradejob", Reads: []manager.Kind{kind, facts.HookJobs([]string{namespace}), facts.UpgradeJobHooks([]string{namespace})},
		Reconciler: reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			var job v1beta1.UpgradeJob
			if err := env.Client.Get(ctx, request.NamespacedName, &job); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			if version := saved[request.NamespacedName]; version != "" && version != job.ResourceVersion {
				var live v1beta1.UpgradeJob
				if err := env.Live.Get(ctx, request.NamespacedName, &live); err != nil || live.ResourceVersion != job.ResourceVersion {
					return reconcile.Result{RequeueAfter: time.Second}, client.IgnoreNotFound(err)
				}
			}
			record := history.Record{Attempt: 1, UpgradeAt: &metav1.Time{Time: job.CreationTimestamp.Time}}
			if len(job.Status.History) > 0 {
				record = job.Status.History[0]
			}
			if record.Finished() {
				return reconcile.Result{}, nil
			}
			save := func(ctx context.Context, record history.Record) error {
				before := job.DeepCopy()
				job.Status.History = []history.Record{record}
				err := env.Client.Status().Patch(ctx, &job, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
				saved[request.NamespacedName] = job.ResourceVersion
				return err
			}
			e := &engine.Engine{Clock: env.Clock, Save: save}
			book, constraints := w.book(&job, record, runner)
			record, next, err := e.Pass(ctx, book, record, constraints)
			if apierrors.IsConflict(err) {
				return reconcile.Result{RequeueAfter: time.Second}, nil
			}
			if err != nil {
				return reconcile.Result{}, err
			}
			if engine.Summarize(book, record, env.Clock.Now(), constraints).Finished() {
				record.CompleteTime = &metav1.Time{Time: env.Clock.Now().Truncate(time.Second)}
				return reconcile.Result{}, save(ctx, record)
			}
			return reconcile.Result{RequeueAfter: max(next.Sub(env.Clock.Now()), time.Second)}, nil
		}),
	}
}

// book returns the runbook of an UpgradeJob. An UpgradeJob named "broken…" fails after its commit.
func (w *world) book(job *v1beta1.UpgradeJob, record history.Record, runner *hooks.Runner) (engine.Runbook, engine.Constraints) {
	hooksOf := func(name v1beta1.HookEvent) engine.Step {
		return engine.Step{Name: string(name) + "HooksDone", Doc: "Runs hooks.", Do: runner.Event(job, record, hooks.Event{Name: name, Reason: "Test", Message: "test"})}
	}
	step := func(name string, do engine.UpgradeStep) engine.Step {
		return engine.Step{Name: name, Doc: "Acts.", Do: do}
	}
	commit := step("UpgradeCommenced", func(_ context.Context, run engine.Run) (engine.Result, error) {
		if at := run.Since.Add(w.hold); run.Now.Before(at) {
			return engine.WaitUntil(at, "Held", "held"), nil
		}
		return engine.Done("commenced"), nil
	})
	commit.Commits, commit.Reached = true, func(context.Context) (bool, error) { return false, nil }
	outcome := step("PostHealthCheck", func(context.Context, engine.Run) (engine.Result, error) {
		if strings.HasPrefix(job.Name, "broken") {
			return engine.Fail("UnhealthyAfterUpgrade", "unhealthy"), nil
		}
		return engine.Done("healthy"), nil
	})
	last := hooksOf(v1beta1.EventSuccess)
	if failed := slices.ContainsFunc(record.Conditions, func(c history.StepCondition) bool { return engine.Classify(c) == engine.ClassFailed }); failed {
		last.Do = func(context.Context, engine.Run) (engine.Result, error) { return engine.Skip("Failed", "failed"), nil }
	}
	book := engine.Runbook{
		Steps: []engine.Step{
			hooksOf(v1beta1.EventCreate), hooksOf(v1beta1.EventStart), hooksOf(v1beta1.EventUpgradeStart), commit,
			hooksOf(v1beta1.EventUpgradeComplete), step("DelayedPoolsUpdated", w.delayedPools(job, record, runner)), outcome,
		},
		Cleanup: []engine.Step{hooksOf(v1beta1.EventFailure)},
		Finally: []engine.Step{last, hooksOf(v1beta1.EventFinish)},
	}
	constraints := engine.Constraints{CommitBy: job.CreationTimestamp.Add(24 * time.Hour)}
	if job.DeletionTimestamp != nil {
		constraints.Cancel = "deleted"
	}
	return book, constraints
}

// delayedPools runs the events of all pools at a time, each pool's in order.
func (w *world) delayedPools(job *v1beta1.UpgradeJob, record history.Record, runner *hooks.Runner) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		var items []history.StepItem
		waiting := false
		for _, pool := range w.pools {
			for _, name := range []v1beta1.HookEvent{v1beta1.EventMachineConfigPoolUnpause, v1beta1.EventMachineConfigPoolUpdated} {
				result, err := runner.Event(job, record, hooks.Event{Name: name, Pool: pool})(ctx, run)
				if err != nil || result.Failed() {
					return result, err
				}
				items = append(items, result.Items()...)
				if !result.Passed() {
					waiting = true
					break
				}
			}
		}
		if waiting {
			return engine.Wait("PoolsUpdating", "waiting for pools").WithItems(items...), nil
		}
		return engine.Done("updated").WithItems(items...), nil
	}
}

// hasSeries reports whether there are series of a hook.
func (w *world) hasSeries(hook string) bool {
	return slices.ContainsFunc(w.series(), func(m *dto.Metric) bool { return labelOf(m, "hook") == hook })
}

// count returns how often a hook has ended.
func (w *world) count(hook, event, outcome string) float64 {
	for _, m := range w.series() {
		if labelOf(m, "hook") == hook && labelOf(m, "event") == event && labelOf(m, "outcome") == outcome {
			return m.GetCounter().GetValue()
		}
	}
	return -1
}

func (w *world) series() []*dto.Metric {
	w.t.Helper()
	families, err := w.registry.Gather()
	w.must(err)
	var all []*dto.Metric
	for _, family := range families {
		if family.GetName() == "managed_upgrade_hook_runs_total" {
			all = append(all, family.GetMetric()...)
		}
	}
	return all
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, object := range objects {
		w.must(w.api.Create(w.t.Context(), object))
	}
}

func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	w.must(w.RunFor(d))
}

// runUntil runs until the UpgradeJob has ended.
func (w *world) runUntil(job string, limit time.Duration) history.Record {
	w.t.Helper()
	w.must(w.RunUntil(limit, func() bool { record := w.record(job); return record.CompleteTime != nil && w.Quiet() }))
	return w.record(job)
}

// record returns the record of an UpgradeJob; it is empty if there is none.
func (w *world) record(name string) history.Record {
	w.t.Helper()
	var job v1beta1.UpgradeJob
	err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &job)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if len(job.Status.History) == 0 {
		return history.Record{}
	}
	return job.Status.History[0]
}

func (w *world) hook(name string) *v1beta1.UpgradeJobHook {
	w.t.Helper()
	var hook v1beta1.UpgradeJobHook
	w.must(w.api.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &hook))
	return &hook
}

func (w *world) jobs() []batchv1.Job {
	w.t.Helper()
	var jobs batchv1.JobList
	w.must(w.api.List(w.t.Context(), &jobs))
	return jobs.Items
}

// jobOf returns the Job of an item.
func (w *world) jobOf(item string) *batchv1.Job {
	w.t.Helper()
	jobs := w.jobs()
	i := slices.IndexFunc(jobs, func(job batchv1.Job) bool { return job.Annotations["managedupgrade.appuio.io/item"] == item })
	if i < 0 {
		w.t.Fatalf("no Job of item %s", item)
	}
	return &jobs[i]
}

// step returns a step of a record as in "Done: 1 hook completed [Start/a Succeeded]".
func step(record history.Record, name string) string {
	for _, c := range record.Conditions {
		if c.Type != name {
			continue
		}
		text := c.Reason + ": " + c.Message
		for _, item := range c.Items {
			text += fmt.Sprintf(" [%s %s]", item.Name, item.Status)
		}
		return text
	}
	return ""
}

// item returns an item of a record as in "Failed: message".
func item(record history.Record, name string) string {
	for _, c := range record.Conditions {
		for _, item := range c.Items {
			if item.Name == name {
				return item.Status + ": " + item.Message
			}
		}
	}
	return ""
}

// checkReleased fails unless no Job has our finalizer.
func (w *world) checkReleased() {
	w.t.Helper()
	for _, job := range w.jobs() {
		if slices.Contains(job.Finalizers, hooks.Finalizer) {
			w.t.Errorf("Job %s of item %s has the finalizer", job.Name, job.Annotations["managedupgrade.appuio.io/item"])
		}
	}
}

func newUpgrade(name string, labels map[string]string) *v1beta1.UpgradeJob {
	return &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       v1beta1.UpgradeJobSpec{StartAfter: "2026-03-01T12:00:00Z", StartBefore: "2026-03-02T12:00:00Z", DesiredVersion: v1beta1.DesiredVersion{Version: "4.20.6", Image: "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("1", 64)}},
	}
}

// pod is the template of a pod with annotations that choose its behavior.
func podTemplate(annotations string) string {
	return `{"backoffLimit":0,"template":{"metadata":{"annotations":{` + annotations + `}},"spec":{"containers":[{"name":"notify","image":"example.com/notify:1"}]}}}`
}

var (
	exits0     = podTemplate("")
	exits1     = podTemplate(`"` + kubelet.ExitCode + `":"1"`)
	takes10m   = podTemplate(`"` + kubelet.Duration + `":"10m"`)
	neverEnds  = podTemplate(`"` + kubelet.NeverEnds + `":"true"`)
	imageFails = podTemplate(`"` + kubelet.ImagePull + `":"fail"`)
)

func newHook(name, template string, events ...v1beta1.HookEvent) *v1beta1.UpgradeJobHook {
	return &v1beta1.UpgradeJobHook{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.UpgradeJobHookSpec{
			Events: events, Template: v1beta1.HookJobTemplate{Spec: runtime.RawExtension{Raw: []byte(template)}},
		},
	}
}

func aborting(hook *v1beta1.UpgradeJobHook) *v1beta1.UpgradeJobHook {
	hook.Spec.FailurePolicy = v1beta1.HookFailureAbort
	return hook
}

func next(hook *v1beta1.UpgradeJobHook) *v1beta1.UpgradeJobHook {
	hook.Spec.Run = v1beta1.HookRunNext
	return hook
}

func selecting(hook *v1beta1.UpgradeJobHook, labels map[string]string) *v1beta1.UpgradeJobHook {
	hook.Spec.Selector = &v1beta1.LabelSelector{MatchLabels: labels}
	return hook
}

var errRefused = errors.New("refused")

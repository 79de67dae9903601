// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const namespace = "maintenance"

var (
	weekly = client.ObjectKey{Namespace: namespace, Name: "weekly"}
	// monday is when most worlds begin; the slots of weekly are on Tuesdays at 22:00 in Zurich.
	monday  = time.Date(2027, 3, 1, 12, 0, 0, 700_000_000, time.UTC)
	tuesday = time.Date(2027, 3, 2, 21, 0, 0, 0, time.UTC)
)

const week = 7 * 24 * time.Hour

// config returns the UpgradeConfig weekly with edits.
func config(edits ...func(*v1beta1.UpgradeConfig)) *v1beta1.UpgradeConfig {
	cfg := &v1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: weekly.Namespace, Name: weekly.Name, Labels: map[string]string{"team": "a"}},
		Spec: v1beta1.UpgradeConfigSpec{
			Schedule: v1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2", Location: "Europe/Zurich"},
			JobTemplate: v1beta1.UpgradeJobTemplate{Metadata: &v1beta1.TemplateMetadata{
				Labels: map[string]string{"upgrade-config": "weekly"}, Annotations: map[string]string{"note": "x", v1beta1.RetryAnnotation: "x"},
			}},
		},
	}
	for _, edit := range edits {
		edit(cfg)
	}
	return cfg
}

func pinned(pin v1beta1.Duration) func(*v1beta1.UpgradeConfig) {
	return func(cfg *v1beta1.UpgradeConfig) { cfg.Spec.PinVersionWindow = &pin }
}

// definitions are those of this project, compiled once.
var definitions = sync.OnceValues(func() ([]*simulation.Definition, error) {
	return simulation.Definitions(os.DirFS("../../../deploy/crds"))
})

// world is a cluster with the controller. UpgradeJobs end when they start, as endJob decides.
type world struct {
	*simulation.World
	t          testing.TB
	client     client.Client
	program    simulation.Program
	process    *simulation.Process
	reconciler *Reconciler // of this life of the process

	registry    *prometheus.Registry
	lives       int
	reconciles  int
	poolProblem string
	plan        simulation.Plan // of the writes; nil serves all
	requests    []string        // of the operator to the API server

	phase   history.Phase // in which UpgradeJobs end; empty leaves them to the test
	reason  string        // for which they end
	created map[string]int
	starts  []string // of all UpgradeJobs that were ever created, with their versions
}

func newWorld(tb testing.TB, objects ...client.Object) *world {
	tb.Helper()
	return newWorldAt(tb, monday, objects...)
}

func newWorldAt(tb testing.TB, start time.Time, objects ...client.Object) *world {
	tb.Helper()
	own, err := definitions()
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{
		World: simulation.New(simulation.Options{Definitions: own, Start: start, MaxBurst: 2000}),
		t:     tb, phase: history.PhaseUpgraded, created: map[string]int{},
	}
	w.client = w.Client("test")
	w.must(w.Add(&configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: clusterstate.VersionKey.Name, Generation: 1},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "bc75be34-e92d-4745-bb9d-8ec39e877854"},
	}))
	w.install("4.20.5")
	w.offer("4.20.6")
	for _, object := range objects {
		w.must(w.client.Create(tb.Context(), object))
	}
	w.Observe(w.observe)
	w.program = simulation.Program{Name: "operator", Controllers: w.controllers, Plan: w.decide, OnCrash: w.start}
	w.start()
	return w
}

func (w *world) start() {
	w.lives++
	process, err := w.Start(&w.program)
	w.must(err)
	w.process = process
}

// restart ends the life of the operator and begins another one.
func (w *world) restart() {
	w.process.Kill()
	w.start()
}

// outage lets d pass without the operator.
func (w *world) outage(d time.Duration) {
	w.process.Kill()
	w.runFor(d)
	w.start()
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	w.registry = prometheus.NewPedanticRegistry()
	schedules, err := metrics.NewSchedules(w.registry, Results()...)
	if err != nil {
		return nil, err
	}
	r := &Reconciler{Clock: env.Clock, Events: &notify.Events{Client: env.Client, Clock: env.Clock}, Metrics: schedules}
	r.PoolProblem = func(context.Context, *v1beta1.UpgradeJob) (string, error) { return w.poolProblem, nil }
	w.reconciler = r
	c := r.Controller()
	c.Reconciler = reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		w.reconciles++
		return r.Reconcile(ctx, request)
	})
	return []manager.Controller{c}, nil
}

// decide records the requests to the API server and applies the plan.
func (w *world) decide(r simulation.Request) simulation.Fault {
	if !r.Cached || r.IsWrite() {
		text := r.Verb + " " + r.Kind
		if r.Subresource != "" {
			text += "/" + r.Subresource
		}
		w.requests = append(w.requests, text)
	}
	if r.IsWrite() && w.plan != nil {
		return w.plan(r)
	}
	return simulation.Fault{}
}

// observe counts the UpgradeJobs of each slot, and ends those that start.
func (w *world) observe(change simulation.Change) {
	job, ok := change.New.(*v1beta1.UpgradeJob)
	if !ok || change.Old != nil {
		return
	}
	key := job.Labels[v1beta1.ConfigLabel] + "/" + job.Labels[v1beta1.SlotLabel]
	if change.Actor != "operator" {
		return
	}
	if w.created[key]++; w.created[key] > 1 {
		w.Fail(fmt.Errorf("slot %s has %d UpgradeJobs", key, w.created[key]))
	}
	start, err := maintenance.Time(job.Spec.StartAfter)
	w.must(err)
	w.starts = append(w.starts, strings.TrimSpace(start.UTC().Format("01-02 15:04")+" "+job.Spec.DesiredVersion.Version))
	if w.phase != "" {
		w.After(start.Sub(w.Now())+time.Minute, func() { w.endJob(job.Name, w.phase) })
	}
}

// endJob writes the status of an UpgradeJob that has ended, unless it was deleted.
func (w *world) endJob(name string, phase history.Phase) {
	var job v1beta1.UpgradeJob
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &job)
	if apierrors.IsNotFound(err) {
		return
	}
	w.must(err)
	now := metav1.NewTime(w.Now().Truncate(time.Second))
	job.Status.History = []history.Record{{Version: job.Spec.DesiredVersion.Version, Attempt: 1, Phase: phase, Reason: w.reason, StartTime: &now, CompleteTime: &now}}
	w.must(w.client.Status().Update(w.t.Context(), &job))
	if phase == history.PhaseUpgraded && job.Spec.DesiredVersion.Version != "" {
		w.install(job.Spec.DesiredVersion.Version)
	}
}

// changeVersion changes the ClusterVersion, status included.
func (w *world) changeVersion(do func(*configv1.ClusterVersion)) {
	var version configv1.ClusterVersion
	w.must(w.client.Get(w.t.Context(), clusterstate.VersionKey, &version))
	do(&version)
	w.must(w.Set(&version))
}

// install completes an update. Nothing else is offered then.
func (w *world) install(installed string) {
	w.changeVersion(func(version *configv1.ClusterVersion) {
		version.Status.History = append([]configv1.UpdateHistory{{Version: installed, State: configv1.CompletedUpdate}}, version.Status.History...)
		version.Status.AvailableUpdates = nil
	})
}

// offer makes updates available.
func (w *world) offer(versions ...string) {
	w.changeVersion(func(version *configv1.ClusterVersion) {
		version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue}}
		version.Status.AvailableUpdates = nil
		for _, v := range versions {
			version.Status.AvailableUpdates = append(version.Status.AvailableUpdates, configv1.Release{Version: v, Image: "quay.io/release@sha256:" + strings.ReplaceAll(v, ".", "")})
		}
	})
}

// losesUpdates makes the update service unreachable.
func (w *world) losesUpdates() {
	w.changeVersion(func(version *configv1.ClusterVersion) {
		version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.RetrievedUpdates, Status: configv1.ConditionFalse, Reason: "RemoteFailed", Message: "unreachable"}}
		version.Status.AvailableUpdates = nil
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	w.must(w.RunFor(d))
}

// runTo lets time pass until a time.
func (w *world) runTo(at time.Time) {
	w.t.Helper()
	w.runFor(at.Sub(w.Now()))
}

func (w *world) get() *v1beta1.UpgradeConfig {
	w.t.Helper()
	var cfg v1beta1.UpgradeConfig
	w.must(w.client.Get(w.t.Context(), weekly, &cfg))
	return &cfg
}

// edit changes the UpgradeConfig as a user does.
func (w *world) edit(do func(*v1beta1.UpgradeConfig)) {
	w.t.Helper()
	cfg := w.get()
	do(cfg)
	w.must(w.client.Update(w.t.Context(), cfg))
}

// jobs returns the names of the UpgradeJobs that exist.
func (w *world) jobs() []string {
	var list v1beta1.UpgradeJobList
	w.must(w.client.List(w.t.Context(), &list))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// job returns the only UpgradeJob.
func (w *world) job() *v1beta1.UpgradeJob {
	w.t.Helper()
	var list v1beta1.UpgradeJobList
	w.must(w.client.List(w.t.Context(), &list))
	if len(list.Items) != 1 {
		w.t.Fatalf("%d UpgradeJobs; %s", len(list.Items), w.describe())
	}
	return &list.Items[0]
}

// events returns the reasons of the Events, in order.
func (w *world) events() []string {
	var list corev1.EventList
	w.must(w.client.List(w.t.Context(), &list))
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var reasons []string
	for i := range list.Items {
		reasons = append(reasons, list.Items[i].Reason)
	}
	return reasons
}

// condition returns a condition as in "True Scheduled: message".
func (w *world) condition(name string) string {
	c := meta.FindStatusCondition(w.get().Status.Conditions, name)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// lastSlot returns the latest slot as in "03-02 21:00 JobCreated".
func (w *world) lastSlot() string {
	last := w.get().Status.LastSlot
	if last == nil {
		return ""
	}
	return last.Time.UTC().Format("01-02 15:04") + " " + last.Result
}

func (w *world) window(name string, start, end time.Time, configs, jobs *v1beta1.LabelSelector) *v1beta1.UpgradeSuspensionWindow {
	return &v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.UpgradeSuspensionWindowSpec{
			Start: maintenance.Timestamp(start), End: maintenance.Timestamp(end), Reason: "freeze", ConfigSelector: configs, JobSelector: jobs,
		},
	}
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	w.must(w.client.Create(w.t.Context(), object))
}

func (w *world) describe() string {
	cfg := w.get()
	return fmt.Sprintf("at %s: jobs %q, events %q, last requests %q, status %+v", w.Now(), w.starts, w.events(), w.requests[max(0, len(w.requests)-10):], cfg.Status)
}

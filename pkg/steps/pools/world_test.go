// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/poolrelease"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

const (
	from    = "4.4.5"
	to      = "4.4.6"
	channel = "fast-4.4"
)

var requestOfJob = reconcile.Request{NamespacedName: jobKey}

var jobKey = client.ObjectKey{Namespace: "managed-upgrade-operator", Name: "job"}

// world is a scripted cluster with pool night, the controller poolrelease, and a controller that runs
// one UpgradeJob: its steps about pools and the commit. The record is in the status of the job.
type world struct {
	*simulation.World
	t       testing.TB
	cluster *openshift.Script
	client  client.Client

	program  simulation.Program
	process  *simulation.Process
	registry *prometheus.Registry
	plan     simulation.Plan

	to      string    // the version of the job
	start   time.Time // of the job
	delays  []pools.Delay
	onFail  *metav1.LabelSelector
	timeout time.Duration
	cancel  string
	hooks   map[string]func(engine.Run) engine.Result // by event and pool; nil means none
	holds   bool                                      // before the commit

	commitWithin time.Duration // of the start

	log    []string // changes of the pools
	writes int      // of the operator to pools
	status map[string]string
}

func night(names ...string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{"name": append(names, "night")[0]})
}

func newWorld(t *testing.T, changes ...func(*world)) *world {
	t.Helper()
	w := emptyWorld(t, simulation.Options{MaxBurst: 100})
	var err error
	if w.cluster, err = openshift.NewScript(w.World, from, channel, to, "4.4.7"); err != nil {
		t.Fatal(err)
	}
	w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) { v.Spec.Channel = channel })
	w.addPool("night", "night")
	for _, change := range changes {
		change(w)
	}
	w.begin()
	return w
}

// newClusterWorld is newWorld with the simulators of the dev cluster instead of a script. The pool
// night has two nodes, as have the others.
func newClusterWorld(t *testing.T) *world {
	t.Helper()
	definitions, err := openshift.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	w := emptyWorld(t, simulation.Options{Definitions: definitions})
	spec := devcluster.Spec{Masters: 2, Workers: 2, Pools: []machineconfig.Pool{{Name: "night", Nodes: 2}}}
	if _, err := openshift.New(w.World, spec); err != nil {
		t.Fatal(err)
	}
	w.to, w.start = "4.20.6", w.Now().Truncate(time.Second).Add(time.Second)
	pool := w.pool("night")
	pool.Labels["name"] = "night"
	if err := w.client.Update(w.t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	w.runFor(time.Minute)
	w.begin()
	return w
}

func emptyWorld(t *testing.T, options simulation.Options) *world {
	t.Helper()
	w := &world{
		World: simulation.New(options), t: t, timeout: 12 * time.Hour, to: to,
		delays: []pools.Delay{{Selector: night(), Min: time.Hour, Max: 2 * time.Hour}}, commitWithin: time.Hour,
		hooks: map[string]func(engine.Run) engine.Result{},
	}
	w.start, w.client = w.Now().Truncate(time.Second), w.Client("user")
	return w
}

// begin creates the job and starts the operator.
func (w *world) begin() {
	job := &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: jobKey.Namespace, Name: jobKey.Name, UID: "uid"}}
	job.Spec = v1beta1.UpgradeJobSpec{
		StartAfter: maintenance.Timestamp(w.start), StartBefore: maintenance.Timestamp(w.start.Add(time.Hour)), DesiredVersion: v1beta1.DesiredVersion{Version: w.to},
	}
	if err := w.Add(job); err != nil {
		w.t.Fatal(err)
	}
	w.Observe(w.observe)
	w.program = simulation.Program{
		Name: "operator", Controllers: w.controllers, OnCrash: func() { w.After(10*time.Second, w.run) },
		Plan: func(r simulation.Request) simulation.Fault {
			if w.plan == nil || !r.IsWrite() {
				return simulation.Fault{}
			}
			return w.plan(r)
		},
	}
	w.run()
}

func (w *world) addPool(name, label string) {
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, Labels: map[string]string{"name": label}}}
	openshift.MarkUpdated(pool, from)
	if err := w.Add(pool); err != nil {
		w.t.Fatal(err)
	}
}

// run begins a life of the operator.
func (w *world) run() {
	process, err := w.Start(&w.program)
	if err != nil {
		w.t.Fatal(err)
	}
	w.process = process
}

func (w *world) observe(change simulation.Change) {
	if change.Kind.Kind != "MachineConfigPool" {
		return
	}
	before, after := describePool(change.Old), describePool(change.New)
	if change.Actor == "operator" {
		w.writes++
	}
	if before != after {
		w.log = append(w.log, fmt.Sprintf("%s %s: %s is %s", w.Now().Sub(w.start).Truncate(time.Minute), change.Actor, change.Object().GetName(), after))
	}
}

// describePool returns what this package changes of a pool.
func describePool(object client.Object) string {
	pool, ok := object.(*mcfgv1.MachineConfigPool)
	if !ok {
		return "gone"
	}
	state := "unpaused"
	if pool.Spec.Paused {
		state = "paused"
	}
	mark, marked := pool.Annotations[clusterstate.AnnotationPausedBy]
	parsed, _ := clusterstate.ParsePoolMark(mark)
	switch {
	case !marked:
		return state
	case parsed.Kept():
		return state + ", kept"
	default:
		return fmt.Sprintf("%s, marked %s/%d", state, parsed.JobUID, parsed.Attempt)
	}
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	w.registry = prometheus.NewPedanticRegistry()
	poolMetrics, err := metrics.NewPools(w.registry)
	if err != nil {
		return nil, err
	}
	releaser := &poolrelease.Reconciler{Clock: env.Clock, Events: &notify.Events{Client: env.Client, Clock: env.Clock}, Metrics: poolMetrics}
	request := func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: jobKey}}
	}
	reads := append(facts.Watches(), facts.UpgradeJobs(nil))
	for i := range reads {
		reads[i].Requests = request
	}
	return []manager.Controller{releaser.Controller(), {
		Name: "job", AddToScheme: facts.AddToScheme(), Reads: reads,
		Reconciler: reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) { return w.reconcile(ctx, env) }),
	}}, nil
}

// recorded reports whether the record of the job has an item that has ended.
func (w *world) recorded(item string) bool {
	for _, record := range w.job().Status.History {
		for _, c := range record.Conditions {
			if slices.ContainsFunc(c.Items, func(i history.StepItem) bool { return i.Name == item && i.Ended() }) {
				return true
			}
		}
	}
	return false
}

func (w *world) delayed(c client.Client, live client.Reader, job *v1beta1.UpgradeJob) pools.Delayed {
	record := job.Status.History[0]
	hooks := func(event string) func(string) engine.UpgradeStep {
		return func(pool string) engine.UpgradeStep {
			return func(_ context.Context, run engine.Run) (engine.Result, error) {
				hook := w.hooks[event+"/"+pool]
				if hook == nil {
					return engine.Skip("NoHooks", "there are no hooks"), nil
				}
				return hook(run), nil
			}
		}
	}
	d := pools.Delayed{
		Client: c, Live: live, Owner: pools.Owner{JobUID: string(job.UID), Attempt: record.Attempt},
		StartAfter: w.start, Entries: w.delays, BeforeRelease: hooks("before"), AfterUpdate: hooks("after"),
	}
	for _, condition := range record.Conditions {
		d.Recorded = append(d.Recorded, condition.Items...)
	}
	return d
}

func (w *world) book(env simulation.Env, d pools.Delayed) engine.Runbook {
	request := func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		if w.holds {
			return engine.Wait("Held", "held"), nil
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"desiredUpdate":{"version":"`+w.to+`"}}}`))
		err := env.Client.Patch(ctx, &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}, patch)
		return engine.Wait("Requested", "requested"), err
	}
	commenced := func(ctx context.Context) (bool, error) {
		version, err := clusterstate.GetClusterVersion(ctx, env.Client)
		return err == nil && version.Current.Version == w.to, err
	}
	step := func(name string, do engine.UpgradeStep) engine.Step {
		return engine.Step{Name: name, Doc: name, Do: do}
	}
	commit := step("UpgradeCommenced", request)
	commit.Commits, commit.Reached, commit.Gates = true, commenced, []engine.Gate{{Name: "AddedPoolsPaused", Check: d.PauseAdded()}}
	commit.Observe = func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		if ok, err := commenced(ctx); err != nil || !ok {
			return engine.Result{}, err
		}
		return engine.Done("commenced"), nil
	}
	completed := step("UpgradeCompleted", d.KeepReleasing(d.Undelayed()))
	completed.FailBy, completed.Reached = w.start.Add(w.timeout), d.AreUndelayedUpdated
	updated := step("DelayedPoolsUpdated", d.Updated())
	updated.FailBy, updated.Reached = w.start.Add(w.timeout), d.AreUpdated
	return engine.Runbook{
		Steps: []engine.Step{step("PoolsPaused", d.Pause()), commit, completed, updated},
		Cleanup: []engine.Step{
			step("PoolsPausedOnFailure", pools.PauseOnFailure(env.Client, env.Live, d.Owner, (*v1beta1.LabelSelector)(w.onFail))), step("PoolsReleased", d.Released()),
		},
		SkipReasons: []string{pools.ReasonInvalidPools},
	}
}

// reconcile makes one pass over the job, as the lifecycle does.
func (w *world) reconcile(ctx context.Context, env simulation.Env) (reconcile.Result, error) {
	var job v1beta1.UpgradeJob
	if err := env.Live.Get(ctx, jobKey, &job); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if len(job.Status.History) == 0 {
		job.Status.History = []history.Record{{Version: w.to, Attempt: 1, UpgradeAt: &metav1.Time{Time: w.start}}}
	}
	if job.Status.History[0].Finished() {
		return reconcile.Result{}, nil
	}
	d := w.delayed(env.Client, env.Live, &job)
	book := w.book(env, d)
	if err := book.Validate(); err != nil {
		return reconcile.Result{}, err
	}
	save := func(ctx context.Context, record history.Record) error {
		for _, c := range record.Conditions {
			if c.Type == "UpgradeCommenced" && c.Status == metav1.ConditionTrue {
				record.CommenceTime = c.CompleteTime
			}
		}
		job.Status.History[0] = record
		return env.Client.Status().Update(ctx, &job)
	}
	constraints := engine.Constraints{CommitBy: w.start.Add(w.commitWithin), Cancel: w.cancel}
	e := engine.Engine{Clock: env.Clock, Save: save}
	record, next, err := e.Pass(ctx, book, job.Status.History[0], constraints)
	if err != nil {
		return reconcile.Result{}, err
	}
	if summary := engine.Summarize(book, record, env.Clock.Now(), constraints); summary.Finished() {
		record.Phase = history.PhaseUpgraded
		if summary.Failure != nil {
			record.Phase = history.PhaseFailed
		}
		record.CompleteTime = &metav1.Time{Time: env.Clock.Now()}
		return reconcile.Result{}, save(ctx, record)
	}
	list, err := d.Status(ctx, env.Clock.Now())
	w.status = map[string]string{}
	for _, pool := range list {
		w.status[pool.Name] = pool.State
	}
	return reconcile.Result{RequeueAfter: max(next.Sub(env.Clock.Now()), time.Millisecond)}, err
}

// runFor lets time pass.
func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	if err := w.RunFor(d); err != nil {
		w.t.Fatalf("%v\n%s", err, w.record())
	}
}

// runToEnd lets time pass until the attempt has ended and the clocks stand some time after.
func (w *world) runToEnd() {
	w.t.Helper()
	ended := func() bool {
		record := w.job().Status.History
		return len(record) > 0 && record[0].Finished()
	}
	if err := w.RunUntil(24*time.Hour, ended); err != nil {
		w.t.Fatalf("%v\n%s", err, w.record())
	}
	w.runFor(time.Minute)
}

func (w *world) job() *v1beta1.UpgradeJob {
	var job v1beta1.UpgradeJob
	if err := w.client.Get(w.t.Context(), jobKey, &job); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return &job
}

// record returns the steps of the attempt, one a line.
func (w *world) record() string {
	var lines []string
	for _, record := range w.job().Status.History[:min(1, len(w.job().Status.History))] {
		for _, c := range record.Conditions {
			lines = append(lines, fmt.Sprintf("%s %s %s: %s %v", c.Type, c.Status, c.Reason, c.Message, c.Items))
		}
	}
	return strings.Join(lines, "\n")
}

func (w *world) pool(name string) *mcfgv1.MachineConfigPool {
	var pool mcfgv1.MachineConfigPool
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, &pool); err != nil {
		w.t.Fatal(err)
	}
	return &pool
}

// setPaused pauses or unpauses a pool as a user does.
func (w *world) setPaused(name string, paused bool) {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused))
	if err := w.client.Patch(w.t.Context(), w.pool(name), patch); err != nil {
		w.t.Fatal(err)
	}
}

// setMark sets the annotation of the pool night as a user does; empty removes it.
func (w *world) setMark(mark string) {
	value := `"` + mark + `"`
	if mark == "" {
		value = "null"
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+clusterstate.AnnotationPausedBy+`":`+value+`}}}`))
	if err := w.client.Patch(w.t.Context(), w.pool("night"), patch); err != nil {
		w.t.Fatal(err)
	}
}

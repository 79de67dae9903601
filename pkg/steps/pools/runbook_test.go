// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"context"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

// recorded reports whether the record of the UpgradeJob has a final item of that name.
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

func (w *world) delayed(c client.Client, live client.Reader, job *maintenancev1beta1.UpgradeJob) pools.Delayed {
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
		Client: c, Live: live, Owner: maintenance.JobOwners().Owner(job, record),
		StartAfter: w.start, Entries: w.delays, Source: "spec.config.machineConfigPools", BeforeRelease: hooks("before"), AfterUpdate: hooks("after"),
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
		reader := client.Reader(env.Client)
		if w.live {
			reader = env.Live
		}
		version, err := clusterstate.GetClusterVersion(ctx, reader)
		return err == nil && version.Current.Version == w.to, err
	}
	step := func(name string, do engine.UpgradeStep) engine.Step {
		return engine.Step{Name: name, Doc: name, Do: do}
	}
	commit := step("UpgradeCommenced", request)
	commit.Gates = []engine.Gate{{Name: "AddedPoolsPaused", Check: d.PauseAdded()}}
	commit.Commit = &engine.Commit{Observe: func(ctx context.Context, _ engine.Run) (engine.Observed, engine.Result, error) {
		if ok, err := commenced(ctx); err != nil || !ok {
			return engine.ObservedNone, engine.Result{}, err
		}
		return engine.ObservedBegun, engine.Done("commenced"), nil
	}}
	completed := step("UpgradeCompleted", d.KeepReleasing(d.Undelayed()))
	completed.FailBy, completed.Reached = w.start.Add(w.timeout), d.AreUndelayedUpdated
	updated := step("DelayedPoolsUpdated", d.Updated())
	updated.FailBy, updated.Reached = w.start.Add(w.timeout), d.AreUpdated
	return engine.Runbook{
		Steps: []engine.Step{step("PoolsPaused", d.Pause()), commit, completed, updated},
		Cleanup: []engine.Step{
			step("PoolsPausedOnFailure", pools.PauseOnFailure(env.Client, env.Live, d.Owner, "spec.config.pauseMachineConfigPoolsOnFailure", (*maintenancev1beta1.LabelSelector)(w.onFail))), step("PoolsReleased", d.Released()),
		},
		SkipReasons: []string{pools.ReasonInvalidPools},
	}
}

// reconcile makes one pass over the UpgradeJob, like package lifecycle.
func (w *world) reconcile(ctx context.Context, env simulation.Env) (reconcile.Result, error) {
	var job maintenancev1beta1.UpgradeJob
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

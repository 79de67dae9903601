// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package upgradejobhook_test

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// upgrades runs UpgradeJobs by a runbook of hooks, like the controller of UpgradeJobs but without a
// cluster.
func (w *world) upgrades(env simulation.Env, runner *hooks.Runner) manager.Controller {
	kind := facts.UpgradeJobs([]string{namespace})
	kind.Requests = manager.Self
	saved := map[client.ObjectKey]string{} // resource versions
	return manager.Controller{
		Name: "upgradejob", Reads: []manager.Kind{kind, facts.HookJobs([]string{namespace}, maintenance.JobOwners()), facts.UpgradeJobHooks([]string{namespace})},
		Reconciler: reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			var job maintenancev1beta1.UpgradeJob
			if err := env.Client.Get(ctx, request.NamespacedName, &job); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			if version := saved[request.NamespacedName]; version != "" && version != job.ResourceVersion {
				var live maintenancev1beta1.UpgradeJob
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
			book, constraints := w.book(&job, record, runner)
			return pass(ctx, &engine.Engine{Clock: env.Clock, Save: save}, book, record, constraints)
		}),
	}
}

// pass runs one pass of an attempt, and ends the attempt once it is finished.
func pass(ctx context.Context, e *engine.Engine, book engine.Runbook, record history.Record, constraints engine.Constraints) (reconcile.Result, error) {
	record, next, err := e.Pass(ctx, book, record, constraints)
	switch now := e.Clock.Now(); {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case err != nil:
		return reconcile.Result{}, err
	case engine.Summarize(book, record, now, constraints).Finished():
		record.CompleteTime = &metav1.Time{Time: now.Truncate(time.Second)}
		return reconcile.Result{}, e.Save(ctx, record)
	default:
		return reconcile.Result{RequeueAfter: max(next.Sub(now), time.Second)}, nil
	}
}

// book returns the runbook of an UpgradeJob. An UpgradeJob named "broken…" fails after its commit.
func (w *world) book(job *maintenancev1beta1.UpgradeJob, record history.Record, runner *hooks.Runner) (engine.Runbook, engine.Constraints) {
	hooksOf := func(name maintenancev1beta1.HookEvent) engine.Step {
		return engine.Step{Name: string(name) + "HooksDone", Doc: "Runs hooks.", Do: runner.Event(maintenance.JobOwners().Owner(job, record), record, hooks.Event{Name: name, Reason: "Test", Message: "test"})}
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
	commit.Commit = &engine.Commit{Observe: func(context.Context, engine.Run) (engine.Observed, engine.Result, error) {
		return engine.ObservedNone, engine.Result{}, nil
	}}
	outcome := step("PostHealthCheck", func(context.Context, engine.Run) (engine.Result, error) {
		if strings.HasPrefix(job.Name, "broken") {
			return engine.Fail("UnhealthyAfterUpgrade", "unhealthy"), nil
		}
		return engine.Done("healthy"), nil
	})
	last := hooksOf(maintenancev1beta1.EventSuccess)
	if failed := slices.ContainsFunc(record.Conditions, func(c history.StepCondition) bool { return engine.Classify(c) == engine.ClassFailed }); failed {
		last.Do = func(context.Context, engine.Run) (engine.Result, error) { return engine.Skip("Failed", "failed"), nil }
	}
	book := engine.Runbook{
		Steps: []engine.Step{
			hooksOf(maintenancev1beta1.EventCreate), hooksOf(maintenancev1beta1.EventStart), hooksOf(maintenancev1beta1.EventUpgradeStart), commit,
			hooksOf(maintenancev1beta1.EventUpgradeComplete), step("DelayedPoolsUpdated", w.delayedPools(job, record, runner)), outcome,
		},
		Cleanup: []engine.Step{hooksOf(maintenancev1beta1.EventFailure)},
		Finally: []engine.Step{last, hooksOf(maintenancev1beta1.EventFinish)},
	}
	constraints := engine.Constraints{CommitBy: job.CreationTimestamp.Add(24 * time.Hour)}
	if job.DeletionTimestamp != nil {
		constraints.Cancel = "deleted"
	}
	return book, constraints
}

// delayedPools runs the events of all pools concurrently, in order for each pool.
func (w *world) delayedPools(job *maintenancev1beta1.UpgradeJob, record history.Record, runner *hooks.Runner) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		var items []history.StepItem
		waiting := false
		for _, pool := range w.pools {
			for _, name := range []maintenancev1beta1.HookEvent{maintenancev1beta1.EventMachineConfigPoolUnpause, maintenancev1beta1.EventMachineConfigPoolUpdated} {
				result, err := runner.Event(maintenance.JobOwners().Owner(job, record), record, hooks.Event{Name: name, Pool: pool})(ctx, run)
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

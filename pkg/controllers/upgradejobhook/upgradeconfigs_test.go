// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package upgradejobhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// configs runs the hooks of the events Start and Finish for UpgradeConfigs, one attempt after
// another, without a cluster. It starts the attempt that the spec requests.
func (w *world) configs(env simulation.Env, runner *hooks.Runner) manager.Controller {
	kind := facts.Upgrades([]string{namespace})
	kind.Requests = manager.Self
	return manager.Controller{
		Name: "upgradeconfig", Reads: []manager.Kind{kind, facts.HookJobs([]string{namespace}, maintenance.ConfigOwners()), facts.UpgradeJobHooks([]string{namespace})},
		Reconciler: reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			var cfg upgradev1alpha1.UpgradeConfig
			if err := env.Live.Get(ctx, request.NamespacedName, &cfg); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			start, err := maintenance.UpgradeStart(&cfg)
			if err != nil {
				return reconcile.Result{}, err
			}
			record := history.Record{Version: cfg.Spec.Desired.Version, Attempt: 1, UpgradeAt: &metav1.Time{Time: start}}
			at := slices.IndexFunc(cfg.Status.History, func(r history.Record) bool { return r.Version == record.Version })
			if at >= 0 {
				record = cfg.Status.History[at]
			}
			if record.Finished() {
				return reconcile.Result{}, nil
			}
			save := func(ctx context.Context, record history.Record) error {
				before := cfg.DeepCopy()
				cfg.Status.History = append([]history.Record{record}, slices.DeleteFunc(cfg.Status.History, func(r history.Record) bool { return r.Version == record.Version })...)
				return env.Client.Status().Patch(ctx, &cfg, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
			}
			var book engine.Runbook
			for _, name := range []maintenancev1beta1.HookEvent{maintenancev1beta1.EventStart, maintenancev1beta1.EventFinish} {
				do := runner.Event(maintenance.ConfigOwners().Owner(&cfg, record), record, hooks.Event{Name: name, Reason: "Test", Message: "test"})
				book.Steps = append(book.Steps, engine.Step{Name: string(name) + "HooksDone", Doc: "Runs hooks.", Do: do})
			}
			return pass(ctx, &engine.Engine{Clock: env.Clock, Save: save}, book, record, engine.Constraints{})
		}),
	}
}

func newConfig(version string) *upgradev1alpha1.UpgradeConfig {
	cfg := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "upgrade", Labels: map[string]string{"team": "shop"}}}
	cfg.Spec = upgradev1alpha1.UpgradeConfigSpec{
		Type: "SHOP", UpgradeAt: "2026-03-01T12:00:00Z", PDBForceDrainTimeout: new(int32(60)), Desired: upgradev1alpha1.Update{Version: version, Channel: "stable-4.20"},
	}
	return cfg
}

// upgradeConfig returns the UpgradeConfig; an empty one if there is none.
func (w *world) upgradeConfig() *upgradev1alpha1.UpgradeConfig {
	w.TB.Helper()
	cfg := &upgradev1alpha1.UpgradeConfig{}
	simulation.Find(w.Harness, client.ObjectKey{Namespace: namespace, Name: "upgrade"}, cfg)
	return cfg
}

// runConfig runs until the attempt at the version has ended.
func (w *world) runConfig(version string) history.Record {
	w.TB.Helper()
	var record history.Record
	w.Await(2*time.Hour, func() bool {
		cfg := w.upgradeConfig()
		at := slices.IndexFunc(cfg.Status.History, func(r history.Record) bool { return r.Version == version && r.Finished() })
		if at >= 0 {
			record = cfg.Status.History[at]
		}
		return at >= 0 && w.Quiet()
	})
	return record
}

func forConfigs(hook *maintenancev1beta1.UpgradeJobHook, more ...maintenancev1beta1.HookKind) *maintenancev1beta1.UpgradeJobHook {
	hook.Spec.Kinds = append(more, maintenancev1beta1.HookKindUpgradeConfig)
	return hook
}

// A hook runs for UpgradeConfigs only if it selects that kind. It runs for each upgrade of an
// UpgradeConfig, although each is attempt 1 at its version.
func TestHooks_of_UpgradeConfigs(t *testing.T) {
	t.Parallel()
	start, finish := maintenancev1beta1.EventStart, maintenancev1beta1.EventFinish
	w := newWorld(t,
		newHook("jobs", exits0, start), forConfigs(newHook("configs", exits0, start)), forConfigs(newHook("both", exits0, finish), maintenancev1beta1.HookKindUpgradeJob),
		selecting(forConfigs(newHook("selected", exits0, start)), map[string]string{"team": "shop"}), selecting(forConfigs(newHook("other", exits0, start)), map[string]string{"team": "x"}),
		next(forConfigs(newHook("once", exits0, start, finish))),
	)
	w.Create(newConfig("4.20.6"), newUpgrade("upgrade", nil))
	w.Begin()
	first := w.runConfig("4.20.6")
	w.runUntil("upgrade", time.Hour)
	w.expect(first, map[string]string{"StartHooksDone": "Done [Start/configs Succeeded] [Start/once Succeeded] [Start/selected Succeeded]"})
	cfg := w.upgradeConfig()
	if diff := cmp.Diff(&maintenancev1beta1.HookClaim{Kind: "UpgradeConfig", Version: "4.20.6", Name: "upgrade", UID: string(cfg.UID)}, w.hook("once").Status.ClaimedBy); diff != "" {
		t.Errorf("claimed by (-want +got):\n%s", diff)
	}
	cfg.Spec.Desired.Version = "4.20.7"
	w.Update(cfg)
	w.runConfig("4.20.7")
	want := map[string]int{
		"upgrade: Start/jobs": 1, "upgrade: Finish/both": 1,
		"UpgradeConfig upgrade: Start/configs": 2, "UpgradeConfig upgrade: Start/selected": 2, "UpgradeConfig upgrade: Finish/both": 2,
		"UpgradeConfig upgrade: Start/once": 1, "UpgradeConfig upgrade: Finish/once": 1,
	}
	if diff := cmp.Diff(want, w.created); diff != "" {
		t.Errorf("created Jobs (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(w.events, func(e string) bool {
		return strings.HasPrefix(e, "Normal HookSucceeded upgrade: hook Start/configs succeeded")
	}) {
		t.Errorf("the Events are %v", w.events)
	}
}

func TestHookJob_of_an_UpgradeConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, forConfigs(newHook("a", takes10m, maintenancev1beta1.EventStart)))
	w.Create(newConfig("4.20.6"))
	w.Begin()
	w.RunFor(time.Minute)
	job, cfg := w.jobOf("Start/a"), w.upgradeConfig()
	want := []metav1.OwnerReference{{APIVersion: "upgrade.managed.openshift.io/v1alpha1", Kind: "UpgradeConfig", Name: "upgrade", UID: cfg.UID, Controller: new(true)}}
	if diff := cmp.Diff(want, job.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	env := map[string]string{}
	for _, v := range job.Spec.Template.Spec.Containers[0].Env {
		env[v.Name] = v.Value
	}
	for name, want := range map[string]string{
		"EVENT_name": `"Start"`, "EVENT_reason": `"Test"`, "EVENT_message": `"test"`, "EVENT_pool": `""`, "EVENT_NAME": `"Start"`,
		"JOB_kind": `"UpgradeConfig"`, "JOB_apiVersion": `"upgrade.managed.openshift.io/v1alpha1"`, "JOB_metadata_name": `"upgrade"`,
		"JOB_spec_desired_version": `"4.20.6"`, "JOB_spec_desired_image": "null", "JOB_spec_type": `"SHOP"`,
	} {
		if env[name] != want {
			t.Errorf("%s is %s, want %s", name, env[name], want)
		}
	}
	var event map[string]string
	if err := json.Unmarshal([]byte(env["EVENT"]), &event); err != nil || len(event) != 5 || event["name"] != "Start" {
		t.Errorf("EVENT is %s, %v", env["EVENT"], err)
	}
	w.RunFor(time.Hour) // until the Job has ended
}

// Deleting an UpgradeConfig while a hook runs leaves no finalizer behind.
func TestHookJob_of_an_UpgradeConfig_that_is_deleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, forConfigs(newHook("a", neverEnds, maintenancev1beta1.EventStart)))
	cfg := newConfig("4.20.6")
	w.Create(cfg)
	w.Begin()
	w.RunFor(time.Minute)
	if !slices.Contains(w.jobOf("Start/a").Finalizers, hooks.Finalizer) {
		t.Error("the result of the Job is not kept")
	}
	w.Delete(cfg)
	w.RunFor(time.Minute)
	w.checkReleased()
}

// A hook runs exactly once for an attempt of an UpgradeConfig, whichever write fails.
func TestHooks_of_UpgradeConfigs_with_a_fault_at_every_write(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]simulation.Fault{
		"crash before": {Outcome: simulation.CrashBefore}, "crash after": {Outcome: simulation.CrashAfter},
		"lost answer": {Outcome: simulation.LoseAnswer}, "old cache": {Lag: []string{"Job", "UpgradeConfig"}, LagFor: 10 * time.Minute},
	} {
		for n := 1; n <= 12; n++ {
			t.Run(fmt.Sprintf("%s of write %d", name, n), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, forConfigs(newHook("a", exits0, maintenancev1beta1.EventStart, maintenancev1beta1.EventFinish)))
				w.Program.OnCrash = w.Begin
				w.Writes = func(r simulation.Request) simulation.Fault {
					if r.Write == n {
						return fault
					}
					return simulation.Fault{}
				}
				w.Create(newConfig("4.20.6"))
				w.Begin()
				w.runConfig("4.20.6")
				w.RunFor(20 * time.Minute)
				if diff := cmp.Diff(map[string]int{"UpgradeConfig upgrade: Start/a": 1, "UpgradeConfig upgrade: Finish/a": 1}, w.created); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

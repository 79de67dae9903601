// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

var key = client.ObjectKey{Namespace: openshiftsim.OperatorNamespace, Name: "upgrade"}

// world is a simulated cluster with a pool named night and the complete operator with this
// example's upgraders.
type world struct {
	*simulation.Harness
	start time.Time // start of the upgrade
	log   []string  // events with the number of hours since the start
}

func newWorld(t *testing.T) *world {
	t.Helper()
	definitions, err := openshift.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Harness: simulation.NewHarness(t, simulation.WorldOptions{Definitions: definitions})}
	cluster, err := openshift.New(w.World, openshiftsim.ClusterSpec{Pools: []machineconfig.Pool{{Name: "night", Nodes: 1}}})
	w.Must(err)
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "night"}}
	w.Must(w.User.Patch(t.Context(), pool, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"maintenance":"night"}}}`))))
	w.start = w.Now().Truncate(time.Hour).Add(2 * time.Hour)
	w.Observe(w.observe)
	w.Program.Controllers = func(env simulation.Env) ([]manager.Controller, error) {
		settings := config.Default()
		settings.Alerts.URL, settings.Alertmanager.URL = "", ""
		return operator.NewControllers(
			manager.Options{Namespace: openshiftsim.OperatorNamespace}, settings, manager.Clients{Client: env.Client, Live: env.Live},
			virtualClock{now: env.Clock}, register, operator.Externals{Prometheus: cluster.Alerts, Alertmanager: cluster.Alertmanager},
		)
	}
	w.Begin()
	return w
}

// virtualClock is a clock without timers.
type virtualClock struct {
	clock.WithTicker
	now *simulation.Clock
}

func (c virtualClock) Now() time.Time                  { return c.now.Now() }
func (c virtualClock) Since(t time.Time) time.Duration { return c.now.Now().Sub(t) }

// observe logs which hooks run, changes of the pool, and when the upgrade commences.
func (w *world) observe(change simulation.Change) {
	happens := func(format string, args ...any) {
		w.log = append(w.log, fmt.Sprintf("%dh ", int(w.Now().Sub(w.start).Hours()))+fmt.Sprintf(format, args...))
	}
	switch object := change.Object().(type) {
	case *batchv1.Job:
		if change.Old == nil {
			happens("hook %s", object.Annotations["managedupgrade.appuio.io/item"])
		}
	case *mcfgv1.MachineConfigPool:
		before, ok := change.Old.(*mcfgv1.MachineConfigPool)
		if ok && change.New != nil && before.Spec.Paused != object.Spec.Paused {
			happens("%s paused %t", object.Name, object.Spec.Paused)
		}
	case *upgradev1alpha1.UpgradeConfig:
		before, ok := change.Old.(*upgradev1alpha1.UpgradeConfig)
		if ok && change.New != nil && recordOf(before).CommenceTime == nil && recordOf(object).CommenceTime != nil {
			happens("commenced")
		}
	}
}

func recordOf(cfg *upgradev1alpha1.UpgradeConfig) history.Record {
	if len(cfg.Status.History) == 0 {
		return history.Record{}
	}
	return cfg.Status.History[0]
}

func (w *world) record() history.Record {
	w.TB.Helper()
	var cfg upgradev1alpha1.UpgradeConfig
	w.Must(client.IgnoreNotFound(w.User.Get(w.TB.Context(), key, &cfg)))
	return recordOf(&cfg)
}

// request creates an UpgradeConfig of type NIGHTLY, a hook for all events of UpgradeConfigs, and a
// hook for UpgradeJobs.
func (w *world) request() {
	w.TB.Helper()
	hook := func(name string, kinds ...maintenancev1beta1.HookKind) *maintenancev1beta1.UpgradeJobHook {
		return &maintenancev1beta1.UpgradeJobHook{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name},
			Spec: maintenancev1beta1.UpgradeJobHookSpec{
				Kinds: kinds, FailurePolicy: maintenancev1beta1.HookFailureAbort,
				Events: []maintenancev1beta1.HookEvent{"Create", "Start", "UpgradeStart", "UpgradeComplete", "MachineConfigPoolUnpause", "MachineConfigPoolUpdated", "Success", "Failure", "Skip", "Finish"},
				Template: maintenancev1beta1.HookJobTemplate{Spec: runtime.RawExtension{
					Raw: []byte(`{"template":{"spec":{"containers":[{"name":"notify","image":"example.com/notify:1"}]}}}`),
				}},
			},
		}
	}
	cfg := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	cfg.Spec = upgradev1alpha1.UpgradeConfigSpec{
		Type: "NIGHTLY", UpgradeAt: w.start.UTC().Format(time.RFC3339), PDBForceDrainTimeout: new(int32(60)),
		Desired: upgradev1alpha1.Update{Version: "4.20.6", Channel: "stable-4.20"},
	}
	w.Create(hook("jobs"), hook("a", maintenancev1beta1.HookKindUpgradeConfig), cfg)
}

// addHook creates a hook for the event UpgradeStart with an annotation on its pods.
func (w *world) addHook(annotation, value string) {
	w.TB.Helper()
	hook := &maintenancev1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "b"}}
	hook.Spec = maintenancev1beta1.UpgradeJobHookSpec{
		Kinds: []maintenancev1beta1.HookKind{maintenancev1beta1.HookKindUpgradeConfig}, FailurePolicy: maintenancev1beta1.HookFailureAbort,
		Events: []maintenancev1beta1.HookEvent{maintenancev1beta1.EventUpgradeStart},
		Template: maintenancev1beta1.HookJobTemplate{Spec: runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"backoffLimit":0,"template":{"metadata":{"annotations":{%q:%q}},"spec":{"containers":[{"name":"notify","image":"example.com/notify:1"}]}}}`, annotation, value)}},
	}
	w.Create(hook)
}

// end runs until a time after the start and checks that nothing has been left behind.
func (w *world) end(after time.Duration) {
	w.TB.Helper()
	w.RunTo(w.start.Add(after))
	scene := aftermath.Scene{Objects: w.User, Namespace: key.Namespace, Now: w.Now()}
	if err := scene.Check(w.TB.Context()); err != nil {
		w.TB.Error(err)
	}
}

func (w *world) check(want ...string) {
	w.TB.Helper()
	if !slices.Equal(w.log, want) {
		w.TB.Errorf("got\n%s\nwant\n%s", strings.Join(w.log, "\n"), strings.Join(want, "\n"))
	}
}

// inNight lists the events of a complete upgrade.
var inNight = []string{
	"0h hook Start/a", "0h night paused true", "0h hook UpgradeStart/a", "0h commenced", "0h hook UpgradeComplete/a",
	"9h hook MachineConfigPoolUnpause/night/a", "9h night paused false", "9h hook MachineConfigPoolUpdated/night/a",
	"9h hook Success/a", "9h hook Finish/a",
}

func TestNightly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.request()
	w.RunTo(w.start.Add(5 * time.Hour))
	if got := w.record(); got.Phase != history.PhasePaused {
		t.Errorf("the phase is %s: %+v", got.Phase, got.Conditions[len(got.Conditions)-1])
	}
	w.end(14 * time.Hour)
	if got := w.record(); got.Phase != history.PhaseUpgraded {
		t.Errorf("the phase is %s: %s", got.Phase, got.Message)
	}
	w.check(inNight...)
}

// No matter when the operator is restarted, each hook runs once, and the pool is updated at night.
func TestNightly_with_crashes(t *testing.T) {
	t.Parallel()
	every := 3
	if testing.Short() {
		every = 15
	}
	for n := 1; n <= 60; n += every {
		t.Run(fmt.Sprintf("at write %d", n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Writes = func(r simulation.Request) simulation.Fault {
				if r.Write == n {
					return simulation.Fault{Outcome: simulation.CrashAfter}
				}
				return simulation.Fault{}
			}
			w.request()
			w.end(14 * time.Hour)
			w.check(inNight...)
		})
	}
}

// Before the commit, the pool is resumed immediately, and no node is updated.
func TestNightly_ends_before_the_commit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.addHook(kubelet.ExitCode, "1")
	w.request()
	w.end(time.Hour)
	if got := w.record(); got.Phase != history.PhaseFailed || got.Reason != "HookFailed" || got.CommenceTime != nil {
		t.Errorf("the record is %s %s: %s", got.Phase, got.Reason, got.Message)
	}
	w.check("0h hook Start/a", "0h night paused true", "0h hook UpgradeStart/a", "0h hook UpgradeStart/b", "0h night paused false", "0h hook Failure/a", "0h hook Finish/a")
}

// Deleting an UpgradeConfig during the pause leaves no pool paused. After the commit, the pool is
// still not updated before its time.
func TestNightly_is_deleted(t *testing.T) {
	t.Parallel()
	const released = "9h night paused false"
	for name, tc := range map[string]struct {
		at    time.Duration
		force bool // a user also removes the finalizer
		down  bool // the operator is down for the next hour
		hang  bool // a hook for the event UpgradeStart does not end
		want  []string
	}{
		"before the commit": {at: 5 * time.Minute, hang: true, want: []string{
			"0h hook Start/a", "0h night paused true", "0h hook UpgradeStart/a", "0h hook UpgradeStart/b", "0h night paused false", "0h hook Finish/a",
		}},
		"after the commit":                                     {at: 5 * time.Hour, want: append(slices.Clone(inNight[:5]), released)},
		"after the commit, by force":                           {at: 5 * time.Hour, force: true, want: append(slices.Clone(inNight[:5]), released)},
		"after the commit, while the operator is down":         {at: 5 * time.Hour, down: true, want: append(slices.Clone(inNight[:5]), released)},
		"after the commit, by force, while it is down as well": {at: 5 * time.Hour, down: true, force: true, want: append(slices.Clone(inNight[:5]), released)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tc.hang {
				w.addHook(kubelet.NeverEnds, "true")
			}
			w.request()
			w.RunTo(w.start.Add(tc.at))
			if tc.down {
				w.Process.Kill()
			}
			cfg := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			w.Must(w.User.Delete(t.Context(), cfg))
			if tc.force {
				w.Must(client.IgnoreNotFound(w.User.Patch(t.Context(), cfg, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
			}
			if tc.down {
				w.RunFor(time.Hour)
				w.Begin()
			}
			w.end(14 * time.Hour)
			w.check(tc.want...)
			if w.record().Version != "" {
				t.Error("the UpgradeConfig is not gone")
			}
			pools, err := clusterstate.ListPools(t.Context(), w.User)
			w.Must(err)
			for _, pool := range pools {
				if pool.Paused || pool.Mark != nil || !pool.Updated {
					t.Errorf("pool %s is paused: %t, updated: %t, with the mark %v", pool.Name, pool.Paused, pool.Updated, pool.Mark)
				}
			}
		})
	}
}

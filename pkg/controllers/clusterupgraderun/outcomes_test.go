// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestRun_upgrades_a_cluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admit()
	w.settle(2 * time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
	if diff := cmp.Diff([]string{"Initialized", "PartialUpgrade", "Complete"}, w.states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{target + " Completed", installed + " Completed"}, w.spoke.History()); diff != "" {
		t.Errorf("history of the cluster (-want +got):\n%s", diff)
	}
	if form := w.form(); form != "" {
		t.Errorf("work %s is left", form)
	}
	w.expectQuiet()
}

// refuse is a script of a cluster that refuses the request.
func refuse(w *world) {
	w.refuses = true
	w.change(5*time.Minute, func() {
		w.spoke.Observe()
		w.spoke.SetCondition(w.spoke.Version(), "ReleaseAccepted", "False", "RetrievePayload", "the signature is missing", w.Now())
	})
}

func failing(after, lasts time.Duration) func(*world) {
	return func(w *world) {
		w.change(after, func() {
			w.spoke.SetCondition(w.spoke.Version(), "Failing", "True", "ClusterOperatorDegraded", "etcd is degraded", w.Now())
		})
		if lasts > 0 {
			w.change(after+lasts, func() {
				w.spoke.SetCondition(w.spoke.Version(), "Failing", "False", "AsExpected", "", w.Now())
			})
		}
	}
}

// Clusters with one cause are counted together, in the words of the cluster version operator.
func TestMessage_of_a_cluster_that_is_failing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admit()
	w.takes = 0
	failing(20*time.Minute, 0)(w)
	w.settle(5 * time.Hour)
	w.expect("Failed", "ClusterVersionFailing")
	if message := w.run().Status.Message; message != "etcd is degraded" {
		t.Errorf("message %q", message)
	}
}

// Until a failing cluster has failed, other clusters begin: the passes over it come first.
func TestRun_of_a_cluster_that_is_failing_is_urgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var last reconcile.Result
	w.Program.Controllers = func(env simulation.Env) ([]manager.Controller, error) {
		controllers, err := w.controllers(env)
		inner := controllers[0].Reconciler
		controllers[0].Reconciler = reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			var err error
			last, err = inner.Reconcile(ctx, request)
			return last, err
		})
		return controllers, err
	}
	w.Restart()
	w.admit()
	w.takes = 0
	failing(20*time.Minute, 9*time.Minute)(w)
	for _, at := range []struct {
		after time.Duration
		want  bool
	}{{15 * time.Minute, false}, {10 * time.Minute, true}, {10 * time.Minute, false}} {
		w.RunFor(at.after)
		if urgent := last.Priority != nil && *last.Priority > 0; urgent != at.want {
			t.Errorf("%s: %s, urgent is %t", w.Now().Format(time.TimeOnly), w.describe(), urgent)
		}
	}
}

func soaks(run *fleetv1alpha1.ClusterUpgradeRunSpec) { run.Timeouts.Soak = "30m" }

// TestRun_outcomes has the rows of the table of states: how a run ends, what is left of the request on
// the cluster, and which work is left on the hub.
func TestRun_outcomes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec    func(*fleetv1alpha1.ClusterUpgradeRunSpec)
		script  func(*world)
		state   fleetv1alpha1.ClusterUpgradeState
		reason  string
		message string   // a part of it
		states  []string // nil for any
		desired string   // on the cluster
		form    string   // of the remaining work
	}{
		"refused in the words of the cluster": {
			script: refuse, state: "Failed", reason: "TargetRefused", message: "RetrievePayload: the signature is missing",
			states: []string{"Initialized", "Failed"},
		},
		"invalid": {
			script: func(w *world) {
				w.refuses = true
				w.change(time.Minute, func() {
					w.spoke.Observe()
					w.spoke.SetCondition(w.spoke.Version(), "Invalid", "True", "InvalidClusterVersion", "no such release", w.Now())
				})
			},
			state: "Failed", reason: "TargetRefused", message: "no such release",
		},
		"refused for a while": {
			script: func(w *world) {
				refuse(w)
				w.change(8*time.Minute, func() {
					w.spoke.SetCondition(w.spoke.Version(), "ReleaseAccepted", "True", "Loaded", "", w.Now())
					w.refuses = false
					w.install(target)
				})
			},
			state: "Complete", reason: "Upgraded", desired: target,
		},
		"not accepted": {
			script: func(w *world) { w.refuses = true }, state: "Failed", reason: "ClusterUpgradeTimedOut",
			states: []string{"Initialized", "Failed"},
		},
		"never complete": {
			script: func(w *world) { w.takes = 0 }, state: "Failed", reason: "ClusterUpgradeTimedOut", desired: target, form: "1/ReadOnly",
			message: "last seen at 2026-03-01T12:51:30Z: Working towards 4.20.6",
			states:  []string{"Initialized", "PartialUpgrade", "Failed"},
		},
		"failing": {
			script: func(w *world) { w.takes = 0; failing(20*time.Minute, 0)(w) }, state: "Failed", reason: "ClusterVersionFailing",
			message: "etcd is degraded", desired: target, form: "1/ReadOnly",
		},
		"failing for a while": {
			script: failing(20*time.Minute, 9*time.Minute), state: "Complete", reason: "Upgraded", desired: target,
		},
		"failing before": {
			script: func(w *world) { w.takes = 0; failing(time.Second, 0)(w) }, state: "Failed", reason: "ClusterVersionFailing", desired: target, form: "1/ReadOnly",
		},
		"agent does not apply": {
			script: func(w *world) { w.holdAgent(upgradeWork); w.change(time.Minute, func() { w.setOffline(true) }) },
			state:  "Failed", reason: "ApplyTimedOut", states: []string{"Initialized", "Failed"}, form: "1/Withdraw",
			message: "the cluster does not report to the hub since 2026-03-01T12:01:00Z; before: waiting until the agent applies ManifestWork " + upgradeWork,
		},
		"agent does not apply, and the cluster is available": { // the answer that was saved last is about the preflight
			script: func(w *world) { w.holdAgent(upgradeWork) }, state: "Failed", reason: "ApplyTimedOut", form: "1/Withdraw",
			message: "last seen at 2026-03-01T12:00:10Z: waiting until the agent applies ManifestWork " + upgradeWork,
		},
		"agent is unreachable from the start": {
			script: func(w *world) { w.setOffline(true) }, state: "Failed", reason: "ApplyTimedOut", states: []string{"Initialized", "Failed"},
		},
		"agent does not report": {
			script: func(w *world) { w.change(10*time.Minute, func() { w.spoke.Mute = true }) }, state: "Failed", reason: "ClusterUpgradeTimedOut", desired: target, form: "1/ReadOnly",
		},
		"unreachable in flight": {
			script: func(w *world) {
				w.After(10*time.Minute, func() { w.setOffline(true) })
				w.After(100*time.Minute, func() { w.setOffline(false) })
			},
			state: "Complete", reason: "Upgraded", desired: target,
		},
		"replaced by a newer release": {
			script: func(w *world) { w.change(20*time.Minute, func() { w.spoke.Accept("4.20.7", w.Now()) }) },
			state:  "Failed", reason: "Superseded", desired: target, form: "1/ReadOnly",
		},
		"accepted and replaced between two reports": { // what was accepted is not withdrawn
			script: func(w *world) {
				w.change(30*time.Second, func() { w.spoke.Accept(target, w.Now()); w.spoke.Accept("4.20.7", w.Now()) })
			},
			state: "Failed", reason: "Superseded", desired: target, form: "1/ReadOnly",
		},
		"replaced, and dropped from the history": {
			script: func(w *world) {
				w.change(20*time.Minute, func() {
					newer := []any{map[string]any{"version": "4.20.7", "state": "Partial", "verified": true, "image": spoke.Image("4.20.7")}}
					w.Must(unstructured.SetNestedSlice(w.spoke.Version().Object, newer, "status", "history"))
				})
			},
			state: "Failed", reason: "Superseded", desired: target, form: "1/ReadOnly",
		},
		"replaced by an older release": {
			script: func(w *world) { w.change(20*time.Minute, func() { w.spoke.Accept(installed, w.Now()) }) },
			state:  "Failed", reason: "Superseded", desired: target, form: "1/ReadOnly",
		},
		"newer release after it was complete": {
			script: func(w *world) {
				w.change(30*time.Second, func() {
					w.spoke.Accept(target, w.Now())
					w.spoke.Complete(w.Now())
					w.spoke.Accept("4.20.7", w.Now())
				})
			},
			state: "Complete", reason: "Upgraded", desired: target,
		},
		"newer release is installed": {
			script: func(w *world) { w.claim("4.20.7") }, state: "Failed", reason: "NewerVersionInstalled", states: []string{"Failed"},
		},
		"newer release is installed, by the preflight": {
			script: func(w *world) { w.claim(""); w.spoke.Accept("4.20.7", w.Now()); w.spoke.Complete(w.Now()) },
			state:  "Failed", reason: "NewerVersionInstalled",
		},
		"newer release is being installed": { // the claim still names the complete release
			script: func(w *world) { w.spoke.Accept("4.21.0", w.Now()) }, state: "Failed", reason: "NewerVersionInstalled",
		},
		"another release is installed in the meantime": {
			script: func(w *world) {
				w.spoke.Accept("4.20.4", w.Now())
				w.change(3*time.Hour, func() { w.spoke.Complete(w.Now()) })
			},
			state: "Complete", reason: "Upgraded", desired: target,
		},
		"release is not claimed": {
			script: func(w *world) { w.claim("") }, state: "Complete", reason: "Upgraded", desired: target,
		},
		"hosted control plane": {
			script: func(w *world) { w.setClaim("controlplanetopology.openshift.io", "External") }, state: "Failed", reason: "HostedControlPlane",
		},
		"already at the target": {
			script: func(w *world) { w.spoke.Accept(target, w.Now()); w.spoke.Complete(w.Now()); w.claim(target) },
			state:  "Complete", reason: "Upgraded", desired: target,
		},
		"soaked": {spec: soaks, state: "Complete", reason: "Upgraded", desired: target},
		"unhealthy during the soak": {
			spec: soaks, script: failing(60*time.Minute, 0), state: "Failed", reason: "UnhealthyDuringSoak", message: "etcd is degraded", desired: target, form: "1/ReadOnly",
		},
		"unhealthy for a while during the soak": {
			spec: soaks, script: failing(60*time.Minute, 9*time.Minute), state: "Complete", reason: "Upgraded", desired: target,
		},
		"refused at admission": {
			spec: func(run *fleetv1alpha1.ClusterUpgradeRunSpec) {
				run.Outcome = &fleetv1alpha1.Outcome{State: "Failed", Reason: "HostedControlPlane", Message: "its control plane is hosted"}
			},
			state: "Failed", reason: "HostedControlPlane", message: "its control plane is hosted", states: []string{"Failed"},
		},
		"complete at admission": {
			spec: func(run *fleetv1alpha1.ClusterUpgradeRunSpec) {
				run.Outcome = &fleetv1alpha1.Outcome{State: "Complete", Reason: "AlreadyAtTarget"}
			},
			state: "Complete", reason: "AlreadyAtTarget", states: []string{"Complete"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.admit(append([]func(*fleetv1alpha1.ClusterUpgradeRunSpec){func(*fleetv1alpha1.ClusterUpgradeRunSpec) {}}, nonNil(tc.spec)...)...)
			if tc.script != nil {
				tc.script(w)
			}
			w.settle(5 * time.Hour)
			w.expect(tc.state, tc.reason)
			if message := w.run().Status.Message; !strings.Contains(message, tc.message) {
				t.Errorf("message %q lacks %q", message, tc.message)
			}
			if diff := cmp.Diff(tc.states, w.states); tc.states != nil && diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
			if desired := w.spoke.Desired(); desired != tc.desired {
				t.Errorf("the cluster is requested to install %q, want %q", desired, tc.desired)
			}
			if form := w.form(); form != tc.form {
				t.Errorf("work %q is left, want %q", form, tc.form)
			}
			w.expectQuiet()
		})
	}
}

func nonNil(edit func(*fleetv1alpha1.ClusterUpgradeRunSpec)) []func(*fleetv1alpha1.ClusterUpgradeRunSpec) {
	if edit == nil {
		return nil
	}
	return []func(*fleetv1alpha1.ClusterUpgradeRunSpec){edit}
}

func operators(u *fleetv1beta1.ManagedClustersUpgrade) {
	u.Spec.OCPOperators = &fleetv1beta1.OCPOperators{ApproveAllUpgrades: true}
}

func actions(u *fleetv1beta1.ManagedClustersUpgrade) {
	u.Spec.PreUpgradeAction, u.Spec.PostUpgradeAction = action("backup"), action("check")
}

// action returns an action with a ConfigMap and a Job.
func action(name string) *fleetv1beta1.UpgradeAction {
	return &fleetv1beta1.UpgradeAction{ManifestWork: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{
		raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"default"}}`),
		raw(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"` + name + `","namespace":"default"}}`),
	}}}}
}

func TestRun_late_success(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit   func(*fleetv1beta1.ManagedClustersUpgrade)
		script func(*world)
		state  fleetv1alpha1.ClusterUpgradeState
		reason string
		form   string
	}{
		"complete after the timeout":    {script: func(w *world) { w.takes = 3 * time.Hour }, state: "Complete", reason: "LateSuccess"},
		"complete after it was failing": {script: failing(20*time.Minute, 0), state: "Complete", reason: "LateSuccess"},
		"operators were left to do":     {edit: operators, script: func(w *world) { w.takes = 3 * time.Hour }, state: "Failed", reason: "ClusterUpgradeTimedOut", form: "1/ReadOnly"},
		"post action was left to do":    {edit: func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.PostUpgradeAction = action("check") }, script: func(w *world) { w.takes = 3 * time.Hour }, state: "Failed", reason: "ClusterUpgradeTimedOut", form: "1/ReadOnly"},
		"replaced before it was complete": {
			script: func(w *world) { w.takes = 0; w.change(20*time.Minute, func() { w.spoke.Accept("4.20.7", w.Now()) }) },
			state:  "Failed", reason: "Superseded", form: "1/ReadOnly",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edit := tc.edit
			if edit == nil {
				edit = func(*fleetv1beta1.ManagedClustersUpgrade) {}
			}
			w := newWorld(t, edit)
			w.admit()
			tc.script(w)
			w.settle(5 * time.Hour)
			w.RunFor(5 * time.Hour)
			w.expect(tc.state, tc.reason)
			if form := w.form(); form != tc.form {
				t.Errorf("work %q is left, want %q", form, tc.form)
			}
			ended := w.run().Status
			w.Restart()
			w.RunFor(time.Hour)
			w.expect(tc.state, tc.reason)
			if diff := cmp.Diff(ended, w.run().Status); diff != "" {
				t.Errorf("the status of a run that has ended changes (-before +after):\n%s", diff)
			}
			w.expectQuiet()
		})
	}
}

func TestRun_does_not_stall_while_there_is_progress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.takes = 110 * time.Minute
	w.admit()
	for i := range 5 {
		w.change(time.Duration(i+1)*20*time.Minute, func() {
			w.spoke.SetCondition(w.spoke.Version(), "Progressing", "True", "Upgrading", "Working towards it: "+strings.Repeat("*", i), w.Now())
		})
	}
	w.settle(2 * time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
	if w.stalled > 0 {
		t.Error("it was reported as stalled")
	}
}

// TestRun_stalls reports a cluster that makes no progress, across restarts, and until it does.
func TestRun_stalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.takes = 110 * time.Minute
	w.admit()
	w.runUntil(time.Hour, fleetv1alpha1.StatePartialUpgrade, fleetv1alpha1.ReasonStalled)
	if since := w.Now().Sub(w.run().Spec.AdmissionTime.Time); since < 45*time.Minute || since > 50*time.Minute {
		t.Errorf("stalled after %s", since)
	}
	w.Restart()
	w.RunFor(5 * time.Minute)
	w.expect(fleetv1alpha1.StatePartialUpgrade, fleetv1alpha1.ReasonStalled)
	w.change(0, func() {
		w.spoke.SetCondition(w.spoke.Version(), "Progressing", "True", "Upgrading", "Working towards it: 50%", w.Now())
	})
	w.RunFor(2 * time.Minute)
	w.expect(fleetv1alpha1.StatePartialUpgrade, "Upgrading")
	w.settle(2 * time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
}

func TestRun_actions_and_operators(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		for name, tc := range map[string]struct {
			finish  map[string]string // what becomes of a Job by the beginning of its name: Complete or Failed
			state   fleetv1alpha1.ClusterUpgradeState
			reason  string
			history int // entries of the cluster
			jobs    []string
		}{
			"all complete":         {finish: map[string]string{"backup": "Complete", "installplan": "Complete", "check": "Complete"}, state: "Complete", reason: "Upgraded", history: 2, jobs: []string{"backup", "installplan", "check"}},
			"pre action fails":     {finish: map[string]string{"backup": "Failed"}, state: "Failed", reason: "PreActionDegraded", history: 1, jobs: []string{"backup"}},
			"pre action too slow":  {state: "Failed", reason: "PreActionDegraded", history: 1, jobs: []string{"backup"}},
			"operators fail":       {finish: map[string]string{"backup": "Complete", "installplan": "Failed"}, state: "Failed", reason: "OperatorsFailed", history: 2, jobs: []string{"backup", "installplan"}},
			"operators too slow":   {finish: map[string]string{"backup": "Complete"}, state: "Failed", reason: "OperatorsFailed", history: 2, jobs: []string{"backup", "installplan"}},
			"post action fails":    {finish: map[string]string{"backup": "Complete", "installplan": "Complete", "check": "Failed"}, state: "Failed", reason: "PostActionDegraded", history: 2, jobs: []string{"backup", "installplan", "check"}},
			"post action too slow": {finish: map[string]string{"backup": "Complete", "installplan": "Complete"}, state: "Failed", reason: "PostActionDegraded", history: 2, jobs: []string{"backup", "installplan", "check"}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, actions, operators, by)
				failed := tc.finish["installplan"] == "Failed"
				w.jobs = tc.finish
				w.admit()
				w.settle(5 * time.Hour)
				w.expect(tc.state, tc.reason)
				if got := len(w.spoke.History()); got != tc.history {
					t.Errorf("history of the cluster: %v", w.spoke.History())
				}
				if diff := cmp.Diff(tc.jobs, w.begun); diff != "" {
					t.Errorf("Jobs in the order in which they began (-want +got):\n%s", diff)
				}
				if work := w.work(delivery.OperatorsName(cluster)); (work != nil) != failed {
					t.Errorf("the work of the operators is left: %v, want %v", work != nil, failed)
				} else if failed && !strings.Contains(w.run().Status.Message, delivery.LogCommand(work)) {
					t.Errorf("the message lacks the command for the log: %s", w.run().Status.Message)
				}
				pre := delivery.ActionName(string(w.upgrade().UID), delivery.PreUpgrade)
				if w.work(pre) == nil {
					t.Error("the pre-action is removed before all clusters are finished")
				}
				w.finishUpgrade()
				w.RunFor(time.Minute)
				if w.work(pre) != nil {
					t.Error("the pre-action is left although all clusters are finished")
				}
				w.expectQuiet()
			})
		}
	})
}

func TestRun_shows_the_actions(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		w := newWorld(t, actions, by)
		w.admit()
		w.RunFor(5 * time.Minute)
		want := &fleetv1alpha1.ActionStatus{Applied: true, State: fleetv1alpha1.ActionProgressing}
		if diff := cmp.Diff(want, w.run().Status.PreUpgradeAction); diff != "" {
			t.Errorf("pre-action (-want +got):\n%s", diff)
		}
		if run := w.run(); !run.Status.Applied || run.Status.PostUpgradeAction != nil {
			t.Errorf("status %+v", run.Status)
		}
		w.jobs = map[string]string{"backup": "Complete", "check": "Failed"}
		w.wakeAgent(0)
		w.settle(5 * time.Hour)
		run := w.run()
		if run.Status.PreUpgradeAction.State != fleetv1alpha1.ActionAvailable || run.Status.PostUpgradeAction.State != fleetv1alpha1.ActionDegraded {
			t.Errorf("actions %+v, %+v", run.Status.PreUpgradeAction, run.Status.PostUpgradeAction)
		}
	})
}

// TestRun_operators_only upgrades no platform.
func TestRun_operators_only(t *testing.T) {
	t.Parallel()
	w := newWorld(t, operators, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.ClusterVersion = nil })
	w.jobs = map[string]string{"installplan": "Complete"}
	w.admit()
	w.settle(time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
	if w.spoke.Desired() != "" || w.seen[upgradeWork+" 1/Apply"] > 0 {
		t.Errorf("a release was requested: %v", w.seen)
	}
	if !w.run().Status.Applied {
		t.Error("the run shows that nothing was applied")
	}
	w.expectQuiet()
}

// TestRun_lost_feedback_holds_the_soak_open completes only once the agent reports again.
func TestRun_lost_feedback_holds_the_soak_open(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admit(soaks)
	w.RunFor(30 * time.Minute)
	w.Await(time.Hour, func() bool { return w.form() == "1/ReadOnly" })
	w.spoke.Mute = true // the agent does not report the read-only work
	w.RunFor(40 * time.Minute)
	w.expect(fleetv1alpha1.StatePartialUpgrade, "Delivered")
	w.RunFor(time.Hour)
	w.expect(fleetv1alpha1.StatePartialUpgrade, "Stalled")
	w.spoke.Mute = false
	w.wakeAgent(0)
	w.settle(time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
}

// A failed read of the hub says nothing about the cluster: the soak goes on.
func TestRun_soaks_through_failed_reads(t *testing.T) {
	t.Parallel()
	soaking := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t)
		w.admit(soaks)
		w.RunFor(time.Hour) // upgraded after 42 minutes
		return w
	}
	w := soaking(t)
	first := w.reads
	w.setClaim("visited", "1")
	w.RunFor(10 * time.Second)
	var unknown atomic.Int32
	t.Cleanup(func() {
		if unknown.Load() < 3 {
			t.Errorf("after %d of the reads, the step could not be determined", unknown.Load())
		}
	})
	for read := 1; read <= w.reads-first; read++ {
		t.Run(strconv.Itoa(read), func(t *testing.T) {
			t.Parallel()
			w := soaking(t)
			before := w.run().Status.SoakedUntil
			w.failing = w.reads + read
			w.setClaim("visited", "1")
			if err := w.RunUntil(time.Minute, func() bool { return w.reads >= w.failing && w.run().Status.SoakedUntil == nil }); err == nil {
				unknown.Add(1)
			}
			w.RunFor(3 * time.Minute)
			if after := w.run().Status.SoakedUntil; before == nil || !before.Equal(after) {
				t.Errorf("the soak ends at %v, without the failed read at %v", after, before)
			}
			w.runUntil(12*time.Minute, fleetv1alpha1.StateComplete, "Upgraded")
		})
	}
}

// TestRun_clock_of_the_cluster is wrong by an hour: a short failure ends no run, and a long one ends it in
// time.
func TestRun_clock_of_the_cluster(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.admit()
			set := func(after time.Duration, status string) {
				w.change(after, func() {
					w.spoke.SetCondition(w.spoke.Version(), "Failing", status, "ClusterOperatorDegraded", "etcd is degraded", w.Now().Add(offset))
				})
			}
			set(15*time.Minute, "True")
			set(20*time.Minute, "False")
			w.settle(2 * time.Hour)
			w.expect(fleetv1alpha1.StateComplete, "Upgraded")

			w = newWorld(t)
			w.takes = 0
			w.admit()
			set(15*time.Minute, "True")
			w.RunFor(24 * time.Minute)
			w.expect(fleetv1alpha1.StatePartialUpgrade, fleetv1alpha1.ReasonClusterVersionFailing)
			w.RunFor(4 * time.Minute)
			w.expect(fleetv1alpha1.StateFailed, fleetv1alpha1.ReasonClusterVersionFailing)
		})
	}
}

// TestRun_is_admitted_by_a_clock_that_is_ahead by a day: it starts at once by the clock of the hub that runs it. It has
// a slot of its upgrade, and no other cluster can use the slot in that time.
func TestRun_is_admitted_by_a_clock_that_is_ahead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admit(func(s *fleetv1alpha1.ClusterUpgradeRunSpec) {
		s.AdmissionTime = metav1.NewTime(w.Now().Add(24 * time.Hour).Truncate(time.Second))
	})
	w.runUntil(2*time.Hour, fleetv1alpha1.StateComplete, "Upgraded")
}

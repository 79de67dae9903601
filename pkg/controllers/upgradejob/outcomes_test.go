// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// outcome is how an UpgradeJob ended.
type outcome struct {
	phase   history.Phase
	reason  string // of the condition Succeeded
	step    string // that failed the attempt, or empty
	commits int    // how often a version was requested
}

// outcome returns how the UpgradeJob ended.
func (w *world) outcome() outcome {
	got := outcome{phase: w.record().Phase, commits: w.commits}
	if c := meta.FindStatusCondition(w.job().Status.Conditions, maintenancev1beta1.ConditionSucceeded); c != nil {
		got.reason = c.Reason
	}
	for _, c := range w.record().Conditions {
		if engine.Classify(c) == engine.ClassFailed && got.step == "" {
			got.step = c.Type
		}
	}
	return got
}

// delayWorker delays the pool worker.
func delayWorker(earliest, latest maintenancev1beta1.Duration) func(*maintenancev1beta1.UpgradeJob) {
	return func(job *maintenancev1beta1.UpgradeJob) {
		job.Spec.Config.MachineConfigPools = append(job.Spec.Config.MachineConfigPools, maintenancev1beta1.MachineConfigPoolConfig{
			MachineConfigPoolSelector: selectPool("worker"), DelayUpgrade: maintenancev1beta1.DelayUpgrade{DelayMin: earliest, DelayMax: latest},
		})
	}
}

func selectPool(name string) maintenancev1beta1.MachineConfigPoolSelector {
	return maintenancev1beta1.MachineConfigPoolSelector{MatchLabels: maintenancev1beta1.PoolLabels{Labels: map[string]string{"pool": name}}}
}

// hook returns a hook whose Job ends by itself, with the annotations of its pod.
func hook(name string, policy maintenancev1beta1.HookFailurePolicy, pod map[string]string, events ...maintenancev1beta1.HookEvent) *maintenancev1beta1.UpgradeJobHook {
	var annotations []string
	for key, value := range pod {
		annotations = append(annotations, fmt.Sprintf("%q: %q", key, value))
	}
	template := fmt.Sprintf(`{"backoffLimit": 0, "template": {"metadata": {"annotations": {%s}},
		"spec": {"restartPolicy": "Never", "containers": [{"name": "hook", "image": "example.com/hook"}]}}}`, strings.Join(annotations, ","))
	return &maintenancev1beta1.UpgradeJobHook{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: maintenancev1beta1.UpgradeJobHookSpec{
			Events: events, Run: maintenancev1beta1.HookRunAll, FailurePolicy: policy,
			Template: maintenancev1beta1.HookJobTemplate{Spec: runtime.RawExtension{Raw: []byte(template)}},
		},
	}
}

func window(edit func(*maintenancev1beta1.UpgradeSuspensionWindow)) *maintenancev1beta1.UpgradeSuspensionWindow {
	w := &maintenancev1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "holidays"},
		Spec: maintenancev1beta1.UpgradeSuspensionWindowSpec{
			Start: timestamp(startAfter.Add(-time.Hour)), End: timestamp(startAfter.Add(time.Hour)), JobSelector: &maintenancev1beta1.LabelSelector{},
		},
	}
	edit(w)
	return w
}

func unchanged[T any](T) {}

// hooksOnly removes the version.
func hooksOnly(job *maintenancev1beta1.UpgradeJob) {
	job.Spec.DesiredVersion = maintenancev1beta1.DesiredVersion{}
}

// at runs the world until a time after the start of the window, then does something.
func at(after time.Duration, do func(*world)) func(*world) {
	return func(w *world) {
		w.RunTo(startAfter.Add(after))
		do(w)
	}
}

// moveSlot lets the UpgradeJob belong to an UpgradeConfig whose schedule does not select its start.
func moveSlot(w *world) {
	owner := &maintenancev1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "weekly"},
		Spec:       maintenancev1beta1.UpgradeConfigSpec{Schedule: maintenancev1beta1.UpgradeConfigSchedule{Cron: startAfter.Add(time.Hour).Format("4 15 * * *"), Location: "UTC"}},
	}
	w.Create(owner)
	simulation.Edit(w.Harness, w.job(), func(job *maintenancev1beta1.UpgradeJob) {
		job.Labels = map[string]string{maintenancev1beta1.ConfigLabel: string(owner.UID), maintenancev1beta1.SlotLabel: strconv.FormatInt(startAfter.Unix(), 10)}
		job.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: maintenancev1beta1.GroupVersion.String(), Kind: "UpgradeConfig", Name: owner.Name, UID: owner.UID, Controller: new(true),
		}}
	})
}

// rollOutWorkers lets the nodes of the workers be behind the release that the control plane has.
func rollOutWorkers(w *world) {
	w.cluster.ChangePools(func(pool *mcfgv1.MachineConfigPool) {
		if pool.Name == "worker" {
			pool.Status.Configuration.Name, pool.Status.UpdatedMachineCount = "rendered-worker-4.4.4", 0
		}
	})
}

// The rows of the table of outcomes in the design, in its order.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	unhealthy := func(w *world) {
		w.cluster.ChangeOperator(func(o *configv1.ClusterOperator) {
			o.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
				{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue},
				{Type: configv1.OperatorDegraded, Status: configv1.ConditionTrue, Reason: "Broken"},
			}
		})
	}
	hooksBeforeCommit := func(w *world) {
		w.Create(hook("slow", maintenancev1beta1.HookFailureIgnore, map[string]string{kubelet.Duration: "10m"}, maintenancev1beta1.EventUpgradeStart))
	}
	for name, tc := range map[string]struct {
		job     []func(*maintenancev1beta1.UpgradeJob)
		cluster func(*world) // before the creation of the UpgradeJob, or nil
		then    func(*world) // after that, or nil
		want    outcome
		message string // part of the outcome's message
	}{
		"suspended by a window": {
			cluster: func(w *world) { w.Create(window(unchanged)) },
			want:    outcome{phase: history.PhaseSkipped, reason: "Suspended", step: "NotSuspended"}, message: "holidays",
		},
		"suspended while it waits to commence": {
			cluster: unhealthy,
			then:    at(5*time.Minute, func(w *world) { w.Create(window(unchanged)) }),
			want:    outcome{phase: history.PhaseSkipped, reason: "Suspended", step: "PreHealthCheck"},
		},
		"suspended while the request is ignored": {
			cluster: func(w *world) { w.cluster.Unresponsive = true },
			then:    at(5*time.Minute, func(w *world) { w.Create(window(unchanged)) }),
			want:    outcome{phase: history.PhaseSkipped, reason: "Suspended", step: "UpgradeCommenced", commits: 1}, message: "holidays",
		},
		"suspended while the request is refused": {
			cluster: func(w *world) { w.cluster.Rejection = "the signature is missing" },
			then:    at(5*time.Minute, func(w *world) { w.Create(window(unchanged)) }),
			want:    outcome{phase: history.PhaseSkipped, reason: "Suspended", step: "UpgradeCommenced", commits: 1}, message: "holidays",
		},
		"suspended while hooks run before it commences": {
			cluster: hooksBeforeCommit,
			then:    at(5*time.Minute, func(w *world) { w.Create(window(unchanged)) }),
			want:    outcome{phase: history.PhaseSkipped, reason: "Suspended", step: "UpgradeCommenced"}, message: "holidays",
		},
		"suspended after the upgrade has commenced": {
			then: at(5*time.Minute, func(w *world) { w.Create(window(unchanged)) }),
			want: outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1},
		},
		"the slot was moved": {
			then: at(-time.Hour, moveSlot),
			want: outcome{phase: history.PhaseSkipped, reason: "Rescheduled", step: "NotSuspended"}, message: "the schedule of UpgradeConfig weekly no longer selects",
		},
		"installed already": {
			then: at(-time.Hour, func(w *world) {
				w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) {
					v.Status.History = slices.Insert(v.Status.History, 0, configv1.UpdateHistory{Version: desired, State: configv1.CompletedUpdate})
					v.Status.AvailableUpdates = nil
				})
			}),
			want: outcome{phase: history.PhaseSkipped, reason: "AlreadyAtVersion", step: "VersionStillAvailable"},
		},
		"expired while the updates cannot be retrieved": {
			cluster: func(w *world) {
				w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) {
					v.Status.Conditions[1].Status, v.Status.Conditions[1].Message = configv1.ConditionFalse, "no route to host"
				})
			},
			want: outcome{phase: history.PhaseSkipped, reason: "Expired", step: "VersionStillAvailable"}, message: "no route to host",
		},
		"expired behind a hook that hangs": {
			cluster: func(w *world) {
				w.Create(hook("hangs", maintenancev1beta1.HookFailureIgnore, map[string]string{kubelet.NeverEnds: "true"}, maintenancev1beta1.EventStart))
			},
			want: outcome{phase: history.PhaseSkipped, reason: "Expired", step: "StartHooksDone"}, message: "hangs",
		},
		"expired behind another update": {
			then: at(-time.Hour, func(w *world) {
				w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) {
					v.Status.History = slices.Insert(v.Status.History, 0, configv1.UpdateHistory{Version: "4.4.7", State: configv1.PartialUpdate})
				})
			}),
			want: outcome{phase: history.PhaseSkipped, reason: "Expired", step: "VersionStillAvailable"}, message: "4.4.7",
		},
		"expired while the workers roll out the release before": {
			cluster: rollOutWorkers,
			want:    outcome{phase: history.PhaseSkipped, reason: "Expired", step: "ClusterUpgradeable"}, message: "machine config pools being updated: worker",
		},
		"upgraded once the workers have rolled out the release before": {
			cluster: rollOutWorkers,
			then: at(20*time.Minute, func(w *world) {
				w.cluster.ChangePools(func(pool *mcfgv1.MachineConfigPool) { openshift.MarkUpdated(pool, "4.4.5") })
			}),
			want: outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1},
		},
		"expired while the operator was down": {
			then: func(w *world) {
				w.Process.Kill()
				w.RunTo(startAfter.Add(61 * time.Minute))
				w.Begin()
			},
			want: outcome{phase: history.PhaseSkipped, reason: "Expired", step: "CreateHooksDone"},
		},
		"not offered": {
			then: at(-time.Hour, func(w *world) { w.cluster.Offer("4.4.7") }),
			want: outcome{phase: history.PhaseSkipped, reason: "UpgradeWithdrawn", step: "VersionStillAvailable"}, message: "4.4.7",
		},
		"not offered since hooks run before it commences": {
			cluster: hooksBeforeCommit,
			then:    at(5*time.Minute, func(w *world) { w.cluster.Offer("4.4.7") }),
			want:    outcome{phase: history.PhaseSkipped, reason: "UpgradeWithdrawn", step: "UpgradeCommenced"}, message: "4.4.7",
		},
		"unhealthy": {
			cluster: unhealthy,
			want:    outcome{phase: history.PhaseSkipped, reason: "ClusterUnhealthy", step: "PreHealthCheck"}, message: "not healthy within 30m",
		},
		"unhealthy since hooks run before it commences": {
			cluster: hooksBeforeCommit,
			then:    at(5*time.Minute, unhealthy),
			want:    outcome{phase: history.PhaseSkipped, reason: "ClusterUnhealthy", step: "UpgradeCommenced"}, message: "not healthy within 30m",
		},
		"entries overlap": {
			job:  []func(*maintenancev1beta1.UpgradeJob){delayWorker("1h", "2h"), delayWorker("1h", "2h")},
			want: outcome{phase: history.PhaseSkipped, reason: "InvalidPools", step: "PoolsPaused"},
		},
		"an entry selects master": {
			job: []func(*maintenancev1beta1.UpgradeJob){delayWorker("1h", "2h"), func(job *maintenancev1beta1.UpgradeJob) {
				job.Spec.Config.MachineConfigPools[0].MachineConfigPoolSelector = selectPool("master")
			}},
			want: outcome{phase: history.PhaseSkipped, reason: "InvalidPools", step: "PoolsPaused"}, message: "master",
		},
		"upgraded": {want: outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1}},
		"upgraded although the availability is not checked": {
			job:  []func(*maintenancev1beta1.UpgradeJob){func(job *maintenancev1beta1.UpgradeJob) { job.Spec.DesiredVersionCheckAvailability = new(false) }},
			want: outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1},
		},
		"hooks only": {
			job:  []func(*maintenancev1beta1.UpgradeJob){hooksOnly},
			want: outcome{phase: history.PhaseUpgraded, reason: "NoUpdate"},
		},
		"hooks only, with a hook that takes longer than the timeout": {
			job: []func(*maintenancev1beta1.UpgradeJob){hooksOnly, func(job *maintenancev1beta1.UpgradeJob) { job.Spec.Config.UpgradeTimeout = "30m" }},
			cluster: func(w *world) {
				w.Create(hook("slow", maintenancev1beta1.HookFailureIgnore, map[string]string{kubelet.Duration: "45m"}, maintenancev1beta1.EventUpgradeStart))
			},
			want: outcome{phase: history.PhaseUpgraded, reason: "NoUpdate"},
		},
		"aborted by a hook": {
			cluster: func(w *world) {
				w.Create(hook("aborts", maintenancev1beta1.HookFailureAbort, map[string]string{kubelet.ExitCode: "1"}, maintenancev1beta1.EventStart))
			},
			want: outcome{phase: history.PhaseFailed, reason: "HookFailed", step: "StartHooksDone"}, message: "aborts",
		},
		"a hook fails and is ignored": {
			cluster: func(w *world) {
				w.Create(hook("ignored", maintenancev1beta1.HookFailureIgnore, map[string]string{kubelet.ExitCode: "1"}, maintenancev1beta1.EventStart))
			},
			want: outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1},
		},
		"refused": {
			cluster: func(w *world) { w.cluster.Rejection = "the signature is missing" },
			want:    outcome{phase: history.PhaseFailed, reason: "TargetRefused", step: "UpgradeCommenced", commits: 1}, message: "the signature is missing",
		},
		"moved elsewhere": {
			then: at(5*time.Minute, func(w *world) {
				w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) {
					v.Status.History = slices.Insert(v.Status.History, 0, configv1.UpdateHistory{Version: "4.4.7", State: configv1.CompletedUpdate})
				})
			}),
			want: outcome{phase: history.PhaseFailed, reason: "Superseded", step: "UpgradeCompleted", commits: 1}, message: "4.4.7",
		},
		"late": {
			cluster: func(w *world) { w.cluster.ControlPlaneDuration = 4 * time.Hour },
			want:    outcome{phase: history.PhaseFailed, reason: "TimedOut", step: "UpgradeCompleted", commits: 1},
		},
		"not available": {
			then: at(5*time.Minute, func(w *world) {
				w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) { v.Status.Conditions[0].Status = configv1.ConditionFalse })
			}),
			want: outcome{phase: history.PhaseFailed, reason: "TimedOut", step: "UpgradeCompleted", commits: 1}, message: "not available",
		},
		"unhealthy after the upgrade": {
			then: at(15*time.Minute, unhealthy),
			want: outcome{phase: history.PhaseFailed, reason: "UnhealthyAfterUpgrade", step: "PostHealthCheck", commits: 1},
		},
		"a pool that is not released in time": {
			job: []func(*maintenancev1beta1.UpgradeJob){delayWorker("1h", "90m")},
			cluster: func(w *world) {
				w.Create(hook("hangs", maintenancev1beta1.HookFailureIgnore, map[string]string{kubelet.NeverEnds: "true"}, maintenancev1beta1.EventMachineConfigPoolUnpause))
			},
			want: outcome{phase: history.PhaseFailed, reason: "UnpausingPoolsExpired", step: "DelayedPoolsUpdated", commits: 1}, message: "worker",
		},
		"a hook after the update of a pool hangs": {
			job: []func(*maintenancev1beta1.UpgradeJob){delayWorker("1h", "2h")},
			cluster: func(w *world) {
				w.Create(hook("hangs", maintenancev1beta1.HookFailureIgnore, map[string]string{kubelet.NeverEnds: "true"}, maintenancev1beta1.EventMachineConfigPoolUpdated))
			},
			want: outcome{phase: history.PhaseFailed, reason: "TimedOut", step: "DelayedPoolsUpdated", commits: 1}, message: "hangs",
		},
		"a hook after the update of a pool ends while the operator is down past the timeout": {
			job: []func(*maintenancev1beta1.UpgradeJob){delayWorker("1h", "2h")},
			cluster: func(w *world) {
				w.Create(hook("slow", maintenancev1beta1.HookFailureAbort, map[string]string{kubelet.Duration: "90m"}, maintenancev1beta1.EventMachineConfigPoolUpdated))
			},
			then: at(2*time.Hour, func(w *world) {
				w.Process.Kill()
				w.RunTo(startAfter.Add(10 * time.Hour))
				w.Begin()
			}),
			want: outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1},
		},
		"a hook after the update of a pool fails while the operator is down past the timeout": {
			job: []func(*maintenancev1beta1.UpgradeJob){delayWorker("1h", "2h")},
			cluster: func(w *world) {
				w.Create(hook("aborts", maintenancev1beta1.HookFailureAbort, map[string]string{kubelet.Duration: "90m", kubelet.ExitCode: "1"}, maintenancev1beta1.EventMachineConfigPoolUpdated))
			},
			then: at(2*time.Hour, func(w *world) {
				w.Process.Kill()
				w.RunTo(startAfter.Add(10 * time.Hour))
				w.Begin()
			}),
			want: outcome{phase: history.PhaseFailed, reason: "TimedOut", step: "DelayedPoolsUpdated", commits: 1}, message: "aborts",
		},
		"finished while the operator was down past the timeout": {
			then: at(5*time.Minute, func(w *world) {
				w.Process.Kill()
				w.RunTo(startAfter.Add(10 * time.Hour))
				w.Begin()
			}),
			want: outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1},
		},
		"a delayed pool": {
			job:  []func(*maintenancev1beta1.UpgradeJob){delayWorker("1h", "2h")},
			want: outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tc.cluster != nil {
				tc.cluster(w)
			}
			w.Create(newJob(tc.job...))
			if tc.then != nil {
				tc.then(w)
			}
			w.untilEnded()
			if got := w.outcome(); got != tc.want {
				t.Errorf("got %+v, want %+v; %s", got, tc.want, w.describe())
			}
			if !strings.Contains(w.record().Message, tc.message) {
				t.Errorf("the message is %q, want %q in it", w.record().Message, tc.message)
			}
			w.expectAnnounced(tc.want.phase)
		})
	}
}

// expectAnnounced checks that the end was announced, once, and no other one, and no step without hooks.
func (w *world) expectAnnounced(phase history.Phase) {
	w.TB.Helper()
	want := map[history.Phase]string{
		history.PhaseUpgraded: "Normal UpgradeCompleted", history.PhaseFailed: "Warning UpgradeFailed", history.PhaseSkipped: "Warning UpgradeSkipped",
	}[phase]
	var got []string
	for _, event := range w.events() {
		if _, reason, _ := strings.Cut(event, " "); reason == "UpgradeCompleted" || reason == "UpgradeFailed" || reason == "UpgradeSkipped" || reason == "UpgradeCancelled" {
			got = append(got, event)
		}
	}
	if !slices.Equal(got, []string{want}) {
		w.TB.Errorf("the end was announced as %q, want %q", got, want)
	}
	messages := slices.Concat(w.Messages("StepSkipped"), w.Messages("StepDone"))
	for _, c := range w.record().Conditions {
		about := func(message string) bool { return strings.HasPrefix(message, c.Type+": ") }
		if notified := slices.ContainsFunc(messages, about); notified && c.Reason == maintenance.ReasonNoHooks {
			w.TB.Errorf("step %s has no hooks, and is notified", c.Type)
		}
	}
}

// workers returns the machine config pool of the workers.
func (w *world) workers() *mcfgv1.MachineConfigPool {
	w.TB.Helper()
	return simulation.Get(w.Harness, client.ObjectKey{Name: "worker"}, &mcfgv1.MachineConfigPool{})
}

// Behind the commit, delayed pools are released in their window while hooks or the cleanup wait.
func TestDelayed_pools_are_released_while_another_step_waits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		step    string                       // that waits in the window
		slow    time.Duration                // the control plane takes so long, or 0
		hook    maintenancev1beta1.HookEvent // of the hook that hangs, or empty for no hook
		replace configv1.UpdateState         // of another update at 20 min, or empty for none
	}{
		"the control plane":              {step: "UpgradeCompleted", slow: time.Hour},
		"hooks after the upgrade":        {step: "UpgradeCompleteHooksDone", hook: maintenancev1beta1.EventUpgradeComplete},
		"hooks after a failure":          {step: "FailureHooksDone", hook: maintenancev1beta1.EventFailure, replace: configv1.CompletedUpdate},
		"the cluster after its takeover": {step: "ClusterSettled", replace: configv1.PartialUpdate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tc.hook != "" {
				w.Create(hook("hangs", maintenancev1beta1.HookFailureIgnore, map[string]string{kubelet.NeverEnds: "true"}, tc.hook))
			}
			if tc.slow > 0 {
				w.cluster.ControlPlaneDuration = tc.slow
			}
			w.Create(newJob(delayWorker("30m", "40m")))
			if tc.replace != "" {
				at(20*time.Minute, func(w *world) {
					w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) {
						v.Status.History = slices.Insert(v.Status.History, 0, configv1.UpdateHistory{Version: "4.4.7", State: tc.replace})
					})
				})(w)
			}
			w.RunTo(startAfter.Add(29 * time.Minute))
			conditions := w.record().Conditions
			if last := conditions[len(conditions)-1]; last.Type != tc.step || !w.workers().Spec.Paused {
				t.Fatalf("before the window, the pool is paused: %t; %s", w.workers().Spec.Paused, w.describe())
			}
			w.RunTo(startAfter.Add(31 * time.Minute))
			if w.workers().Spec.Paused {
				t.Errorf("the pool is paused in its window; %s", w.describe())
			}
		})
	}
}

// The rows of the table whose outcome is not the end.
func TestOutcomes_paused(t *testing.T) {
	t.Parallel()
	paused := func(w *world) string {
		if c := meta.FindStatusCondition(w.job().Status.Conditions, maintenancev1beta1.ConditionPaused); c != nil {
			return string(c.Status) + " " + c.Reason
		}
		return ""
	}
	t.Run("only delayed pools left", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.Create(newJob(delayWorker("1h", "2h")))
		w.RunTo(startAfter.Add(40 * time.Minute))
		if w.record().Phase != history.PhasePaused || paused(w) != "True DelaySet" || !w.workers().Spec.Paused {
			t.Errorf("%s, %s", paused(w), w.describe())
		}
		statuses := w.job().Status.MachineConfigPools
		if len(statuses) != 1 || statuses[0].Name != "worker" || statuses[0].State != "Paused" || !statuses[0].ReleaseAfter.Time.Equal(startAfter.Add(time.Hour)) {
			t.Errorf("machineConfigPools are %+v", statuses)
		}
		w.RunTo(startAfter.Add(2 * time.Hour))
		if w.record().Phase != history.PhaseUpgraded || w.workers().Spec.Paused {
			t.Errorf("after the release: %s", w.describe())
		}
	})
	t.Run("only pools left that a person paused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.Create(newJob())
		w.RunTo(startAfter.Add(5 * time.Minute))
		simulation.Edit(w.Harness, w.workers(), func(pool *mcfgv1.MachineConfigPool) { pool.Spec.Paused = true })
		w.RunTo(startAfter.Add(time.Hour))
		if w.record().Phase != history.PhasePaused || paused(w) != "True PausedByUser" {
			t.Errorf("%s, %s", paused(w), w.describe())
		}
		w.untilEnded()
		if got, want := w.outcome(), (outcome{phase: history.PhaseFailed, reason: "TimedOut", step: "UpgradeCompleted", commits: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if !w.workers().Spec.Paused {
			t.Error("the pause of a person was undone")
		}
	})
}

func TestOutcomes_deletion(t *testing.T) {
	t.Parallel()
	gone := func(w *world) bool {
		jobs := simulation.List(w.Harness, &maintenancev1beta1.UpgradeJobList{})
		return len(jobs.Items) == 0
	}
	for name, tc := range map[string]struct {
		at      time.Duration // after startAfter
		cluster func(*world)
		paused  bool // whether the delayed pool stays paused for now
		event   string
	}{
		"while it is pending":  {at: -time.Hour, event: "Normal UpgradeCancelled"},
		"before the commit":    {at: 10 * time.Minute, cluster: func(w *world) { w.cluster.Unresponsive = true }, event: "Normal UpgradeCancelled"},
		"after the commit":     {at: 10 * time.Minute, paused: true, event: "Warning UpgradeContinues"},
		"while pools are left": {at: 40 * time.Minute, paused: true, event: "Warning UpgradeContinues"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tc.cluster != nil {
				tc.cluster(w)
			}
			w.Create(newJob(delayWorker("1h", "2h")))
			w.RunTo(startAfter.Add(tc.at))
			w.Delete(w.job())
			w.Await(10*time.Minute, func() bool { return gone(w) })
			w.settle()
			pool := w.workers()
			if pool.Spec.Paused != tc.paused {
				t.Errorf("the delayed pool is paused: %t, want %t", pool.Spec.Paused, tc.paused)
			}
			if !slices.Contains(w.events(), tc.event) {
				t.Errorf("the Events are %q, want %q", w.events(), tc.event)
			}
			if requested := w.cluster.ClusterVersion().Spec.DesiredUpdate; (requested != nil) != tc.paused {
				t.Errorf("desiredUpdate is %v", requested)
			}
		})
	}
}

// A deletion while a hook runs publishes what has become of the upgrade, once, and nothing else.
func TestOutcomes_deletion_while_a_hook_runs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job     func(*maintenancev1beta1.UpgradeJob)
		event   maintenancev1beta1.HookEvent // of a hook that never ends
		step    string                       // that waits for it
		within  time.Duration                // the UpgradeJob is gone
		outcome string                       // the Event about the end; the other ones are missing
		finish  bool                         // whether Finish hooks have run
	}{
		"Success": {job: unchanged[*maintenancev1beta1.UpgradeJob], event: maintenancev1beta1.EventSuccess, step: "SuccessHooksDone", within: time.Minute, outcome: "UpgradeCompleted"},
		"Finish":  {job: unchanged[*maintenancev1beta1.UpgradeJob], event: maintenancev1beta1.EventFinish, step: "FinishHooksDone", within: time.Minute, outcome: "UpgradeCompleted", finish: true},
		"UpgradeStart": {
			job: unchanged[*maintenancev1beta1.UpgradeJob], event: maintenancev1beta1.EventUpgradeStart, step: "UpgradeStartHooksDone", within: time.Minute, outcome: "UpgradeCancelled", finish: true,
		},
		"Success, hooks only": {job: hooksOnly, event: maintenancev1beta1.EventSuccess, step: "SuccessHooksDone", within: time.Minute, outcome: "UpgradeCompleted"},
		"UpgradeComplete, hooks only": {
			job: hooksOnly, event: maintenancev1beta1.EventUpgradeComplete, step: "UpgradeCompleteHooksDone", within: time.Minute, outcome: "UpgradeCancelled", finish: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Create(hook("hangs", maintenancev1beta1.HookFailureIgnore, map[string]string{kubelet.NeverEnds: "true"}, tc.event))
			if tc.event != maintenancev1beta1.EventFinish {
				w.Create(hook("finish", maintenancev1beta1.HookFailureIgnore, nil, maintenancev1beta1.EventFinish))
			}
			w.Create(newJob(tc.job))
			w.untilStep(tc.step)
			if hooksOnly := w.job().Spec.DesiredVersion.Version == ""; hooksOnly && w.record().CommenceTime != nil {
				t.Errorf("without a version, commenceTime is %s", w.record().CommenceTime)
			}
			finished := w.deleteJob(tc.within)
			if finished != tc.finish {
				t.Errorf("Finish hooks have run: %t, want %t", finished, tc.finish)
			}
			for _, reason := range []string{"UpgradeCompleted", "UpgradeCancelled", "UpgradeFailed", "UpgradeSkipped", "UpgradeContinues", "CancellationAbandoned"} {
				want := 0
				if reason == tc.outcome {
					want = 1
				}
				if got := w.Messages(reason); len(got) != want {
					t.Errorf("Events %s are %q, want %d", reason, got, want)
				}
			}
		})
	}
}

// A deletion waits for Finish hooks at most as long as cancellation.timeout, and names them then.
func TestOutcomes_deletion_with_a_hook_that_hangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(hook("hangs", maintenancev1beta1.HookFailureIgnore, map[string]string{kubelet.NeverEnds: "true"}, maintenancev1beta1.EventFinish))
	w.Create(newJob())
	w.RunTo(startAfter.Add(-time.Hour))
	if finished := w.deleteJob(11 * time.Minute); !finished {
		t.Error("no Finish hook has run")
	}
	if got := w.Messages("UpgradeCancelled"); len(got) != 1 {
		t.Errorf("the Events about the end are %q", got)
	}
	got := w.Messages("CancellationAbandoned")
	if len(got) != 1 || !strings.Contains(got[0], "FinishHooksDone") || !strings.Contains(got[0], "hangs") || strings.Contains(got[0], "desiredUpdate") {
		t.Errorf("what the deletion did not wait for: %q", got)
	}
}

// untilStep runs the world until that step has been running for two minutes.
func (w *world) untilStep(name string) {
	w.TB.Helper()
	running := func() bool {
		return slices.ContainsFunc(w.record().Conditions, func(c history.StepCondition) bool { return c.Type == name && c.CompleteTime == nil })
	}
	w.Await(24*time.Hour, running)
	w.RunFor(2 * time.Minute)
	if !running() {
		w.TB.Fatalf("step %s is not running: %s", name, w.describe())
	}
}

// deleteJob deletes the UpgradeJob, waits for its end for at most the given time, and reports whether a Job of
// event Finish was created.
func (w *world) deleteJob(within time.Duration) bool {
	w.TB.Helper()
	w.Delete(w.job())
	finished := false
	gone := func() bool {
		hookJobs := simulation.List(w.Harness, &batchv1.JobList{})
		for i := range hookJobs.Items {
			for key, value := range hookJobs.Items[i].Labels {
				finished = finished || strings.HasSuffix(key, "/event") && value == string(maintenancev1beta1.EventFinish)
			}
		}
		jobs := simulation.List(w.Harness, &maintenancev1beta1.UpgradeJobList{})
		return len(jobs.Items) == 0
	}
	if err := w.RunUntil(within, gone); err != nil {
		w.TB.Fatalf("%v; %s", err, w.describe())
	}
	w.settle()
	return finished
}

func TestHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	simulation.Edit(w.Harness, w.cluster.ClusterVersion(), func(v *configv1.ClusterVersion) {
		v.Annotations = map[string]string{upgradev1alpha1.HoldAnnotation: "freeze"}
	})
	w.Create(newJob())
	w.untilEnded()
	if got, want := w.outcome(), (outcome{phase: history.PhaseSkipped, reason: "Expired", step: "LockAcquired"}); got != want {
		t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
	}
	if message := w.record().Message; !strings.Contains(message, "freeze") {
		t.Errorf("the message %q does not name the hold", message)
	}
}

// The pools do not matter to an UpgradeJob that names no version.
func TestHooksOnly_has_no_pool_problem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(newJob(hooksOnly, delayWorker("1h", "2h"), delayWorker("1h", "2h")))
	w.RunTo(noon.Add(3 * time.Minute))
	if !meta.IsStatusConditionTrue(w.job().Status.Conditions, maintenancev1beta1.ConditionAccepted) {
		t.Errorf("it is not accepted: %s", w.describe())
	}
	w.untilEnded()
	if got, want := w.outcome(), (outcome{phase: history.PhaseUpgraded, reason: "NoUpdate"}); got != want {
		t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
	}
}

// A pool that was paused because the upgrade failed is listed until a user unpauses it.
func TestPausedOnFailure_is_listed_until_it_is_unpaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(newJob(func(job *maintenancev1beta1.UpgradeJob) {
		job.Spec.Config.PauseMachineConfigPoolsOnFailure = new(selectPool("worker"))
	}))
	w.RunTo(startAfter.Add(5 * time.Minute))
	w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) { v.Status.Conditions[0].Status = configv1.ConditionFalse })
	w.untilEnded()
	expect := func(want ...string) {
		t.Helper()
		var got []string
		for _, pool := range w.job().Status.MachineConfigPools {
			got = append(got, pool.Name+" "+pool.State)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("machineConfigPools are %q, want %q; %s", got, want, w.describe())
		}
	}
	expect("worker PausedOnFailure")
	before := len(w.Requests)
	w.RunFor(24 * time.Hour)
	if made := w.Requests[before:]; len(made) > 0 {
		t.Errorf("%d requests while the pool stays paused: %q", len(made), made)
	}
	expect("worker PausedOnFailure")
	simulation.Edit(w.Harness, w.workers(), func(pool *mcfgv1.MachineConfigPool) { pool.Spec.Paused = false })
	w.settle()
	expect()
	before = len(w.Requests)
	w.RunFor(24 * time.Hour)
	if made := w.Requests[before:]; len(made) > 0 {
		t.Errorf("%d requests after the end: %q", len(made), made)
	}
}

// Once the upgrade has failed, no hook can abort it: its pools are unpaused in their time.
func TestHook_with_Abort_after_a_failure_is_ignored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(hook("aborts", maintenancev1beta1.HookFailureAbort, map[string]string{kubelet.Duration: "90m", kubelet.ExitCode: "1"}, maintenancev1beta1.EventMachineConfigPoolUnpause))
	w.Create(newJob(delayWorker("1h", "4h"), func(job *maintenancev1beta1.UpgradeJob) { job.Spec.Config.UpgradeTimeout = "2h" }))
	w.untilEnded()
	want := outcome{phase: history.PhaseFailed, reason: "TimedOut", step: "DelayedPoolsUpdated", commits: 1}
	if got := w.outcome(); got != want || w.workers().Spec.Paused {
		t.Errorf("got %+v, paused %t, want %+v and an unpaused pool; %s", got, w.workers().Spec.Paused, want, w.describe())
	}
	var last string
	for _, c := range w.record().Conditions {
		for _, item := range c.Items {
			last = c.Type + " " + item.Name + ": " + item.Message
		}
	}
	if !strings.HasPrefix(last, "PoolsReleased MachineConfigPoolUnpause/worker: 0 hooks completed, 1 failed and ignored: aborts (") {
		t.Errorf("the last item is %q", last)
	}
}

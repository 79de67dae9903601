// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// forgeStarted replaces the history by an attempt that has just started, as a client with the right
// to write the status can.
func (w *world) forgeStarted() {
	w.t.Helper()
	clear(w.completions)
	now := metav1.NewTime(w.Now().Truncate(time.Second))
	cfg := w.get(upgrade)
	cfg.Status.History = []history.Record{{Version: desired, Phase: history.PhaseUpgrading, Attempt: 1, StartTime: &now}}
	w.must(w.client.Status().Update(w.t.Context(), cfg))
}

// requested returns the desired update of the cluster; empty if there is none.
func (w *world) requested() string {
	w.t.Helper()
	var version configv1.ClusterVersion
	w.must(w.client.Get(w.t.Context(), clusterstate.VersionKey, &version))
	if version.Spec.DesiredUpdate == nil {
		return ""
	}
	return version.Spec.DesiredUpdate.Version
}

// The Lease notes that the update was requested, also if a forged record does not.
func TestRequestIsWithdrawnAfterTheRecordWasForged(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world){
		"the window closes":                   func(w *world) { w.runTo(time.Hour) },
		"the upgrade is held":                 func(w *world) { w.hold("maintenance"); w.runFor(time.Minute) },
		"the operator restarts and is held":   func(w *world) { w.restart(); w.hold("maintenance"); w.runFor(time.Minute) },
		"forged again, and the window closes": func(w *world) { w.forgeStarted(); w.runTo(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 6 * time.Hour
			w.runUntilRequested()
			w.cordonWorker(true) // so that the forged attempt does not request it again
			w.forgeStarted()
			w.runFor(time.Minute)
			if got := w.requested(); got != desired {
				t.Fatalf("the desired update is %q before the end", got)
			}
			end(w)
			if got := w.requested(); got != "" {
				t.Errorf("the desired update is still %q; %s", got, w.describe())
			}
		})
	}
}

// What another client requests after a hold has withdrawn the request is not that of the attempt.
func TestWithdrawnRequestIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.AcceptDelay = 6 * time.Hour
	w.runUntilRequested()
	w.hold("maintenance")
	w.runFor(time.Minute)
	if got := w.requested(); got != "" {
		t.Fatalf("the desired update is %q", got)
	}
	w.requestElsewhere(desired)
	w.restart()
	w.runTo(time.Hour)
	if got := w.requested(); got != desired {
		t.Errorf("the desired update is %q; %s", got, w.describe())
	}
}

// The steps of an attempt that has not started are run, whatever another client has written about them.
func TestStepsOfAForgedRecordAreRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.process.Kill()
	w.cordonWorker(true)
	cfg := w.get(upgrade)
	at := metav1.NewTime(tenPast)
	forged := history.Record{Version: desired, Phase: history.PhasePending, Attempt: 1, UpgradeAt: &at}
	for _, step := range []string{"PreHealthCheck", "CapacityReserved", "VersionPinned"} {
		forged.Conditions = append(forged.Conditions, history.StepCondition{Type: step, Status: metav1.ConditionTrue, Reason: step + "Done", StartTime: &at, CompleteTime: &at})
	}
	cfg.Status.History = []history.Record{forged}
	w.must(w.client.Status().Update(t.Context(), cfg))
	w.start()
	w.runTo(30 * time.Minute)
	if got := w.requested(); got != "" {
		t.Errorf("%s is requested although a node is cordoned; %s", got, w.describe())
	}
}

// The lock of an upgrade that is gone in mid-attempt, because another client removed its finalizer, is released at once.
func TestLockOfAnUpgradeThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilRequested()
	cfg := w.get(upgrade)
	cfg.Finalizers = nil
	w.must(w.client.Update(t.Context(), cfg))
	w.must(w.client.Delete(t.Context(), cfg))
	w.runFor(time.Minute)
	if holder := w.holder(); holder != "" {
		t.Errorf("%s has the lock", holder)
	}
}

// A start after the requested time that is still to come is that of a clock that was ahead.
func TestStartOfAClockThatWasAheadIsHeldUntilTheWindow(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"a day": 24 * time.Hour, "a little more than clocks differ": 12 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.process.Kill()
			cfg := w.get(upgrade)
			start, at := metav1.NewTime(w.Now().Add(ahead).Truncate(time.Second)), metav1.NewTime(tenPast)
			cfg.Status.History = []history.Record{{Version: desired, Phase: history.PhaseUpgrading, Attempt: 1, UpgradeAt: &at, StartTime: &start}}
			w.must(w.client.Status().Update(t.Context(), cfg))
			w.start()
			w.runTo(-time.Second)
			if got := w.requested(); got != "" {
				t.Errorf("%s is requested before the window; %s", got, w.describe())
			}
			w.runToCompletion()
		})
	}
}

// An upgrade whose status the API server always rejects does nothing, and keeps no other one from
// starting.
func TestRejectedUpgradeDoesNotKeepAnotherFromStarting(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("UpgradeConfig").GroupKind(), upgrade.Name, nil)
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilStep("VersionPinned")
	w.plan = func(r simulation.Request) simulation.Fault {
		if nameOf(r) == "patch UpgradeConfig/status" && r.Key == upgrade {
			return simulation.Fault{Outcome: simulation.Refuse, Err: invalid}
		}
		return simulation.Fault{}
	}
	w.pause()
	w.runFor(time.Second)
	other := client.ObjectKey{Namespace: "team-b", Name: "other"}
	w.create(upgradeConfig(other, newTime(w.Now())))
	w.runUntil(func() bool { return w.isFinished(other) })
	if got := w.get(other).Status.History[0].Phase; got != history.PhaseUpgraded {
		t.Errorf("phase %s; %s", got, w.describe())
	}
}

// As long as neither the object nor the Lease changes, the API server is asked once whether a finalizer
// without a record is that of an attempt.
func TestPresetFinalizerIsCheckedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.ControlPlaneDuration = 3 * time.Hour
	w.runUntilStep("ControlPlaneUpgraded")
	other := client.ObjectKey{Namespace: "team-b", Name: "other"}
	preset := upgradeConfig(other, newTime(w.Now()))
	preset.Finalizers = []string{v1alpha1.Finalizer}
	w.create(preset)
	w.runFor(time.Minute)
	w.enqueue(other) // the first pass over the object with its status
	w.runFor(time.Second)
	w.requests = nil
	for range 20 {
		w.enqueue(other)
		w.runFor(time.Second)
	}
	if len(w.requests) > 0 {
		t.Errorf("requests: %q; %s", w.requests, w.describe())
	}
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.runUntil(func() bool { return w.isFinished(other) })
}

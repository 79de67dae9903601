// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
)

// As long as neither the object nor the Lease changes, the API server is asked once whether a finalizer without a
// record belongs to an attempt.
func TestPresetFinalizerIsCheckedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.ControlPlaneDuration = 3 * time.Hour
	w.runUntilStep("ControlPlaneUpgraded")
	other := client.ObjectKey{Namespace: "team-b", Name: "other"}
	preset := upgradeConfig(other, newTime(w.Now()))
	preset.Finalizers = []string{upgradev1alpha1.Finalizer}
	w.create(preset)
	w.RunFor(time.Minute)
	w.enqueue(other) // the first pass over the object with its status
	w.RunFor(time.Second)
	w.Requests = nil
	for range 20 {
		w.enqueue(other)
		w.RunFor(time.Second)
	}
	if len(w.Requests) > 0 {
		t.Errorf("requests: %q; %s", w.Requests, w.describe())
	}
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.runUntil(func() bool { return w.isFinished(other) })
}

func TestDeletionOfAFinishedUpgradeReadsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.Writes = refuse("create Event")
	w.runUntil(func() bool { return w.get(upgrade).Status.History != nil && w.record().CompleteTime != nil })
	if len(w.get(upgrade).Finalizers) == 0 {
		t.Fatal("the finalizer is gone already")
	}
	w.Writes, w.errors = nil, nil
	w.failReads(24 * time.Hour)
	w.remove(upgrade)
	w.RunFor(time.Second)
	if w.exists(upgrade) || len(w.errors) > 0 {
		t.Errorf("errors %v; %s", w.errors, w.describe())
	}
}

func TestQuietReconcileMakesNoRequest(t *testing.T) {
	t.Parallel()
	for name, reach := range map[string]func(*world){
		"scheduled":                           func(w *world) { w.runTo(-6 * time.Minute) },
		"paused":                              func(w *world) { w.pause(); w.runTo(time.Minute) },
		"lock of another upgrade":             func(w *world) { w.createLock(&lock.Holder{Kind: "UpgradeJob"}); w.runTo(time.Minute) },
		"cluster unreadable before the start": func(w *world) { w.failReads(24 * time.Hour); w.runTo(time.Minute) },
		"step waiting":                        func(w *world) { w.runUntilStep("ControlPlaneUpgraded"); w.RunFor(time.Second) },
		"cluster unreadable during a step": func(w *world) {
			w.runUntilStep("ControlPlaneUpgraded")
			w.failReads(24 * time.Hour)
			w.RunFor(time.Minute)
		},
		"finished": func(w *world) { w.runToCompletion(); w.RunFor(time.Second) },
		"failed":   func(w *world) { w.pause(); w.runTo(31 * time.Minute) },
		"failed without Events": func(w *world) {
			w.Writes = refuse("create Event")
			w.pause()
			w.runTo(time.Hour)
		},
		"unknown type": func(w *world) {
			w.runUntilStep("ControlPlaneUpgraded")
			w.snapshot.Upgraders = nil
			w.RunFor(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			reach(w)
			w.Requests = nil
			before := w.reconciles
			for range 20 { // nodes, pools, and operators change all the time
				w.enqueue(upgrade)
				w.Await(0, w.Quiet)
			}
			if n := w.reconciles - before; n != 20 {
				t.Errorf("%d reconciles", n)
			}
			if diff := cmp.Diff([]string(nil), w.Requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitingStepIsProbedEveryFiveMinutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.ControlPlaneDuration = 3 * time.Hour
	w.runUntilStep("ControlPlaneUpgraded")
	w.RunFor(time.Minute)
	w.Requests = nil
	w.RunFor(time.Hour)
	want := make([]string, 12)
	for i := range want {
		want[i] = "patch UpgradeConfig/status"
	}
	if diff := cmp.Diff(want, w.Requests); diff != "" {
		t.Errorf("requests in an hour (-want +got):\n%s", diff)
	}
}

func TestMessageIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.ControlPlaneDuration = 3 * time.Hour
	w.runUntilStep("ControlPlaneUpgraded")
	w.RunFor(time.Minute)
	w.Requests = nil
	for i := range 600 { // another message each second
		w.After(time.Duration(i)*time.Second, func() {
			w.cluster.Report(configv1.OperatorProgressing, configv1.ConditionTrue, fmt.Sprintf("%d of 600 done", i))
		})
	}
	w.RunFor(10 * time.Minute)
	if n := len(w.Requests); n < 9 || n > 12 {
		t.Errorf("%d requests in ten minutes: %q", n, w.Requests)
	}
	if c := find(w.get(upgrade).Status.History, desired, 1, "ControlPlaneUpgraded"); c.Message < "54" {
		t.Errorf("the message is %q", c.Message)
	}
}

func TestRequestsOfAnUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.Process.Kill()
	w.Program.Latency = 700 * time.Millisecond
	w.Begin()
	w.runToCompletion()
	status, reads := 0, map[string]int{}
	for _, request := range w.Requests {
		switch request {
		case "patch UpgradeConfig/status":
			status++
		case "get UpgradeConfig", "get Lease", "get ClusterVersion":
			reads[request]++
		}
	}
	if steps := len(w.record().Conditions); status > 2*steps+6 { // the rest are heartbeats, and what precedes the first step
		t.Errorf("%d status writes for %d steps", status, steps)
	}
	// The UpgradeConfig when the process starts, because its last write may have come from another
	// process, and when the finalizer is set and removed, because the cache does not hold the finalizers
	// of other clients. The Lease is only written: the API server refuses a write that a stale cache is the reason for.
	if diff := cmp.Diff(map[string]int{"get UpgradeConfig": 3}, reads); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
}

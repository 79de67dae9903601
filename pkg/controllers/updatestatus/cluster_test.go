// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// TestCluster_in_trouble makes the cluster fail for a while in the middle of an update. The
// assessment does not improve during that time. Afterward everything is as before: no insight was
// resolved or is new.
func TestCluster_in_trouble(t *testing.T) {
	t.Parallel()
	var saved configv1.ClusterVersionStatus
	var deleted *configv1.ClusterVersion
	for name, tc := range map[string]struct {
		begin, end func(*world)
		unknown    bool // the state during the failure
	}{
		"API server that refuses writes": {
			func(w *world) {
				w.Plan = simulation.Fault{Outcome: simulation.Refuse}.If(simulation.Request.IsWrite)
			}, func(w *world) { w.Plan = nil }, false,
		},
		"clock a day ahead, and back": {
			func(w *world) { w.Jump(24 * time.Hour) }, func(w *world) { w.Jump(-24 * time.Hour) }, false,
		},
		"empty ClusterVersion": {
			func(w *world) {
				w.script.ChangeVersion(func(v *configv1.ClusterVersion) {
					saved, v.Status = v.Status, configv1.ClusterVersionStatus{}
				})
			},
			func(w *world) { w.script.ChangeVersion(func(v *configv1.ClusterVersion) { v.Status = saved }) }, true,
		},
		"deleted ClusterVersion": {
			func(w *world) {
				deleted = w.script.ClusterVersion()
				w.Delete(deleted.DeepCopy())
			},
			func(w *world) {
				deleted.ResourceVersion = ""
				w.Must(w.Add(deleted))
			}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.register("shop")
			w.Begin()
			w.update()
			w.answer(w.reports("shop", updatev1beta1.LevelWarning, "disk"))
			w.RunFor(2 * time.Minute)
			before, started := insights(w.object().Status), w.object().Status.Assessment.StartedTime
			began := w.Now().Truncate(time.Second)
			tc.begin(w)
			w.RunFor(10 * time.Minute)
			if got := w.object().Status.Assessment.State; got == updatev1beta1.StateIdle || tc.unknown && got != updatev1beta1.StateUnknown {
				t.Errorf("the state is %s", got)
			}
			tc.end(w)
			w.RunFor(2 * time.Minute)
			status := w.object().Status
			if diff := cmp.Diff(before["shop disk"], insights(status)["shop disk"]); diff != "" {
				t.Errorf("first observation (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(started, status.Assessment.StartedTime); diff != "" {
				t.Errorf("start of the update (-before +after):\n%s", diff)
			}
			for _, resolved := range status.RecentlyResolved {
				if resolved.FirstObservedTime.Time.Before(began) {
					t.Errorf("resolved: %+v", resolved)
				}
			}
		})
	}
}

// TestTarget_that_is_superseded requests another release in the middle of an update. It counts as
// another update, and the insights of the informer persist.
func TestTarget_that_is_superseded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("shop")
	w.Begin()
	w.update()
	w.answer(w.reports("shop", updatev1beta1.LevelWarning, "disk"))
	w.RunFor(2 * time.Minute)
	before := insights(w.object().Status)["shop disk"]
	w.script.ChangeVersion(func(v *configv1.ClusterVersion) {
		v.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.7", Image: "example.com/release:4.4.7"}
		v.Status.History = append([]configv1.UpdateHistory{{Version: "4.4.7", Image: v.Spec.DesiredUpdate.Image, State: configv1.PartialUpdate, StartedTime: metav1.NewTime(w.Now())}}, v.Status.History...)
	})
	w.RunFor(2 * time.Minute)
	status := w.object().Status
	if a := status.Assessment; a.Release != "4.4.7" || a.FromRelease != oldRelease || a.State != updatev1beta1.StateProgressing {
		t.Errorf("%s from %s to %s", a.State, a.FromRelease, a.Release)
	}
	if again := insights(status)["shop disk"]; !again.Equal(before) {
		t.Errorf("the insight was first observed at %s, and then at %s", before, again)
	}
	if len(status.PastUpdates) > 0 {
		t.Errorf("past updates: %+v", status.PastUpdates)
	}
}

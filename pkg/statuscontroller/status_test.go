// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// pending returns the status of the condition UpdatePending of the control plane.
func (w *world) pending() metav1.ConditionStatus {
	w.TB.Helper()
	status := w.status().Status
	if status.ControlPlane == nil {
		return ""
	}
	if c := apimeta.FindStatusCondition(status.ControlPlane.Conditions, updatev1beta1.ConditionUpdatePending); c != nil {
		return c.Status
	}
	return ""
}

func TestUpdateStatus_is_created_and_follows_the_cluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Begin()
	w.RunFor(10 * time.Second)
	if got := w.pending(); got != metav1.ConditionFalse {
		t.Errorf("before the update, UpdatePending is %q", got)
	}
	w.update()
	w.RunFor(time.Minute)
	if got := w.pending(); got != metav1.ConditionTrue {
		t.Errorf("during the update, UpdatePending is %q", got)
	}
	status := w.status()
	w.Delete(&status)
	w.RunFor(10 * time.Second)
	if got := w.pending(); got != metav1.ConditionTrue {
		t.Errorf("after the UpdateStatus was deleted, UpdatePending is %q", got)
	}
}

func TestIdle_costs_no_request(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Begin()
	w.RunFor(time.Minute)
	w.Requests = nil
	before := w.status().Status
	w.RunFor(10 * time.Minute)
	if diff := cmp.Diff([]string(nil), w.Requests); diff != "" {
		t.Errorf("requests in ten idle minutes (-want +got):\n%s\nstatus (-before +after):\n%s", diff, cmp.Diff(before, w.status().Status))
	}
}

func TestActive_and_unchanged_costs_a_write_a_minute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Begin()
	w.update()
	w.RunFor(5 * time.Minute)
	before := w.status().Status
	w.writes()
	w.RunFor(10 * time.Minute)
	if n := w.writes(); n < 8 || n > 10 {
		t.Errorf("%d writes in ten active minutes without a change (-before +after):\n%s", n, cmp.Diff(before, w.status().Status))
	}
}

// firstObserved returns the time of first observation of each insight about the control plane.
func (w *world) firstObserved() map[string]metav1.Time {
	w.TB.Helper()
	all := map[string]metav1.Time{}
	for _, of := range w.status().Status.ControlPlane.UpdateInformers {
		for i := range of.Insights {
			all[of.Insights[i].UUID] = of.Insights[i].FirstObservedTime
		}
	}
	return all
}

func TestRestart_resolves_nothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Begin()
	w.update()
	w.RunFor(5 * time.Minute)
	before := w.firstObserved()
	if len(before) == 0 {
		t.Fatal("there are no insights")
	}
	w.Restart()
	w.RunFor(5 * time.Minute)
	if diff := cmp.Diff(before, w.firstObserved()); diff != "" {
		t.Errorf("first observed (-before the restart +after):\n%s", diff)
	}
	if resolved := w.status().Status.RecentlyResolved; len(resolved) > 0 {
		t.Errorf("resolved by a restart: %+v", resolved)
	}
}

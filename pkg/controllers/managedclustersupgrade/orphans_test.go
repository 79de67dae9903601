// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// leaveWorks creates the work of a preflight for each cluster, as a hub does whose cache is behind, and a work of another
// client that has the label of the upgrade. It returns the name of the latter.
func (w *world) leaveWorks(clusters ...string) string {
	w.TB.Helper()
	run := w.run("c0000").DeepCopy()
	for _, name := range clusters {
		run.Namespace = name
		work, err := delivery.PreflightWork(run)
		w.Must(err)
		w.Create(work)
	}
	stranger, err := delivery.PreflightWork(run)
	w.Must(err)
	stranger.Name, stranger.Annotations = "backup", nil
	w.Create(stranger)
	return stranger.Name
}

func (w *world) expectWorks(want ...string) {
	w.TB.Helper()
	var got []string
	for _, work := range simulation.List(w.Harness, &workv1.ManifestWorkList{}).Items {
		got = append(got, work.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.TB.Errorf("works (-want +got):\n%s", diff)
	}
}

func TestDelete_removes_a_work_without_a_run(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, concurrency(2))
	w.RunFor(hours)
	stranger := w.leaveWorks("c0000", "c0001")
	w.Delete(w.get())
	w.RunFor(time.Minute)
	w.expectWorks(stranger)
}

// The API server creates a work for a former leader after the upgrade and its runs are gone.
func TestDelete_removes_a_work_that_is_created_later(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.RunFor(hours)
	run := w.run("c0000")
	w.Delete(w.get())
	w.RunFor(time.Minute)
	work, err := delivery.PreflightWork(run)
	w.Must(err)
	w.Create(work)
	w.RunFor(time.Minute)
	w.expectWorks()
}

// The work of a run stays until the run has removed it, although the upgrade is gone.
func TestDelete_leaves_the_work_of_a_run_to_it(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.RunFor(10 * time.Minute)
	w.cleaning["c0000"] = true
	stranger := w.leaveWorks("c0000")
	u := w.get()
	u.Finalizers = nil
	w.Update(u)
	w.Delete(u)
	w.RunFor(time.Minute)
	w.expectWorks(stranger, "c0000-upgrade-preflight")
	run := w.run("c0000")
	run.Finalizers = nil
	w.Update(run)
	w.RunFor(time.Minute)
	w.expectWorks(stranger)
	w.Requests = nil
	work := simulation.Get(w.Harness, client.ObjectKey{Namespace: "c0000", Name: stranger}, &workv1.ManifestWork{})
	work.Annotations = map[string]string{"changed": "true"}
	w.Update(work)
	w.RunFor(time.Hour)
	if len(w.Requests) > 0 {
		t.Errorf("requests about the work of another client: %q", w.Requests)
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// hours is longer than any rollout of these tests takes.
const hours = 24 * time.Hour

func TestRollout_completes_in_slots(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 7, concurrency(3))
	w.RunFor(10 * time.Minute)
	w.expect("7/0/3/0/0/4", fleetv1beta1.ReasonNoFreeSlot)
	w.runUntil(hours, fleetv1beta1.ReasonFinished)
	w.RunFor(hours)
	w.expect("7/0/0/7/0/0", fleetv1beta1.ReasonFinished)
	u := w.get()
	if w.maxFlight != 3 || u.Status.CompletionTime == nil || u.Status.StartTime == nil {
		t.Errorf("%d at a time, status %+v", w.maxFlight, u.Status)
	}
	run := w.run("c0000")
	if run.Spec.Attempt != 1 || run.Spec.Timeouts.ClusterUpgrade != "2h" || run.Spec.Timeouts.Soak != "" || run.Spec.ClusterVersion.Version != "4.20.6" {
		t.Errorf("run %+v", run.Spec)
	}
}

func TestRollout_canary_first(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, concurrency(3), canary)
	w.RunFor(time.Minute)
	w.expect("3/0/0/0/0/3", fleetv1beta1.ReasonCanaryNotSelected)
	w.editCluster("c0002", func(c *clusterv1.ManagedCluster) { c.Labels["canary"] = "yes" })
	w.fails["c0002"] = 1
	w.runUntil(hours, fleetv1beta1.ReasonCanaryFailed)
	w.RunFor(hours)
	w.expect("3/0/0/0/1/2", fleetv1beta1.ReasonCanaryFailed)
	if c := w.condition(fleetv1beta1.ConditionFailed); c.Reason != fleetv1beta1.ReasonCanaryFailed {
		t.Errorf("condition Failed: %+v", c)
	}
	if soak := w.run("c0002").Spec.Timeouts.Soak; soak != "30m" {
		t.Errorf("canary soaks %s", soak)
	}
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.runUntil(hours, fleetv1beta1.ReasonFinished)
	w.RunFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}

func TestRollout_stops_at_the_budget_and_retries_the_failed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5, concurrency(2), maxFailures(0))
	w.fails["c0000"] = 1
	w.runUntil(hours, fleetv1beta1.ReasonMaxFailuresExceeded)
	w.RunFor(hours)
	w.expect("5/0/0/1/1/3", fleetv1beta1.ReasonMaxFailuresExceeded)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.RunFor(hours)
	w.expect("5/0/0/5/0/0", fleetv1beta1.ReasonFinished)
	if first, second := w.run("c0000").Spec.Attempt, w.run("c0001").Spec.Attempt; first != 2 || second != 1 {
		t.Errorf("attempts %d and %d", first, second)
	}
}

func TestPause_holds_and_resumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, concurrency(2))
	w.RunFor(10 * time.Minute)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	w.RunFor(hours)
	w.expect("4/0/0/2/0/2", fleetv1beta1.ReasonPaused)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
	w.RunFor(hours)
	w.expect("4/0/0/4/0/0", fleetv1beta1.ReasonFinished)
}

func TestPause_is_observed_at_once(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 400, concurrency(400))
	w.Await(time.Minute, func() bool { return len(w.order) > 0 })
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	paused := w.Now()
	w.runUntil(time.Minute, fleetv1beta1.ReasonPaused)
	if w.Now().Sub(paused) > 2*time.Second || len(w.order) > 3*maxAdmissions {
		t.Errorf("paused after %s, %d admitted", w.Now().Sub(paused), len(w.order))
	}
}

func TestCancel_admits_no_other_cluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.RunFor(10 * time.Minute)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Cancelled = true })
	w.RunFor(hours)
	w.expect("4/0/0/1/0/3", fleetv1beta1.ReasonCancelled)
}

func TestDryRun_admits_no_cluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun = true })
	w.RunFor(hours)
	w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonDryRun)
	if w.get().Status.StartTime != nil {
		t.Error("a dry run has a start")
	}
}

func TestWindow_opens_admission(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, concurrency(1), func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.Windows = []fleetv1beta1.AdmissionWindow{
			{Cron: "0 22 * * *", Location: "UTC", Duration: "1h"}, {Cron: "30 22 * * *", Location: "UTC", Duration: "1h"},
		}
	})
	w.RunFor(time.Minute) // it is 12:01
	w.expect("3/0/0/0/0/3", fleetv1beta1.ReasonOutsideWindow)
	if next := w.get().Status.NextTime; next == nil || next.UTC().Format("15:04") != "22:00" {
		t.Errorf("next time %s", next)
	}
	w.RunFor(10*time.Hour + 5*time.Minute) // 22:06
	if next := w.get().Status.NextTime; next == nil || next.UTC().Format("15:04") != "23:30" {
		t.Errorf("end of the window %s", next)
	}
	w.RunFor(2 * time.Hour) // 00:06: three starts would need 80 minutes, the windows have 90
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}

func TestHold_skips_the_cluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) {
		c.Annotations = map[string]string{upgradev1alpha1.HoldAnnotation: "audit"}
	})
	w.RunFor(hours)
	w.expect("2/0/0/1/0/1", fleetv1beta1.ReasonHeld)
	if causes := w.get().Status.Causes; len(causes) != 1 || causes[0].Clusters[0] != "c0000" {
		t.Errorf("causes %+v", causes)
	}
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { c.Annotations = nil })
	w.RunFor(hours)
	w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
}

func TestDependency(t *testing.T) {
	t.Parallel()
	on := func(perCluster bool, name string) func(*fleetv1beta1.ManagedClustersUpgrade) {
		return func(u *fleetv1beta1.ManagedClustersUpgrade) {
			u.Spec.DependsOn = []fleetv1beta1.Dependency{{Name: name, PerCluster: perCluster}}
		}
	}
	t.Run("missing, then incomplete, then complete", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 2, on(false, "first"))
		w.RunFor(time.Minute)
		w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonDependencyMissing)
		w.Create(w.upgrade("first"))
		w.RunFor(10 * time.Minute)
		w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonDependencyIncomplete)
		w.RunFor(hours)
		w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
	})
	t.Run("per cluster", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 2, on(true, "first"))
		w.Create(w.upgrade("first"))
		w.RunFor(30 * time.Minute)
		w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonHeld)
		w.RunFor(30 * time.Minute) // c0000 is complete there
		w.expect("2/0/1/0/0/1", fleetv1beta1.ReasonNoFreeSlot)
		w.RunFor(hours)
		w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
	})
	for name, test := range map[string]struct {
		perCluster bool
		first      string
		message    string
	}{
		"cycle":                {first: "second", message: "spec.dependsOn forms a cycle: stores, second, stores"},
		"cycle per cluster":    {perCluster: true, first: "second", message: "spec.dependsOn forms a cycle: stores, second, stores"},
		"dependency on itself": {first: stores.Name, message: "spec.dependsOn forms a cycle: stores, stores"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2, on(test.perCluster, test.first))
			w.Create(w.upgrade("second", on(test.perCluster, stores.Name)))
			w.RunFor(time.Hour)
			w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonDependencyIncomplete)
			if message := w.condition(fleetv1beta1.ConditionAdmitting).Message; message != test.message {
				t.Error(message)
			}
		})
	}
}

// countingReader counts the reads of objects.
type countingReader struct {
	client.Client
	reads int
}

func (c *countingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.reads++
	return c.Client.Get(ctx, key, object, options...)
}

// Each upgrade of a layer depends on all of the next: the number of paths grows with the power of
// the layers.
func TestDependency_reads_each_upgrade_once(t *testing.T) {
	t.Parallel()
	const layers, width = 4, 4
	onLayer := func(layer int) func(*fleetv1beta1.ManagedClustersUpgrade) {
		return func(u *fleetv1beta1.ManagedClustersUpgrade) {
			u.Spec.Paused = true
			for i := range width {
				if layer < layers {
					u.Spec.DependsOn = append(u.Spec.DependsOn, fleetv1beta1.Dependency{Name: fmt.Sprintf("layer%d-%d", layer, i)})
				}
			}
		}
	}
	w := newWorld(t, 1, onLayer(0))
	for layer := range layers {
		for i := range width {
			w.Create(w.upgrade(fmt.Sprintf("layer%d-%d", layer, i), onLayer(layer+1)))
		}
	}
	counting := &countingReader{Client: w.User}
	_, err := admission.ReadDependencies(t.Context(), counting, w.get())
	w.Must(err)
	if most := width + layers*width; counting.reads > most { // the direct ones twice
		t.Errorf("%d reads, want at most %d", counting.reads, most)
	}
}

func TestSelection(t *testing.T) {
	t.Parallel()
	deselect := func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") }
	t.Run("cluster that has not begun is removed after a minute", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 3)
		w.RunFor(10 * time.Minute)
		w.editCluster("c0002", deselect)
		w.RunFor(50 * time.Second)
		w.expect("3/0/1/0/0/2", fleetv1beta1.ReasonNoFreeSlot)
		w.RunFor(20 * time.Second)
		w.expect("2/0/1/0/0/1", fleetv1beta1.ReasonNoFreeSlot)
		w.RunFor(hours)
		w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
	})
	t.Run("cluster that has begun stays", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 2)
		w.RunFor(10 * time.Minute)
		w.editCluster("c0000", deselect)
		w.RunFor(hours)
		w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
	})
	t.Run("cluster that failed counts until a person forgets it", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 2, maxFailures(0))
		w.fails["c0000"] = 1
		w.RunFor(time.Hour)
		w.expect("2/0/0/0/1/1", fleetv1beta1.ReasonMaxFailuresExceeded)
		w.editCluster("c0000", deselect)
		w.RunFor(hours)
		w.expect("2/0/0/0/1/1", fleetv1beta1.ReasonMaxFailuresExceeded)
		w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.UpgradeStrategy.MaxFailures = nil })
		w.RunFor(hours)
		w.expect("2/0/0/0/1/1", fleetv1beta1.ReasonMaxFailuresExceeded)
		w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { w.forget(u, "c0000=its disk is broken") })
		w.RunFor(hours)
		w.expect("1/0/0/1/0/0", fleetv1beta1.ReasonFinished)
		if got := w.get().Status.ForgottenFailures; len(got) != 1 || got[0].Cluster != "c0000" || got[0].Reason != "its disk is broken" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("failure of a cluster that is gone counts until the next attempt", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 3, canary, maxFailures(1))
		w.makeCanary("c0000")
		w.detachable = true
		w.fails["c0000"] = 1
		w.RunFor(time.Hour)
		w.expect("3/0/0/0/1/2", fleetv1beta1.ReasonCanaryFailed)
		w.Delete(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c0000"}})
		w.Delete(w.run("c0000"))
		w.RunFor(time.Hour)
		w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonCanaryFailed)
		w.Restart()
		w.RunFor(time.Hour)
		w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonCanaryFailed)
		if c := w.condition(fleetv1beta1.ConditionFailed); c.Status != metav1.ConditionTrue {
			t.Errorf("condition Failed: %+v", c)
		}
		w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
		w.RunFor(hours)
		w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonCanaryNotAvailable)
		w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.UpgradeStrategy.CanaryClusters = nil })
		w.RunFor(hours)
		w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
	})
	t.Run("labels that change later make no canary", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 4, canary)
		w.makeCanary("c0000")
		w.makeCanary("c0001")
		w.RunFor(10 * time.Minute)
		waiting := w.run("c0001")
		if fixed := w.get().Status.Canaries; fixed == nil || fixed.Count != 2 || waiting == nil || !waiting.Spec.Canary || !waiting.Spec.AdmissionTime.IsZero() {
			t.Errorf("canaries %+v, run %+v", fixed, waiting)
		}
		w.makeCanary("c0003") // it claims to be a canary, and holds itself
		w.editCluster("c0003", func(c *clusterv1.ManagedCluster) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, upgradev1alpha1.HoldAnnotation, "for ever")
		})
		w.editCluster("c0001", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "canary") })
		w.Restart()
		w.RunFor(hours)
		w.expect("4/0/0/3/0/1", fleetv1beta1.ReasonHeld)
		if !slices.Equal(w.order, []string{"c0000", "c0001", "c0002"}) {
			t.Errorf("order %v", w.order)
		}
	})
	t.Run("canary that is deselected before it begins is none any longer", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 3, canary)
		w.makeCanary("c0000")
		w.makeCanary("c0001")
		w.RunFor(10 * time.Minute)
		w.editCluster("c0001", deselect)
		w.RunFor(2 * time.Minute)
		w.expect("2/0/1/0/0/1", fleetv1beta1.ReasonNoFreeSlot)
		if run := w.run("c0001"); run != nil {
			t.Errorf("its run is left: %+v", run.Spec)
		}
		w.RunFor(hours)
		w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
	})
	t.Run("cluster that was to be retried is removed once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 2, maxFailures(0))
		w.fails["c0000"] = 1
		w.RunFor(time.Hour)
		w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt, u.Spec.Paused = 2, true })
		w.editCluster("c0000", deselect)
		w.RunFor(2 * time.Minute)
		w.published = nil
		w.RunFor(time.Hour)
		w.expect("1/0/0/0/0/1", fleetv1beta1.ReasonPaused)
		if len(w.published) > 0 {
			t.Errorf("%d statuses", len(w.published))
		}
	})
	t.Run("selection that is incomplete admits and removes nothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 3)
		w.RunFor(10 * time.Minute)
		w.unstable = "2 of 3 decisions"
		w.RunFor(hours)
		w.expect("3/0/0/1/0/2", fleetv1beta1.ReasonSelectionUnstable)
		w.unstable = ""
		w.RunFor(hours)
		w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
	})
	t.Run("complete upgrade rests until its spec changes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		w.RunFor(hours)
		w.addCluster("late")
		w.detachable = true
		w.Must(w.User.Delete(t.Context(), w.run("c0000"))) // as by another upgrade of the same cluster
		w.published = nil
		w.RunFor(30 * hours)
		w.Restart()
		w.RunFor(hours)
		w.expect("1/0/0/1/0/0", fleetv1beta1.ReasonFinished)
		if len(w.published) > 0 || w.run("late") != nil {
			t.Errorf("%d statuses, run %v", len(w.published), w.run("late"))
		}
	})
	t.Run("complete upgrade rests while its spec requests a dry run", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		w.RunFor(hours)
		w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun = true })
		w.RunFor(time.Minute)
		w.detachable = true
		w.Delete(w.run("c0000"))
		w.published = nil
		w.RunFor(hours)
		w.expect("1/0/0/1/0/0", fleetv1beta1.ReasonFinished)
		if len(w.published) > 0 {
			t.Errorf("%d statuses", len(w.published))
		}
	})
	t.Run("late joiner is upgraded if the spec says so", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.LateJoiners = fleetv1beta1.LateJoinersUpgrade })
		w.RunFor(hours)
		w.addCluster("late")
		w.RunFor(hours)
		w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
	})
	t.Run("clusters that are unreachable or locked before the start take no slot and fail nothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10, concurrency(2), func(u *fleetv1beta1.ManagedClustersUpgrade) {
			u.Spec.Paused = true
			limit := intstr.FromString("10%")
			u.Spec.UpgradeStrategy.MaxFailures = &limit
		})
		w.RunFor(time.Minute)
		w.setAvailable("c0000", metav1.ConditionUnknown)
		w.setAvailable("c0001", metav1.ConditionUnknown)
		other := w.lock("c0002")
		w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
		w.RunFor(hours)
		w.expect("10/0/0/7/0/3", fleetv1beta1.ReasonHeld)
		want := []string{"Unreachable c0000 c0001: unreachable since 2026-03-01T12:01:00Z", "LockedBy c0002: waits for ManagedClustersUpgrade fleet/other"}
		if diff := cmp.Diff(want, w.blocked()); diff != "" {
			t.Errorf("causes (-want +got):\n%s", diff)
		}
		w.Delete(other)
		w.RunFor(time.Minute)
		w.expect("10/1/0/7/0/2", fleetv1beta1.ReasonNoFreeSlot)
		w.setAvailable("c0000", metav1.ConditionTrue)
		w.setAvailable("c0001", metav1.ConditionTrue)
		w.RunFor(hours)
		w.expect("10/0/0/10/0/0", fleetv1beta1.ReasonFinished)
	})
	t.Run("canary that is not available stops the rollout", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 3, canary, concurrency(2))
		w.makeCanary("c0000")
		w.makeCanary("c0001")
		w.setAvailable("c0001", metav1.ConditionUnknown)
		w.RunFor(30 * time.Minute)
		w.expect("3/0/1/0/0/2", fleetv1beta1.ReasonNoFreeSlot)
		w.RunFor(20 * time.Minute)
		w.expect("3/0/0/1/0/2", fleetv1beta1.ReasonCanaryNotAvailable)
		w.setAvailable("c0001", metav1.ConditionTrue)
		w.RunFor(hours)
		w.expect("3/0/0/1/0/2", fleetv1beta1.ReasonCanaryNotAvailable)
		w.setAvailable("c0001", metav1.ConditionUnknown)
		w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
			metav1.SetMetaDataAnnotation(&u.ObjectMeta, fleetv1beta1.ContinueWithoutCanaryAnnotation, "c0001=its site is closed")
		})
		w.RunFor(hours)
		w.expect("3/0/0/2/0/1", fleetv1beta1.ReasonHeld)
	})
}

// setAvailable has the hub hear of a cluster, or not.
func (w *world) setAvailable(name string, status metav1.ConditionStatus) {
	w.TB.Helper()
	cluster := simulation.Get(w.Harness, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})
	cluster.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(w.Now()),
	}}
	w.UpdateStatus(cluster)
}

// lock creates the run of another upgrade in flight on a cluster.
func (w *world) lock(name string) *fleetv1alpha1.ClusterUpgradeRun {
	w.TB.Helper()
	run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "other"}}
	run.Spec.ManagedClustersUpgrade = fleetv1alpha1.UpgradeReference{Namespace: stores.Namespace, Name: "other", UID: "o"}
	run.Spec.Attempt, run.Spec.AdmissionTime = 1, metav1.NewTime(w.Now())
	w.Create(run)
	return run
}

// blocked returns the causes why clusters cannot begin.
func (w *world) blocked() []string {
	w.TB.Helper()
	var causes []string
	for _, c := range w.get().Status.Causes {
		if c.Type == fleetv1beta1.CauseBlocked {
			causes = append(causes, fmt.Sprintf("%s %s: %s", c.Reason, strings.Join(c.Clusters, " "), c.Message))
		}
	}
	return causes
}

func TestOutcome_by_claims(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true }, maxFailures(0))
	w.RunFor(time.Minute)
	w.claim("c0000", "version.openshift.io", "4.20.6")
	w.claim("c0001", "version.openshift.io", "4.21.0")
	w.claim("c0002", "controlplanetopology.openshift.io", "External")
	w.claim("c0003", "version.openshift.io", "4.20.5")
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
	w.RunFor(hours)
	w.expect("4/0/0/2/2/0", fleetv1beta1.ReasonFinished)
	for cluster, want := range map[string]string{
		"c0000": fleetv1alpha1.ReasonAlreadyAtTarget, "c0001": fleetv1alpha1.ReasonNewerVersionInstalled, "c0002": fleetv1alpha1.ReasonHostedControlPlane,
	} {
		if outcome := w.run(cluster).Spec.Outcome; outcome == nil || outcome.Reason != want {
			t.Errorf("%s: outcome %+v, want %s", cluster, outcome, want)
		}
	}
	if outcome := w.run("c0003").Spec.Outcome; outcome != nil {
		t.Errorf("outcome %+v", outcome)
	}
}

func TestRecordsLost_stops_until_the_next_attempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, concurrency(2))
	w.detachable = true
	w.RunFor(time.Hour) // two are complete, two in flight
	w.Delete(w.run("c0000"))
	w.RunFor(hours)
	w.expect("4/0/0/3/0/1", fleetv1beta1.ReasonRecordsLost)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.RunFor(hours)
	w.expect("4/0/0/4/0/0", fleetv1beta1.ReasonFinished)
}

func TestRecordsLost_not_by_a_cluster_that_is_gone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, concurrency(2))
	w.detachable = true
	w.RunFor(time.Hour)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c0000"}}
	w.Delete(cluster)
	w.Delete(w.run("c0000"))
	w.RunFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}

func TestDelete_removes_runs_first(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, concurrency(2))
	w.RunFor(10 * time.Minute)
	w.cleaning["c0001"] = true
	w.Delete(w.get())
	w.RunFor(time.Hour)
	w.expect("4/0/2/0/0/2", fleetv1beta1.ReasonDeleting)
	if n := len(w.runs()); n != 1 {
		t.Errorf("%d runs", n)
	}
	held := w.run("c0001")
	held.Finalizers = nil
	w.Update(held)
	w.RunFor(time.Minute)
	list := simulation.List(w.Harness, &fleetv1beta1.ManagedClustersUpgradeList{})
	if len(list.Items) > 0 || len(w.runs()) > 0 {
		t.Errorf("%d upgrades and %d runs are left", len(list.Items), len(w.runs()))
	}
}

func TestRun_of_another_upgrade_holds_the_cluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	w.RunFor(time.Minute)
	foreign := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "c0000", Name: admission.RunName(w.get())}}
	foreign.Spec.ManagedClustersUpgrade = fleetv1alpha1.UpgradeReference{Namespace: "x", Name: "y", UID: "z"}
	foreign.Spec.Attempt, foreign.Spec.AdmissionTime = 1, metav1.NewTime(w.Now())
	w.Create(foreign)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
	w.RunFor(2 * time.Hour)
	w.expect("2/0/0/1/0/1", fleetv1beta1.ReasonHeld)
	w.Delete(foreign)
	w.RunFor(2 * time.Hour)
	w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
}

// A client that may create runs may upgrade the cluster of their namespace. A second run that names an upgrade replaces
// no run of it, and is not counted for it.
func TestRun_of_the_same_UID_replaces_nothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	w.RunFor(time.Minute)
	own := w.get()
	forged := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c0000", Name: "zzz", Labels: map[string]string{fleetv1beta1.UpgradeLabel: string(own.UID)},
	}}
	forged.Spec.ManagedClustersUpgrade = fleetv1alpha1.UpgradeReference{Namespace: own.Namespace, Name: own.Name, UID: string(own.UID)}
	forged.Spec.Attempt, forged.Spec.AdmissionTime = 1, metav1.NewTime(w.Now())
	forged.Spec.Outcome = &fleetv1alpha1.Outcome{State: fleetv1alpha1.StateComplete, Reason: "AlreadyAtTarget"}
	w.Create(forged)
	w.Must(w.User.Get(t.Context(), client.ObjectKeyFromObject(forged), forged))
	forged.Status.State, forged.Status.Attempt = fleetv1alpha1.StateComplete, 1
	w.UpdateStatus(forged)
	w.RunFor(time.Minute)
	w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonPaused)
}

func TestRun_that_is_rejected_stops_no_other(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	rejecting := true
	w.Writes = simulation.Fault{Outcome: simulation.Refuse, Err: forbidden()}.If(func(r simulation.Request) bool {
		return rejecting && r.Verb == "create" && r.Key.Namespace == "c0000"
	})
	w.RunFor(2 * time.Hour)
	w.expect("3/0/0/2/0/1", fleetv1beta1.ReasonHeld)
	rejecting = false
	w.RunFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}

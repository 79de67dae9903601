// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// moments are the times in a run when something happens to it.
var moments = map[string]struct {
	prepare   func(*world)
	after     time.Duration
	delivered bool // the agent has applied the request
}{
	"before the pre-action is available": {after: time.Minute},
	"before the agent applies the request": {
		prepare: func(w *world) { w.jobs = map[string]string{"backup": "Complete"}; w.holdAgent(upgradeWork) }, after: 5 * time.Minute,
	},
	"before the cluster accepts the request": {
		prepare: func(w *world) { w.jobs = map[string]string{"backup": "Complete"}; w.refuses = true }, after: 5 * time.Minute, delivered: true,
	},
	"while the platform is upgraded": {
		prepare: func(w *world) { w.jobs = map[string]string{"backup": "Complete"} }, after: 20 * time.Minute, delivered: true,
	},
	"while the post-action runs": {
		prepare: func(w *world) { w.jobs = map[string]string{"backup": "Complete"} }, after: 50 * time.Minute, delivered: true,
	},
}

func TestRun_cancelled(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		for name, moment := range moments {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, actions, by)
				if moment.prepare != nil {
					moment.prepare(w)
				}
				w.admit()
				w.RunFor(moment.after)
				w.editUpgrade(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.Cancelled = true })
				w.RunFor(time.Minute)
				w.releaseAgent()
				if w.refuses {
					w.refuses = false
					w.install(target)
				}
				w.jobs = map[string]string{"check": "Complete"}
				w.wakeAgent(0)
				w.settle(5 * time.Hour)
				if moment.delivered {
					w.expect(fleetv1alpha1.StateComplete, "Upgraded")
				} else {
					w.expect(fleetv1alpha1.StateFailed, "Cancelled")
					w.expectUntouched()
					if c := apimeta.FindStatusCondition(w.run().Status.Conditions, fleetv1alpha1.ConditionSucceeded); !strings.Contains(c.Message, "create another ManagedClustersUpgrade") {
						t.Errorf("the advice has no effect: %s", c.Message)
					}
				}
				if form := w.form(); form != "" { // the run has waited until the agent had withdrawn the request
					t.Errorf("work %q is left", form)
				}
				w.expectQuiet()
			})
		}
	})
}

func TestRun_deleted(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		for name, moment := range moments {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, actions, by)
				if moment.prepare != nil {
					moment.prepare(w)
				}
				w.admit()
				w.RunFor(moment.after)
				w.Delete(w.run())
				w.RunFor(time.Minute)
				w.releaseAgent()
				if w.refuses {
					w.refuses = false
					w.install(target)
				}
				w.RunFor(5 * time.Hour)
				if w.run() != nil {
					t.Errorf("the run is left: %s", w.describe())
				}
				w.expectNoWorks()
				if moment.delivered {
					if diff := cmp.Diff([]string{target + " Completed", installed + " Completed"}, w.spoke.History()); diff != "" {
						t.Errorf("the upgrade did not continue (-want +got):\n%s", diff)
					}
				} else {
					w.expectUntouched()
				}
				w.expectQuiet()
			})
		}
	})
}

// TestRun_deleted_while_the_cluster_is_unreachable does not wait for the agent.
func TestRun_deleted_while_the_cluster_is_unreachable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.setOffline(true)
	w.admit()
	w.RunFor(5 * time.Minute)
	w.Delete(w.run())
	w.RunFor(30 * time.Second)
	if w.run() != nil {
		t.Errorf("the run is left: %s", w.describe())
	}
	w.setOffline(false)
	w.RunFor(5 * time.Hour)
	w.expectNoWorks()
	w.expectUntouched()
}

// TestRun_deleted_while_the_cache_is_behind deletes the run before the cache holds its work.
func TestRun_deleted_while_the_cache_is_behind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admit()
	w.Process.Lag("ManifestWork", time.Minute)
	w.Await(time.Minute, func() bool { return w.work(delivery.PreflightName(cluster)) != nil })
	w.RunFor(10 * time.Second)
	w.Delete(w.run())
	w.RunFor(2 * time.Minute)
	if w.run() != nil {
		t.Errorf("the run is left: %s", w.describe())
	}
	w.expectNoWorks()
}

// TestRun_deleted_after_it_has_ended removes the work that observes the cluster.
func TestRun_deleted_after_it_has_ended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.takes = 0
	w.admit()
	w.settle(5 * time.Hour)
	w.Delete(w.run())
	w.RunFor(time.Minute)
	w.expectNoWorks()
	if w.spoke.Desired() != target {
		t.Error("the ClusterVersion has changed")
	}
}

func TestRun_paused(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		for name, moment := range moments {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, actions, by)
				if moment.prepare != nil {
					moment.prepare(w)
				}
				w.admit()
				w.RunFor(moment.after)
				w.editUpgrade(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.Paused = true })
				w.RunFor(time.Minute)
				w.releaseAgent()
				if w.refuses {
					w.refuses = false
					w.install(target)
				}
				w.jobs = map[string]string{"backup": "Complete", "check": "Complete"}
				w.wakeAgent(0)
				w.RunFor(2 * time.Hour)
				if moment.delivered {
					w.expect(fleetv1alpha1.StateComplete, "Upgraded")
					return
				}
				w.expect(fleetv1alpha1.StateInitialized, "Paused")
				w.expectUntouched()
				w.Requests = nil
				w.RunFor(10 * time.Hour)
				if w.Count("patch ManifestWork")+w.Count("create ManifestWork") > 0 {
					t.Errorf("works are written while paused: %v", w.Requests)
				}
				w.editUpgrade(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.Paused = false })
				w.settle(5 * time.Hour)
				w.expect(fleetv1alpha1.StateComplete, "Upgraded")
			})
		}
	})
}

// TestRun_held stops a run whose cluster is held before the agent has applied the request.
func TestRun_held(t *testing.T) {
	t.Parallel()
	for name, delivered := range map[string]bool{"before the agent applies the request": false, "while the platform is upgraded": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if !delivered {
				w.holdAgent(upgradeWork)
			}
			w.admit()
			w.RunFor(20 * time.Minute)
			w.hold("migration")
			w.RunFor(time.Minute)
			w.releaseAgent()
			w.RunFor(2 * time.Hour)
			if delivered {
				w.expect(fleetv1alpha1.StateComplete, "Upgraded")
				return
			}
			w.expect(fleetv1alpha1.StateInitialized, "Paused")
			if message := w.run().Status.Message; !strings.Contains(message, "migration") {
				t.Errorf("message %q lacks the reason", message)
			}
			w.expectUntouched()
			w.hold("")
			w.settle(5 * time.Hour)
			w.expect(fleetv1alpha1.StateComplete, "Upgraded")
		})
	}
}

// hold annotates the cluster with a reason to hold it; an empty one releases it.
func (w *world) hold(reason string) {
	w.TB.Helper()
	managed := simulation.Get(w.Harness, clusterKey, &clusterv1.ManagedCluster{})
	managed.Annotations = map[string]string{upgradev1alpha1.HoldAnnotation: reason}
	if reason == "" {
		managed.Annotations = nil
	}
	w.Update(managed)
}

func TestRun_retried(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]func(*world){
		"after it was refused": func(w *world) {
			refuse(w)
			w.settle(5 * time.Hour)
			w.expect(fleetv1alpha1.StateFailed, "TargetRefused")
			w.spoke.SetCondition(w.spoke.Version(), "ReleaseAccepted", "True", "Loaded", "", w.Now())
			w.refuses = false
		},
		"after the agent did not apply it": func(w *world) {
			w.setOffline(true)
			w.settle(5 * time.Hour)
			w.expect(fleetv1alpha1.StateFailed, "ApplyTimedOut")
			w.setOffline(false)
		},
		"after it timed out": func(w *world) {
			w.takes = 0
			w.settle(5 * time.Hour)
			w.expect(fleetv1alpha1.StateFailed, "ClusterUpgradeTimedOut")
			w.change(30*time.Minute, func() { w.spoke.Complete(w.Now()) })
		},
		"after it was replaced": func(w *world) {
			w.takes = 0
			w.change(20*time.Minute, func() { w.spoke.Accept(installed, w.Now()) })
			w.settle(5 * time.Hour)
			w.expect(fleetv1alpha1.StateFailed, "Superseded")
			w.takes = 40 * time.Minute
			w.spoke.Complete(w.Now())
			w.spoke.Request("")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.admit()
			script(w)
			w.states = nil
			w.retry()
			w.settle(5 * time.Hour)
			w.expect(fleetv1alpha1.StateComplete, "Upgraded")
			if run := w.run(); run.Status.Attempt != 2 || len(run.Status.History) != 2 || run.Status.History[0].Attempt != 2 {
				t.Errorf("attempt %d, history of %d", run.Status.Attempt, len(run.Status.History))
			}
			w.expectQuiet()
		})
	}
}

// TestRun_lost_record empties the status in each part of the run. The upgrade is adopted, not repeated.
func TestRun_lost_record(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		for name, moment := range moments {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, actions, by)
				if moment.prepare != nil {
					moment.prepare(w)
				}
				w.admit()
				w.RunFor(moment.after)
				run := w.run()
				run.Status = fleetv1alpha1.ClusterUpgradeRunStatus{}
				w.UpdateStatus(run)
				w.RunFor(time.Minute)
				w.releaseAgent()
				if w.refuses {
					w.refuses = false
					w.install(target)
				}
				w.jobs = map[string]string{"backup": "Complete", "check": "Complete"}
				w.wakeAgent(0)
				w.settle(5 * time.Hour)
				w.expect(fleetv1alpha1.StateComplete, "Upgraded")
				w.expectQuiet()
			})
		}
	})
}

// TestRun_lost_record_of_another_release empties the status while the hub is down, and the next attempt requests another
// release. Whichever write fails, the attempt that is no longer requested is withdrawn first.
func TestRun_lost_record_of_another_release(t *testing.T) {
	t.Parallel()
	const other = "4.20.7"
	simulation.EachFault(t, 6, func(t *testing.T, plan simulation.FaultPlan) {
		t.Helper()
		w := newWorld(t)
		w.holdAgent(upgradeWork)
		w.admit()
		w.RunFor(5 * time.Minute)
		w.Process.Kill()
		run := w.run()
		run.Status = fleetv1alpha1.ClusterUpgradeRunStatus{}
		w.UpdateStatus(run)
		simulation.Edit(w.Harness, w.run(), func(run *fleetv1alpha1.ClusterUpgradeRun) {
			run.Spec.Attempt, run.Spec.ClusterVersion.Version = 2, other
			run.Spec.AdmissionTime = metav1.NewTime(w.Now().Truncate(time.Second))
		})
		w.Writes = plan
		w.Begin()
		w.RunFor(5 * time.Minute)
		w.releaseAgent()
		w.RunFor(5 * time.Minute)
		w.Writes = nil
		w.settle(5 * time.Hour)
		w.expect(fleetv1alpha1.StateComplete, "Upgraded")
		if diff := cmp.Diff([]string{other + " Completed", installed + " Completed"}, w.spoke.History()); diff != "" {
			t.Errorf("history of the cluster (-want +got):\n%s", diff)
		}
		records := w.run().Status.History
		if len(records) != 2 || records[1].Version != target || records[1].Phase != history.PhaseFailed || records[1].CommenceTime != nil {
			t.Errorf("records: %+v", records)
		}
	})
}

// TestRun_lost_record_before_the_agent_only_observes requests nothing again: the cluster is at the target.
func TestRun_lost_record_before_the_agent_only_observes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admit(soaks)
	w.Await(2*time.Hour, func() bool { return w.form() == "1/ReadOnly" })
	w.holdAgent(upgradeWork)
	run := w.run()
	run.Status = fleetv1alpha1.ClusterUpgradeRunStatus{}
	w.UpdateStatus(run)
	w.RunFor(time.Minute)
	w.releaseAgent()
	w.settle(5 * time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
	w.expectQuiet()
}

func TestRun_detached(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		for name, detach := range map[string]func(*world){
			"deleted": func(w *world) {
				w.Delete(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
			},
			"not accepted any more": func(w *world) {
				managed := simulation.Get(w.Harness, clusterKey, &clusterv1.ManagedCluster{})
				managed.Spec.HubAcceptsClient = false
				w.Update(managed)
			},
		} {
			for when, moment := range moments {
				t.Run(name+" "+when, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, actions, by)
					if moment.prepare != nil {
						moment.prepare(w)
					}
					w.admit()
					w.RunFor(moment.after)
					w.offline = true
					w.setAvailable(false)
					detach(w)
					w.settle(time.Hour)
					w.expect(fleetv1alpha1.StateFailed, "ClusterDetached")
					w.expectReleased()
				})
			}
		}
	})
}

// admitOther creates a run of another upgrade for the same cluster.
func (w *world) admitOther(version string) {
	w.TB.Helper()
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "others"}}
	upgrade.Spec.Placement = []fleetv1beta1.PlacementReference{{Name: "all"}}
	upgrade.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: version}
	w.Create(upgrade)
	w.Must(w.User.Create(w.TB.Context(), &fleetv1alpha1.ClusterUpgradeRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "others", Labels: map[string]string{fleetv1beta1.UpgradeLabel: string(upgrade.UID)}},
		Spec: fleetv1alpha1.ClusterUpgradeRunSpec{
			ManagedClustersUpgrade: fleetv1alpha1.UpgradeReference{Namespace: "fleet", Name: "others", UID: string(upgrade.UID)},
			Attempt:                1, AdmissionTime: metav1.NewTime(w.Now().Truncate(time.Second)), ClusterVersion: upgrade.Spec.ClusterVersion,
		},
	}))
}

// TestRun_waits_for_the_lock waits for the run of another upgrade, also if that fails.
func TestRun_waits_for_the_lock(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]func(*world){
		"of a run that completes": func(*world) {},
		"of a run that fails": func(w *world) { // and that never succeeds late
			failing(10*time.Minute, 0)(w)
			w.takes = 40 * time.Minute
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if name == "of a run that fails" {
				w.takes = 0
			}
			w.admitOther("4.20.55-ec.1")
			w.RunFor(5 * time.Minute)
			script(w)
			w.editUpgrade(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.ClusterVersion.Version = "4.20.56" })
			w.admit()
			w.RunFor(time.Minute)
			w.expect(fleetv1alpha1.StateInitialized, fleetv1alpha1.ReasonLockedBy)
			if message := w.run().Status.Message; !strings.Contains(message, cluster+"/others") {
				t.Errorf("message %q does not name the holder", message)
			}
			w.change(20*time.Minute, func() {
				w.spoke.SetCondition(w.spoke.Version(), "Failing", "False", "AsExpected", "", w.Now())
				w.spoke.Complete(w.Now())
			})
			w.settle(4 * time.Hour)
			w.expect(fleetv1alpha1.StateComplete, "Upgraded")
			w.expectReleased()
		})
	}
}

// TestRun_leaves_foreign_works_alone waits while the name of the work is in use.
func TestRun_leaves_foreign_works_alone(t *testing.T) {
	t.Parallel()
	for name, labels := range map[string]map[string]string{"without a label": nil, "of another upgrade": {fleetv1beta1.UpgradeLabel: "other"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			foreign := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: upgradeWork, Labels: labels}}
			foreign.Spec.Workload.Manifests = []workv1.Manifest{raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`)}
			w.Create(foreign)
			w.admit()
			w.RunFor(10 * time.Minute)
			w.expect(fleetv1alpha1.StateInitialized, "ForeignWork")
			if work := w.work(upgradeWork); len(work.Spec.Workload.Manifests) != 1 || len(work.OwnerReferences) > 0 {
				t.Errorf("the work was changed: %+v", work)
			}
			w.Delete(w.work(upgradeWork))
			w.settle(2 * time.Hour)
			w.expect(fleetv1alpha1.StateComplete, "Upgraded")
		})
	}
}

// TestRun_keeps_the_cluster_version repairs a work that a user has edited so that its deletion would delete
// the ClusterVersion, before anything deletes it.
func TestRun_keeps_the_cluster_version(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failed bool          // the run has failed, and only observes the cluster
		after  time.Duration // from the edit to the deletion
		down   bool          // the hub is down in the meantime
	}{
		"failed run, deleted at once":      {failed: true},
		"failed run, deleted later":        {failed: true, after: time.Hour},
		"failed run, deleted without hub":  {failed: true, after: time.Minute, down: true},
		"run in flight, deleted at once":   {},
		"run in flight, deleted later":     {after: 5 * time.Minute},
		"run in flight, deleted unwatched": {after: time.Minute, down: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.takes = 0
			w.admit()
			if tc.failed {
				w.settle(5 * time.Hour)
			} else {
				w.RunFor(20 * time.Minute)
			}
			w.dropDeleteOption(upgradeWork)
			if tc.down {
				w.Process.Kill()
			}
			w.RunFor(tc.after)
			if work := w.work(upgradeWork); tc.after > 0 && !tc.down && !delivery.KeepsClusterVersion(work) {
				t.Errorf("deleteOption %+v", work.Spec.DeleteOption)
			}
			w.Delete(w.run())
			if tc.down {
				w.RunFor(time.Minute)
				w.Begin()
			}
			w.RunFor(time.Hour)
			if w.spoke.Version() == nil {
				t.Fatal("the ClusterVersion is deleted")
			}
			if run := w.run(); run != nil {
				t.Errorf("the run is left, finalizers %v", run.Finalizers)
			}
			w.expectNoWorks()
			w.expectReleased()
		})
	}
}

// TestRun_keeps_the_cluster_version_of_an_action deletes the work of an action that contains it.
func TestRun_keeps_the_cluster_version_of_an_action(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(upgrade *fleetv1beta1.ManagedClustersUpgrade) {
		upgrade.Spec.PreUpgradeAction = &fleetv1beta1.UpgradeAction{ManifestWork: workv1.ManifestWorkSpec{
			Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{
				raw(`{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version"},"spec":{"channel":"fast"}}`),
			}},
		}}
	})
	w.admit()
	w.settle(5 * time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
	action := delivery.ActionName(string(w.upgrade().UID), delivery.PreUpgrade)
	if owners := w.work(action).OwnerReferences; len(owners) > 0 {
		t.Errorf("the garbage collector would delete it: %v", owners)
	}
	w.dropDeleteOption(action)
	w.Delete(w.run())
	w.RunFor(time.Hour)
	if w.spoke.Version() == nil {
		t.Fatal("the ClusterVersion is deleted")
	}
	w.expectNoWorks()
}

// dropDeleteOption has a user remove the deletion option of a work.
func (w *world) dropDeleteOption(name string) {
	w.TB.Helper()
	work := w.work(name)
	work.Spec.DeleteOption = nil
	w.Update(work)
}

// TestRun_restores_its_work delivers again what a user has deleted, and only observes what was accepted.
func TestRun_restores_its_work(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after time.Duration
		form  string
	}{"before it was accepted": {30 * time.Second, "1/Apply"}, "after it was accepted": {20 * time.Minute, "1/ReadOnly"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.admit()
			w.RunFor(tc.after)
			w.Delete(w.work(upgradeWork))
			w.RunFor(time.Minute)
			if form := w.form(); form != tc.form {
				t.Errorf("work %q, want %q", form, tc.form)
			}
			w.settle(2 * time.Hour)
			w.expect(fleetv1alpha1.StateComplete, "Upgraded")
		})
	}
}

// TestRun_lock tests the lock of the cluster.
func TestRun_lock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admit()
	w.RunFor(10 * time.Minute)
	lease := simulation.Get(w.Harness, leaseKey, &coordinationv1.Lease{})
	if lease.Spec.HolderIdentity == nil || !strings.Contains(*lease.Spec.HolderIdentity, w.run().Name) {
		t.Errorf("lease %+v", lease.Spec)
	}
	if work := w.work(upgradeWork); len(work.OwnerReferences) > 0 {
		t.Errorf("the garbage collector would delete the work: %v", work.OwnerReferences)
	}
}

// What a cluster costs does not grow with the time that its upgrade takes, nor with its messages. The cache
// of the simulation lags by so much that the finalizers are removed by two writes.
func TestRun_writes_little(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		takes time.Duration
		soak  fleetv1beta1.Duration
		limit int
	}{
		"without a soak": {takes: 40 * time.Minute, limit: 18},
		"with a soak":    {takes: 40 * time.Minute, soak: "30m", limit: 19},
		"slowly":         {takes: 110 * time.Minute, limit: 21}, // it stalls, and recovers
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.takes = tc.takes
			w.admit(func(s *fleetv1alpha1.ClusterUpgradeRunSpec) { s.Timeouts.Soak = tc.soak })
			w.settle(4 * time.Hour)
			w.expect(fleetv1alpha1.StateComplete, "Upgraded")
			writes := slices.DeleteFunc(slices.Clone(w.Requests), func(r string) bool { return strings.HasPrefix(r, "get ") || strings.HasPrefix(r, "list ") })
			if len(writes) > tc.limit {
				t.Errorf("%d writes, the limit is %d:\n%s", len(writes), tc.limit, strings.Join(writes, "\n"))
			}
		})
	}
}

// The annotation by which the administrators of a cluster hold its upgrades also holds the upgrades of the fleet, for
// as long as it exists.
func TestRun_held_by_its_ClusterVersion(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"the store is being moved", ""} {
		w := newWorld(t)
		w.spoke.Version().SetAnnotations(map[string]string{upgradev1alpha1.HoldAnnotation: reason})
		w.admit()
		w.RunFor(3 * time.Hour)
		w.expect(fleetv1alpha1.StateInitialized, "Paused")
		w.expectUntouched()
		if message := w.run().Status.Message; !strings.Contains(message, upgradev1alpha1.HoldAnnotation) || !strings.Contains(message, reason) {
			t.Errorf("message %q", message)
		}
		w.change(0, func() { w.spoke.Version().SetAnnotations(nil) })
		w.settle(2 * time.Hour)
		w.expect(fleetv1alpha1.StateComplete, "Upgraded")
	}
}

// A work of an earlier release of the hub does not report whether the cluster is held: it is written again.
func TestRun_held_whose_preflight_is_of_an_earlier_hub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.spoke.Version().SetAnnotations(map[string]string{upgradev1alpha1.HoldAnnotation: "migration"})
	w.admit()
	w.RunFor(10 * time.Minute)
	work := simulation.Get(w.Harness, client.ObjectKey{Namespace: w.run().Namespace, Name: delivery.PreflightName(w.run().Namespace)}, &workv1.ManifestWork{})
	work.Annotations[delivery.Annotation] = "1/ReadOnly"
	paths := &work.Spec.ManifestConfigs[0].FeedbackRules[0].JsonPaths
	*paths = slices.DeleteFunc(*paths, func(path workv1.JsonPath) bool { return path.Name == "hold" })
	w.Update(work)
	w.RunFor(time.Hour)
	w.expect(fleetv1alpha1.StateInitialized, "Paused")
	w.expectUntouched()
}

// The preflight of an earlier attempt has the spec of this one. What the agent has reported about it is older than this attempt,
// and must not let a release be requested that would be a downgrade.
func TestRun_asks_again_about_the_preflight_of_an_earlier_attempt(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*fleetv1alpha1.ClusterUpgradeRun){
		"of this upgrade": func(*fleetv1alpha1.ClusterUpgradeRun) {},
		"of another one":  func(run *fleetv1alpha1.ClusterUpgradeRun) { run.Spec.ManagedClustersUpgrade.UID = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			earlier := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: cluster}}
			earlier.Spec.Attempt, earlier.Spec.ClusterVersion = 1, w.upgrade().Spec.ClusterVersion
			earlier.Spec.ManagedClustersUpgrade.UID = string(w.upgrade().UID)
			edit(earlier)
			work, err := delivery.PreflightWork(earlier)
			w.Must(err)
			w.Create(work)
			w.RunFor(time.Minute) // the agent reports the installed release
			w.offline = true
			w.spoke.Accept("4.20.7", w.Now())
			w.spoke.Complete(w.Now())
			w.admit(func(spec *fleetv1alpha1.ClusterUpgradeRunSpec) { spec.Attempt = 2 })
			w.RunFor(10 * time.Minute)
			w.setOffline(false)
			w.settle(5 * time.Hour)
			w.expect(fleetv1alpha1.StateFailed, "NewerVersionInstalled")
			if n := w.seen[upgradeWork+" 2/Apply"]; n > 0 {
				t.Errorf("the release was requested %d times", n)
			}
		})
	}
}

// The annotation holds what has not begun. What the history decides is decided, also while it holds.
func TestRun_held_whose_history_decides(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script func(*world)
		state  fleetv1alpha1.ClusterUpgradeState
		reason string
	}{
		"a newer release is installed": {
			func(w *world) { w.spoke.Accept("4.20.7", w.Now()); w.spoke.Complete(w.Now()) }, fleetv1alpha1.StateFailed, "NewerVersionInstalled",
		},
		"the release is being installed": {
			func(w *world) {
				w.spoke.Accept(target, w.Now())
				w.change(40*time.Minute, func() { w.spoke.Complete(w.Now()) })
			}, fleetv1alpha1.StateComplete, "Upgraded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.claim("")
			w.spoke.Version().SetAnnotations(map[string]string{upgradev1alpha1.HoldAnnotation: "migration"})
			tc.script(w)
			w.admit()
			w.settle(4 * time.Hour)
			w.expect(tc.state, tc.reason)
		})
	}
}

// TestRun_fences_a_request_whose_answer_was_lost holds a run right after its request, before that has arrived. It conflicts
// once it does.
func TestRun_fences_a_request_whose_answer_was_lost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	requested := false
	w.Writes = func(r simulation.Request) simulation.Fault {
		if requested || r.Verb != "create" || r.Kind != "ManifestWork" || r.Key.Name != upgradeWork {
			return simulation.Fault{}
		}
		requested = true
		w.After(0, func() { w.hold("migration") })
		return simulation.Fault{Outcome: simulation.Refuse}
	}
	w.admit()
	w.RunFor(10 * time.Minute)
	if !requested {
		t.Fatal("nothing was requested")
	}
	late, err := delivery.UpgradeWork(w.run(), w.upgrade(), delivery.FormApply, w.Now(), clusterstate.Release{})
	w.Must(err)
	if err := w.User.Create(t.Context(), late); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the late request: %v", err)
	}
	w.RunFor(time.Minute)
	w.expectUntouched()
	w.hold("")
	w.settle(5 * time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
}

// TestRun_removes_works_of_another_hub has another hub write the request again after the run has ended.
func TestRun_removes_works_of_another_hub(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"complete": false, "failed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if fails {
				w.holdAgent(upgradeWork)
			}
			w.admit()
			w.Await(time.Hour, func() bool { return w.work(upgradeWork) != nil })
			late := simulation.Get(w.Harness, client.ObjectKey{Namespace: cluster, Name: upgradeWork}, &workv1.ManifestWork{})
			w.RunFor(40 * time.Minute)
			w.releaseAgent()
			w.settle(5 * time.Hour)
			if w.work(upgradeWork) != nil {
				t.Fatalf("the work is left after the end")
			}
			late = &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: late.Namespace, Name: late.Name, Labels: late.Labels, Annotations: late.Annotations}, Spec: late.Spec}
			w.Create(late)
			w.settle(5 * time.Hour)
			if w.work(upgradeWork) != nil {
				t.Error("the work of the other hub is left")
			}
			if desired := w.spoke.Desired(); fails && desired == target {
				t.Errorf("%s is requested", desired)
			}
		})
	}
}

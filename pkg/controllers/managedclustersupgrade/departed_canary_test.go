// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// detach deletes the ManagedCluster of a cluster, which takes its run along.
func (w *world) detach(name string) {
	w.TB.Helper()
	w.Delete(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	run := w.run(name)
	run.Finalizers = nil
	w.Update(run)
	w.Delete(run)
}

// newFailedCanary returns a rollout to four clusters that one of two canaries has stopped.
func newFailedCanary(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 4, canary, concurrency(2))
	w.detachable = true
	w.makeCanary("c0000")
	w.makeCanary("c0001")
	w.fails["c0000"] = 1
	w.RunFor(hours)
	w.expect("4/0/0/1/1/2", fleetv1beta1.ReasonCanaryFailed)
	return w
}

// A canary that has failed and then leaves the hub cannot be retried. A person decides whether the rollout goes on without it.
func TestRetry_of_a_canary_that_has_left_the_hub(t *testing.T) {
	t.Parallel()
	leaves := map[string]func(*world){
		"before the retry": func(w *world) { w.detach("c0000"); w.RunFor(time.Minute); w.raiseAttempt() },
		"with the retry":   func(w *world) { w.detach("c0000"); w.raiseAttempt() },
		"while no hub runs": func(w *world) {
			w.Process.Kill()
			w.detach("c0000")
			w.raiseAttempt()
			w.Begin()
		},
		"after the retry": func(w *world) {
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt, u.Spec.Paused = 2, true })
			w.RunFor(time.Minute)
			w.detach("c0000")
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
		},
	}
	goesOn := map[string]func(*fleetv1beta1.ManagedClustersUpgrade){
		"without it": func(u *fleetv1beta1.ManagedClustersUpgrade) {
			metav1.SetMetaDataAnnotation(&u.ObjectMeta, fleetv1beta1.ContinueWithoutCanaryAnnotation, "c0000@2=it is scrapped")
		},
		"with other canaries": func(u *fleetv1beta1.ManagedClustersUpgrade) {
			u.Spec.UpgradeStrategy.CanaryClusters.ClusterSelector.MatchLabels["selected"] = "yes"
		},
	}
	for when, leave := range leaves {
		for how, goOn := range goesOn {
			t.Run(when+", "+how, func(t *testing.T) {
				t.Parallel()
				w := newFailedCanary(t)
				leave(w)
				w.RunFor(hours)
				w.expect("3/0/0/1/0/2", fleetv1beta1.ReasonCanaryNotAvailable)
				w.Restart()
				w.RunFor(hours)
				w.expect("3/0/0/1/0/2", fleetv1beta1.ReasonCanaryNotAvailable)
				w.edit(goOn)
				w.RunFor(hours)
				w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
			})
		}
	}
}

// A canary that has left the hub after it was complete has done its part.
func TestRetry_after_a_complete_canary_has_left_the_hub(t *testing.T) {
	t.Parallel()
	w := newFailedCanary(t)
	w.detach("c0001")
	w.raiseAttempt()
	w.RunFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}

// An answer about one attempt says nothing about the next one.
func TestRetry_asks_again_about_a_canary_that_has_left_the_hub(t *testing.T) {
	t.Parallel()
	w := newFailedCanary(t)
	w.fails["c0002"], w.fails["c0003"] = 1, 1
	w.detach("c0000")
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.Attempt = 2
		metav1.SetMetaDataAnnotation(&u.ObjectMeta, fleetv1beta1.ContinueWithoutCanaryAnnotation, "c0000@2=it is scrapped")
	})
	w.RunFor(hours)
	w.expect("3/0/0/1/2/0", fleetv1beta1.ReasonFinished)
	w.raiseAttempt()
	w.RunFor(hours)
	w.expect("3/0/0/1/0/2", fleetv1beta1.ReasonCanaryNotAvailable)
}

func TestRetry_without_the_only_canary(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, canary)
	w.detachable = true
	w.makeCanary("c0000")
	w.fails["c0000"] = 1
	w.RunFor(hours)
	w.detach("c0000")
	w.raiseAttempt()
	w.RunFor(hours)
	w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonCanaryNotAvailable)
	_, advice, _ := strings.Cut(w.condition(fleetv1beta1.ConditionAdmitting).Message, fleetv1beta1.ContinueWithoutCanaryAnnotation+" to ")
	entry, _, _ := strings.Cut(advice, ",")
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
		metav1.SetMetaDataAnnotation(&u.ObjectMeta, fleetv1beta1.ContinueWithoutCanaryAnnotation, strings.Replace(entry, "CLUSTER", "c0000", 1))
	})
	w.RunFor(hours)
	w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
}

// A person who deletes the run of a canary that has failed, and raises the attempt as advised, does not remove the canary.
func TestRetry_of_a_canary_whose_run_was_deleted(t *testing.T) {
	t.Parallel()
	w := newFailedCanary(t)
	w.fails["c0000"] = 1
	w.Delete(w.run("c0000"))
	w.RunFor(time.Minute)
	w.raiseAttempt()
	w.RunFor(hours)
	w.expect("4/0/0/1/0/3", fleetv1beta1.ReasonCanaryNotAvailable)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.CanaryClusters.ClusterSelector.MatchLabels["selected"] = "yes"
	})
	w.RunFor(hours)
	w.expect("4/0/0/1/1/2", fleetv1beta1.ReasonCanaryFailed)
	w.raiseAttempt()
	w.RunFor(hours)
	w.expect("4/0/0/4/0/0", fleetv1beta1.ReasonFinished)
}

// Nor does a person who deletes it while the canary waits for its retry.
func TestRetry_of_a_canary_whose_run_is_deleted_before_it_begins(t *testing.T) {
	t.Parallel()
	w := newFailedCanary(t)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt, u.Spec.Paused = 2, true })
	w.RunFor(time.Minute)
	w.Delete(w.run("c0000"))
	w.RunFor(time.Minute)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
	w.RunFor(hours)
	w.expect("4/0/0/1/0/3", fleetv1beta1.ReasonCanaryNotAvailable)
}

// The answer about a canary that is gone holds although a cluster of its name is upgraded later.
func TestRetry_without_a_canary_that_has_come_back(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*world){
		"imported again":     func(w *world) { w.detach("c0000"); w.RunFor(time.Minute); w.addCluster("c0000") },
		"its run is deleted": func(w *world) { w.Delete(w.run("c0000")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFailedCanary(t)
			lose(w)
			w.RunFor(time.Minute)
			w.raiseAttempt()
			w.RunFor(hours)
			w.expect("4/0/0/1/0/3", fleetv1beta1.ReasonCanaryNotAvailable)
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
				metav1.SetMetaDataAnnotation(&u.ObjectMeta, fleetv1beta1.ContinueWithoutCanaryAnnotation, "c0000@2=it was installed again")
			})
			w.RunFor(hours)
			w.expect("4/0/0/4/0/0", fleetv1beta1.ReasonFinished)
		})
	}
}

// A person who chooses other canaries, and the former ones again before any cluster begins, has not said that the rollout goes on without
// one.
func TestRetry_of_a_canary_that_has_left_after_a_change_that_is_reverted(t *testing.T) {
	t.Parallel()
	w := newFailedCanary(t)
	w.detach("c0000")
	w.raiseAttempt()
	w.RunFor(hours)
	w.expect("3/0/0/1/0/2", fleetv1beta1.ReasonCanaryNotAvailable)
	for _, value := range []string{"yse", "yes"} {
		w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
			u.Spec.UpgradeStrategy.CanaryClusters.ClusterSelector.MatchLabels["canary"], u.Spec.Paused = value, value != "yes"
		})
		w.RunFor(time.Hour)
	}
	w.expect("3/0/0/1/0/2", fleetv1beta1.ReasonCanaryNotAvailable)
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// newTolerantStop returns a rollout to three clusters that a failure has stopped. Its maxFailures is higher by now.
func newTolerantStop(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 3, maxFailures(0))
	w.fails["c0000"] = 1
	w.RunFor(hours)
	w.edit(maxFailures(5))
	w.RunFor(hours)
	w.expect("3/0/0/0/1/2", fleetv1beta1.ReasonMaxFailuresExceeded)
	return w
}

// An answer ends a stop only if it applies: neither a typing error does, nor an answer about a cluster that has not failed.
func TestAnswer_that_applies_to_nothing_ends_no_stop(t *testing.T) {
	t.Parallel()
	for annotation, cluster := range map[string]string{
		fleetv1beta1.ForgetFailureAnnotation: "c0099", fleetv1beta1.ContinueWithoutCanaryAnnotation: "c0001",
	} {
		t.Run(annotation, func(t *testing.T) {
			t.Parallel()
			w := newTolerantStop(t)
			answer := func(entries string) {
				w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
					metav1.SetMetaDataAnnotation(&u.ObjectMeta, annotation, entries)
				})
			}
			answer(cluster + "=a typing error")
			w.RunFor(hours)
			w.expect("3/0/0/0/1/2", fleetv1beta1.ReasonMaxFailuresExceeded)
			if got, want := w.condition(fleetv1beta1.ConditionAdmitting).Message, "annotations name "+cluster+" without effect"; !strings.HasSuffix(got, want) {
				t.Errorf("the message %q lacks %q", got, want)
			}
			answer("")
			w.RunFor(hours)
			w.expect("3/0/0/0/1/2", fleetv1beta1.ReasonMaxFailuresExceeded)
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { w.forget(u, "c0000=its disk is broken") })
			w.RunFor(hours)
			w.expect("3/0/0/2/1/0", fleetv1beta1.ReasonFinished)
		})
	}
}

// An answer that no longer applies, because its cluster has left the hub or a person has withdrawn it, ends no stop either.
func TestAnswer_that_no_longer_applies_ends_no_stop(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world){
		"its cluster has left": func(w *world) { w.detach("c0000") },
		"it is withdrawn": func(w *world) {
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { w.forget(u, "") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTolerantStop(t)
			w.detachable = true
			w.fails["c0001"] = 1
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
				w.forget(u, "c0000=its disk is broken")
				maxFailures(0)(u)
			})
			w.RunFor(hours)
			w.expect("3/0/0/0/2/1", fleetv1beta1.ReasonMaxFailuresExceeded)
			w.edit(maxFailures(5))
			w.RunFor(time.Minute)
			end(w)
			w.RunFor(hours)
			if got := w.reason(); got != fleetv1beta1.ReasonMaxFailuresExceeded {
				t.Errorf("the stop has ended: %s", w.describe())
			}
		})
	}
}

// A canary that is available again does not end the stop, whatever a person says about other clusters.
func TestAnswer_about_another_cluster_after_a_canary_was_not_available(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, canary)
	w.makeCanary("c0000")
	w.setAvailable("c0000", metav1.ConditionUnknown)
	w.RunFor(time.Hour)
	w.expect("3/0/0/0/0/3", fleetv1beta1.ReasonCanaryNotAvailable)
	w.setAvailable("c0000", metav1.ConditionTrue)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { w.forget(u, "c0099=a typing error") })
	w.RunFor(hours)
	w.expect("3/0/0/0/0/3", fleetv1beta1.ReasonCanaryNotAvailable)
}

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
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

// fleetRemedy is a reason why no cluster of a fleet begins, and what its message advises.
type fleetRemedy struct {
	edits          []func(*fleetv1beta1.ManagedClustersUpgrade)
	breaks         func(*world)
	reason, advice string
	fix            func(*world)
}

func (w *world) raiseAttempt() {
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = max(u.Spec.Attempt, 1) + 1 })
}

// fleetRemedies are the remedies by the state that they are advised in: idle if no cluster is in flight.
func fleetRemedies() map[string]fleetRemedy {
	type edits = []func(*fleetv1beta1.ManagedClustersUpgrade)
	one, two := concurrency(1), concurrency(2)
	fail := func(w *world) { w.fails["c0000"] = 1 }
	failBeside := func(w *world) { w.fails["c0000"], w.slow["c0001"] = 1, true }
	canaries := func(names ...string) func(*world) {
		return func(w *world) {
			for _, name := range names {
				w.makeCanary(name)
			}
		}
	}
	both := func(all ...func(*world)) func(*world) {
		return func(w *world) {
			for _, do := range all {
				do(w)
			}
		}
	}
	unavailable := both(canaries("c0000"), func(w *world) { w.setAvailable("c0000", metav1.ConditionUnknown) })
	pause := func(paused bool) func(*world) {
		return func(w *world) { w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = paused }) }
	}
	hold := func(names ...string) func(*world) {
		return func(w *world) {
			for _, name := range names {
				w.editCluster(name, func(c *clusterv1.ManagedCluster) {
					metav1.SetMetaDataAnnotation(&c.ObjectMeta, upgradev1alpha1.HoldAnnotation, "audit")
				})
			}
		}
	}
	release := func(w *world) {
		for _, name := range []string{"c0000", "c0001", "c0002"} {
			w.editCluster(name, func(c *clusterv1.ManagedCluster) { delete(c.Annotations, upgradev1alpha1.HoldAnnotation) })
		}
	}
	const attempt = "fix the cause, then raise spec.attempt"
	return map[string]fleetRemedy{
		"idle, budget":   {edits{one, maxFailures(0)}, fail, fleetv1beta1.ReasonMaxFailuresExceeded, attempt, (*world).raiseAttempt},
		"active, budget": {edits{two, maxFailures(0)}, failBeside, fleetv1beta1.ReasonMaxFailuresExceeded, attempt, (*world).raiseAttempt},
		"idle, canary":   {edits{one, canary}, both(canaries("c0000"), fail), fleetv1beta1.ReasonCanaryFailed, attempt, (*world).raiseAttempt},
		"active, canary": {edits{two, canary}, both(canaries("c0000", "c0001"), failBeside), fleetv1beta1.ReasonCanaryFailed, attempt, (*world).raiseAttempt},
		"idle, canary absent": {edits{one, canary}, unavailable, fleetv1beta1.ReasonCanaryNotAvailable, "fix it and raise spec.attempt", func(w *world) {
			w.setAvailable("c0000", metav1.ConditionTrue)
			w.raiseAttempt()
		}},
		"idle, canary to be left out": {edits{one, canary}, unavailable, fleetv1beta1.ReasonCanaryNotAvailable, "set the annotation " + fleetv1beta1.ContinueWithoutCanaryAnnotation, func(w *world) {
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
				metav1.SetMetaDataAnnotation(&u.ObjectMeta, fleetv1beta1.ContinueWithoutCanaryAnnotation, "c0000=its site is closed")
			})
		}},
		"active, canary absent": {
			edits{two, canary},
			both(canaries("c0001"), unavailable, func(w *world) { w.slow["c0001"] = true }), fleetv1beta1.ReasonCanaryNotAvailable, "fix it and raise spec.attempt",
			func(w *world) {
				w.setAvailable("c0000", metav1.ConditionTrue)
				w.raiseAttempt()
			},
		},
		"idle, paused":   {edits{one}, pause(true), fleetv1beta1.ReasonPaused, "spec.paused is true", pause(false)},
		"active, paused": {edits{one}, func(w *world) { w.slow["c0000"] = true; w.RunFor(time.Minute); pause(true)(w) }, fleetv1beta1.ReasonPaused, "spec.paused is true", pause(false)},
		"idle, held":     {edits{two}, hold("c0000", "c0001", "c0002"), fleetv1beta1.ReasonHeld, "held", release},
		"idle, dry run": {edits{one, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun = true }}, func(*world) {}, fleetv1beta1.ReasonDryRun, "spec.dryRun is true", func(w *world) {
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun = false })
		}},
		"idle, no canary": {edits{one, canary}, func(*world) {}, fleetv1beta1.ReasonCanaryNotSelected, "canaryClusters selects none", canaries("c0000")},
		"idle, lost records": {edits{two}, func(w *world) {
			w.detachable = true
			w.RunFor(time.Hour)
			w.Delete(w.run("c0000"))
			w.RunFor(hours)
		}, fleetv1beta1.ReasonRecordsLost, "raise spec.attempt", (*world).raiseAttempt},
	}
}

// TestRemedies_of_fleets does what the messages advise for which no cluster begins, while clusters are in flight and while none
// is: clusters begin within 30 seconds, and the upgrade is complete in the end.
func TestRemedies_of_fleets(t *testing.T) {
	t.Parallel()
	for name, row := range fleetRemedies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 0)
			w.Delete(w.get())
			w.RunFor(time.Minute)
			for _, cluster := range []string{"c0000", "c0001", "c0002"} {
				w.addCluster(cluster)
			}
			w.Create(w.upgrade(stores.Name, row.edits...))
			row.breaks(w)
			w.runUntil(hours, row.reason)
			if active := strings.HasPrefix(name, "active"); active != (w.inFlight() > 0) {
				t.Fatalf("%d clusters are in flight", w.inFlight())
			}
			if got := w.condition(fleetv1beta1.ConditionAdmitting).Message; !strings.Contains(got, row.advice) {
				t.Fatalf("the message %q lacks %q", got, row.advice)
			}
			row.fix(w)
			w.RunFor(30 * time.Second)
			if got := w.reason(); got == row.reason {
				t.Errorf("after the remedy no cluster begins: %s", w.describe())
			}
			clear(w.slow)
			w.setAvailable("c0000", metav1.ConditionTrue)
			w.RunFor(hours)
			if w.reason() != fleetv1beta1.ReasonFinished {
				t.Errorf("in the end: %s", w.describe())
			}
		})
	}
}

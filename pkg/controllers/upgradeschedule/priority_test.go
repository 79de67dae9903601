// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// A due start is served before a backlog of other objects, both when its UpgradeConfig changes and
// when its pass was scheduled.
func TestPriority(t *testing.T) {
	t.Parallel()
	const pin = 4 * time.Hour
	ahead := pinned("4h")
	for name, tc := range map[string]struct {
		change  func(*maintenancev1beta1.UpgradeConfig)
		at      time.Time
		unknown bool
		runNow  bool
		suspend bool

		urgent bool
		next   int
	}{
		"days before":                              {at: monday},
		"the version is pinned in the next pass":   {change: ahead, at: tuesday.Add(-pin - 9*time.Minute), next: manager.UrgentPriority},
		"the version is pinned later":              {change: ahead, at: tuesday.Add(-pin - 11*time.Minute)},
		"the version waits for the update service": {change: ahead, at: tuesday.Add(-pin + time.Minute), unknown: true, urgent: true, next: manager.UrgentPriority},
		"the version is pinned":                    {change: ahead, at: tuesday.Add(-pin + time.Minute)},
		"the start is suspended":                   {at: tuesday.Add(-time.Minute), suspend: true},
		"a user has requested a start":             {at: monday, runNow: true, urgent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := tc.change
			if change == nil {
				change = func(*maintenancev1beta1.UpgradeConfig) {}
			}
			w := newWorld(t, config(change))
			if tc.unknown {
				w.losesUpdates()
			}
			if tc.suspend {
				w.edit(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Suspend = new(true) })
			}
			w.RunTo(tc.at)
			cfg := w.get()
			if tc.runNow {
				cfg.Annotations = map[string]string{maintenancev1beta1.RunNowAnnotation: "now"}
			}
			if got := w.reconciler.Controller().Reads[0].IsUrgent(cfg); got != tc.urgent {
				t.Errorf("urgent: %t, want %t", got, tc.urgent)
			}
			result, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: weekly})
			if err != nil || result.Priority == nil || *result.Priority != tc.next {
				t.Errorf("%+v, %v; want priority %d", result, err, tc.next)
			}
		})
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package poolrelease_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// configAttempt returns a committed attempt at a version. It starts some hours after the start of
// the simulation.
func configAttempt(version string, after int, finished bool) history.Record {
	record := attempt(1, finished)
	record.Version, record.UpgradeAt = version, &metav1.Time{Time: simulation.Start.Add(time.Duration(after) * time.Hour)}
	record.CommenceTime = record.StartTime
	return record
}

// configMark returns the mark of an attempt of the UpgradeConfig, with the same window as the other
// marks.
func configMark(record history.Record) string {
	return clusterstate.PoolMark{
		OwnerUID: "uid", Attempt: maintenance.ConfigOwners().Number(record),
		ReleaseAfter: simulation.Start.Truncate(time.Second).Add(time.Hour), ReleaseBefore: simulation.Start.Truncate(time.Second).Add(2 * time.Hour),
	}.String()
}

// setConfig stores an UpgradeConfig with these records. If inProgress, it has the finalizer of a
// running attempt.
func (w *world) setConfig(inProgress bool, records ...history.Record) {
	cfg := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "upgrade", UID: "uid"}}
	cfg.Status.History = records
	if inProgress {
		cfg.Finalizers = []string{upgradev1alpha1.Finalizer}
	}
	err := w.User.Get(w.TB.Context(), client.ObjectKeyFromObject(cfg), &upgradev1alpha1.UpgradeConfig{})
	switch {
	case client.IgnoreNotFound(err) != nil:
	case err != nil:
		err = w.Add(cfg)
	default:
		err = w.Set(cfg)
	}
	if err != nil {
		w.TB.Fatal(err)
	}
}

func (w *world) deleteConfig() {
	cfg := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "upgrade"}}
	if err := w.User.Delete(w.TB.Context(), cfg); err != nil {
		w.TB.Error(err)
	}
}

// A pool that an UpgradeConfig paused stays paused while that attempt is in progress, whatever the
// records show.
func TestReconcile_of_UpgradeConfigs(t *testing.T) {
	t.Parallel()
	running := configAttempt("4.4.6", 0, false)
	const released = "1h0m0s operator: paused false, marked false"
	for name, tc := range map[string]struct {
		upToDate bool
		setup    func(*world)
		log      []string
	}{
		"in progress":                    {setup: func(w *world) { w.setConfig(true, running) }},
		"in progress, nothing to update": {upToDate: true, setup: func(w *world) { w.setConfig(true, running) }},
		"not commenced, nothing to update": {upToDate: true, setup: func(w *world) {
			record := running
			record.CommenceTime = nil
			w.setConfig(true, record)
		}},
		"record is lost":                    {upToDate: true, setup: func(w *world) { w.setConfig(true) }},
		"record of another version is left": {upToDate: true, setup: func(w *world) { w.setConfig(true, configAttempt("4.4.5", -1, true)) }},
		"gone":                              {log: []string{released}},
		"ended":                             {setup: func(w *world) { w.setConfig(false, configAttempt("4.4.6", 0, true)) }, log: []string{released}},
		"another attempt at the version":    {setup: func(w *world) { w.setConfig(true, configAttempt("4.4.6", 1, false)) }, log: []string{released}},
		"attempt 1 at another version":      {setup: func(w *world) { w.setConfig(true, configAttempt("4.4.7", 0, false)) }, log: []string{released}},
		"another attempt is requested": {setup: func(w *world) {
			record := configAttempt("4.4.6", 1, false)
			record.StartTime, record.CommenceTime = nil, nil
			w.setConfig(false, record)
		}, log: []string{released}},
		"ends in the window": {setup: func(w *world) {
			w.setConfig(true, running)
			w.After(90*time.Minute, func() { w.setConfig(false, configAttempt("4.4.6", 0, true)) })
		}, log: []string{"1h30m0s operator: paused false, marked false"}},
		"deleted in the window, its finalizer removed by a person": {setup: func(w *world) {
			w.setConfig(true, running)
			w.After(80*time.Minute, w.deleteConfig)
			w.After(90*time.Minute, func() {
				cfg := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "upgrade"}}
				if err := w.User.Patch(w.TB.Context(), cfg, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
					w.TB.Error(err)
				}
			})
		}, log: []string{"1h30m0s operator: paused false, marked false"}},
		"the cache does not show it": {setup: func(w *world) {
			w.After(time.Minute, func() {
				w.Process.Lag("UpgradeConfig", 24*time.Hour)
				w.setConfig(true, running)
			})
		}},
		"operator crashes in mid-pause": {setup: func(w *world) {
			w.setConfig(true, running)
			w.After(30*time.Minute, func() { w.Process.Kill(); w.Begin() })
			w.After(75*time.Minute, func() { w.setConfig(false, configAttempt("4.4.6", 0, true)) })
		}, log: []string{"1h15m0s operator: paused false, marked false"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, configMark(running), !tc.upToDate)
			if tc.setup != nil {
				tc.setup(w)
			}
			w.Begin()
			w.RunFor(3 * time.Hour)
			if diff := cmp.Diff(tc.log, w.log); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

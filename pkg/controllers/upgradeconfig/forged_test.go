// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// forgeStarted replaces the history by an attempt that has just started, as a client with the right
// to write the status can.
func (w *world) forgeStarted() {
	w.t.Helper()
	clear(w.completions)
	now := metav1.NewTime(w.Now().Truncate(time.Second))
	cfg := w.get(upgrade)
	cfg.Status.History = []history.Record{{Version: desired, Phase: history.PhaseUpgrading, Attempt: 1, StartTime: &now}}
	w.must(w.client.Status().Update(w.t.Context(), cfg))
}

// requested returns the desired update of the cluster; empty if there is none.
func (w *world) requested() string {
	w.t.Helper()
	var version configv1.ClusterVersion
	w.must(w.client.Get(w.t.Context(), clusterstate.VersionKey, &version))
	if version.Spec.DesiredUpdate == nil {
		return ""
	}
	return version.Spec.DesiredUpdate.Version
}

// The Lease notes that the update was requested, also if a forged record does not.
func TestRequestIsWithdrawnAfterTheRecordWasForged(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world){
		"the window closes":                   func(w *world) { w.runTo(time.Hour) },
		"the upgrade is held":                 func(w *world) { w.hold("maintenance"); w.runFor(time.Minute) },
		"the operator restarts and is held":   func(w *world) { w.restart(); w.hold("maintenance"); w.runFor(time.Minute) },
		"forged again, and the window closes": func(w *world) { w.forgeStarted(); w.runTo(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 6 * time.Hour
			w.runUntilRequested()
			w.cordonWorker(true) // so that the forged attempt does not request it again
			w.forgeStarted()
			w.runFor(time.Minute)
			if got := w.requested(); got != desired {
				t.Fatalf("the desired update is %q before the end", got)
			}
			end(w)
			if got := w.requested(); got != "" {
				t.Errorf("the desired update is still %q; %s", got, w.describe())
			}
		})
	}
}

// What another client requests after a hold has withdrawn the request is not that of the attempt.
func TestWithdrawnRequestIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.AcceptDelay = 6 * time.Hour
	w.runUntilRequested()
	w.hold("maintenance")
	w.runFor(time.Minute)
	if got := w.requested(); got != "" {
		t.Fatalf("the desired update is %q", got)
	}
	w.requestElsewhere(desired)
	w.restart()
	w.runTo(time.Hour)
	if got := w.requested(); got != desired {
		t.Errorf("the desired update is %q; %s", got, w.describe())
	}
}

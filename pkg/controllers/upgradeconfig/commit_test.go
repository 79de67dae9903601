// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

// A request that waits is withdrawn when its object goes, even if the type is unknown by then, or if another client
// has removed the finalizer.
func TestRequestIsWithdrawnWhateverHappensToItsObject(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*world){
		"the type is unknown": func(w *world) {
			w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Type = "ROSA" })
			w.RunFor(time.Minute)
			w.remove(upgrade)
		},
		"the finalizer is removed": func(w *world) {
			w.remove(upgrade)
			w.removeFinalizers(upgrade)
		},
		"the finalizer is removed while the operator is down": func(w *world) {
			w.Process.Kill()
			w.remove(upgrade)
			w.removeFinalizers(upgrade)
			w.RunFor(time.Hour)
			w.Begin()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 6 * time.Hour
			w.runUntilRequested()
			remove(w)
			w.RunFor(15 * time.Minute)
			if w.exists(upgrade) || w.holder() != "" {
				t.Errorf("exists: %t, the lock is held by %q", w.exists(upgrade), w.holder())
			}
			if update := w.cluster.ClusterVersion().Spec.DesiredUpdate; update != nil {
				t.Errorf("the request stays: %+v", update)
			}
		})
	}
}

// An object of the same name that is created while the operator is down does not keep the request of its predecessor.
func TestRequestOfAReplacedObjectIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.AcceptDelay = 6 * time.Hour
	w.runUntilRequested()
	w.Process.Kill()
	w.remove(upgrade)
	w.removeFinalizers(upgrade)
	w.Create(upgradeConfig(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) {
		s.Desired.Version, s.UpgradeAt = "4.4.7", w.Clock().Now().AddDate(0, 1, 0).Format(time.RFC3339)
	}))
	w.RunFor(time.Hour)
	w.Begin()
	w.RunFor(15 * time.Minute)
	if update := w.cluster.ClusterVersion().Spec.DesiredUpdate; update != nil || w.holder() != "" {
		t.Errorf("the request is %+v, the lock is held by %q", update, w.holder())
	}
}

// supersededWhileDown returns a world whose operator is down since it has requested the update, which has begun
// and was superseded since, and the channel of the cluster.
func supersededWhileDown(t *testing.T) (*world, string) {
	t.Helper()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.AcceptDelay = time.Minute
	w.runUntilRequested()
	w.Process.Kill()
	w.RunFor(5 * time.Minute)
	w.requestElsewhere("4.4.7")
	w.RunFor(5 * time.Minute)
	version := w.cluster.ClusterVersion()
	if h := version.Status.History; len(h) != 3 || h[0].Version != "4.4.7" || h[1].Version != desired {
		t.Fatalf("the history of the cluster is %+v", h)
	}
	return w, version.Spec.Channel
}

// The update began and was superseded while the operator was down: the upgrade had commenced.
func TestSupersededWhileTheOperatorWasDown(t *testing.T) {
	t.Parallel()
	for _, deleted := range []bool{false, true} {
		w, channel := supersededWhileDown(t)
		if deleted {
			w.remove(upgrade)
		}
		w.Begin()
		w.RunFor(30 * time.Minute)
		if got := w.cluster.ClusterVersion().Spec; got.Channel != channel || got.DesiredUpdate == nil || got.DesiredUpdate.Version != "4.4.7" {
			t.Errorf("deleted: %t: the spec of the ClusterVersion is %+v", deleted, got)
		}
		switch {
		case deleted && (w.events("UpgradeContinues") > 0 || w.events("UpgradeFailed") != 1):
			t.Errorf("deleted: %d Events say that the upgrade continues, and %d that it has failed", w.events("UpgradeContinues"), w.events("UpgradeFailed"))
		case !deleted:
			w.runUntil(func() bool { return w.isFinished(upgrade) })
			if got := w.condition("Succeeded"); !strings.HasPrefix(got, "False Superseded") {
				t.Errorf("Succeeded is %s; %s", got, w.describe())
			}
		}
	}
}

// As TestSupersededWhileTheOperatorWasDown, and the record is lost as well: the Lease proves the request.
func TestSupersededWhileTheOperatorWasDownAndTheRecordWasLost(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*world){
		"kept":    func(*world) {},
		"deleted": func(w *world) { w.remove(upgrade) },
		"deleted, and the finalizer removed": func(w *world) {
			w.remove(upgrade)
			w.removeFinalizers(upgrade)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, channel := supersededWhileDown(t)
			w.clearStatus(upgrade)
			remove(w)
			w.Begin()
			w.RunFor(30 * time.Minute)
			if got := w.cluster.ClusterVersion().Spec; got.Channel != channel || got.DesiredUpdate == nil || got.DesiredUpdate.Version != "4.4.7" {
				t.Errorf("the channel was %s, the spec of the ClusterVersion is %+v", channel, got)
			}
			if name == "kept" {
				w.runUntil(func() bool { return w.isFinished(upgrade) })
				if got := w.condition("Succeeded"); !strings.HasPrefix(got, "False Superseded") {
					t.Errorf("Succeeded is %s; %s", got, w.describe())
				}
			}
		})
	}
}

// failedAfterCommit returns a world whose upgrade has failed after its commit.
func failedAfterCommit(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, upgradeConfig(upgrade))
	w.After(25*time.Minute, func() { w.cordonWorker(true) })
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	if r := w.record(); r.Phase != history.PhaseFailed || r.CommenceTime == nil {
		t.Fatalf("the first attempt is %+v", r)
	}
	return w
}

// A retry after the commit waits for its time.
func TestRetryAfterTheCommitWaitsForItsTime(t *testing.T) {
	t.Parallel()
	w := failedAfterCommit(t)
	later := w.Now().Add(time.Hour)
	w.updateSpec(upgrade, newTime(later))
	for w.Now().Before(later.Add(-time.Minute)) {
		w.RunFor(30 * time.Second)
		if r := w.record(); r.InProgress() || w.holder() != "" {
			t.Fatalf("at %s, the retry has begun; %s", w.Now(), w.describe())
		}
	}
	w.cordonWorker(false)
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
}

// A retry is requested and taken back: the record of the attempt that has failed is shown again with all its steps, and
// nothing has missed a window. So it is if another version is requested instead, and if the operator restarts.
func TestRetryThatIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, takeBack := range map[string]func(w *world, at string){
		"the former time": func(w *world, at string) {
			w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = at })
		},
		"the former time, after a restart": func(w *world, at string) {
			w.Restart()
			w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = at })
		},
		"another version": func(w *world, _ string) {
			w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.7" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := failedAfterCommit(t)
			before, at := w.record(), w.get(upgrade).Spec.UpgradeAt
			w.updateSpec(upgrade, newTime(w.Now().Add(24*time.Hour)))
			w.RunFor(5 * time.Minute)
			w.updateSpec(upgrade, newTime(w.Now().Add(48*time.Hour))) // and postponed
			w.RunFor(5 * time.Minute)
			if got := w.record(); got.InProgress() || got.Finished() {
				t.Fatalf("the retry is %+v", got)
			}
			takeBack(w, at)
			w.RunFor(10 * time.Minute)
			all := w.get(upgrade).Status.History
			after := all[slices.IndexFunc(all, func(r history.Record) bool { return r.Version == desired })]
			if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(history.Record{}, "NotifiedTime")); diff != "" {
				t.Errorf("the record before the retry and after it was taken back (-before +after):\n%s", diff)
			}
			if got := w.condition("Succeeded"); after.Version == all[0].Version && !strings.HasPrefix(got, "False UnhealthyAfterUpgrade") {
				t.Errorf("Succeeded is %s", got)
			}
			if n := w.events("WindowMissed"); n > 0 {
				t.Errorf("%d notifications of a missed window", n)
			}
		})
	}
}

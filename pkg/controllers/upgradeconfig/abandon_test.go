// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// abandoningUpgrader is an upgrader whose runbooks abandon by a function.
type abandoningUpgrader struct {
	upgrader upgraders.ClusterUpgrader
	abandon  func(context.Context) error
}

func (u abandoningUpgrader) Runbook(attempt upgraders.Attempt) engine.Runbook {
	book := u.upgrader.Runbook(attempt)
	book.Abandon = u.abandon
	return book
}

func TestDeletionAbandonsAnUnfinishedUpgrade(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection was refused")
	for name, tc := range map[string]struct {
		committed  bool
		fails      int // the number of failing calls
		gone       time.Duration
		event      string
		leastTries int
	}{
		"after the commit":                   {committed: true, event: "UpgradeContinues", leastTries: 1},
		"after the commit, retried":          {committed: true, fails: 5, gone: time.Second, event: "UpgradeContinues", leastTries: 6},
		"after the commit, never works":      {committed: true, fails: 1 << 30, gone: 9 * time.Minute, event: "UpgradeContinues", leastTries: 10},
		"clean-up does not end":              {gone: 9 * time.Minute, event: "CancellationAbandoned", leastTries: 1},
		"neither clean-up nor abandon works": {fails: 1 << 30, gone: 9 * time.Minute, event: "CancellationAbandoned", leastTries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			tries := 0
			w.snapshot.Upgraders = map[string]upgraders.ClusterUpgrader{"OSD": abandoningUpgrader{upgrader: w.snapshot.Upgraders["OSD"], abandon: func(ctx context.Context) error {
				if _, bounded := simulation.Deadline(ctx); !bounded {
					t.Error("the call has no deadline")
				}
				if tries++; tries <= tc.fails {
					return broken
				}
				return nil
			}}}
			if tc.committed {
				w.runUntilStep("ControlPlaneUpgraded")
			} else {
				w.cluster.AcceptDelay = 6 * time.Hour
				w.runUntilRequested()
				w.Writes = refuse("patch ClusterVersion")
			}
			if tries > 0 {
				t.Fatal("the upgrade is abandoned before the deletion")
			}
			deleted := w.remove(upgrade)
			w.runUntil(func() bool { return !w.exists(upgrade) })
			took := w.Now().Sub(deleted)
			if took < tc.gone || took > tc.gone+2*time.Minute {
				t.Errorf("it took %s", took)
			}
			if tries < tc.leastTries || tc.fails == 0 && tries != 1 {
				t.Errorf("%d tries", tries)
			}
			if n := w.events(tc.event); n != 1 {
				t.Errorf("%d Events %s", n, tc.event)
			}
		})
	}
}

// An upgrade whose type a later release does not know is cleaned up as far as the known types can do that.
func TestDeletionAbandonsAnUpgradeOfAnUnknownType(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.AcceptDelay = 6 * time.Hour
	w.runUntilRequested()
	tries := 0
	w.snapshot.Upgraders = map[string]upgraders.ClusterUpgrader{"ARO": abandoningUpgrader{upgrader: w.snapshot.Upgraders["OSD"], abandon: func(context.Context) error {
		tries++
		return nil
	}}}
	w.RunFor(time.Minute)
	if tries > 0 || w.cluster.ClusterVersion().Spec.DesiredUpdate == nil {
		t.Fatalf("%d tries before the deletion; %s", tries, w.describe())
	}
	w.remove(upgrade)
	w.runUntil(func() bool { return !w.exists(upgrade) })
	if update := w.cluster.ClusterVersion().Spec.DesiredUpdate; tries != 1 || update != nil || w.holder() != "" {
		t.Errorf("%d tries, desiredUpdate is %+v, the lock is held by %q", tries, update, w.holder())
	}
	if n := w.events("CancellationAbandoned"); n != 1 {
		t.Errorf("%d Events CancellationAbandoned", n)
	}
}

// The timeout bounds how long a deletion waits for the cleanup, not whether it is tried.
func TestDeletionTriesTheCleanupHoweverLate(t *testing.T) {
	t.Parallel()
	conflict := simulation.Fault{Outcome: simulation.Conflict}
	down := func(writes simulation.FaultPlan) func(*world) {
		return func(w *world) {
			w.Process.Kill()
			w.remove(upgrade)
			w.RunFor(3 * time.Hour)
			w.Writes = writes
			w.Begin()
		}
	}
	for name, late := range map[string]func(*world){
		"the operator was down": down(nil),
		"the operator was down, and the first write of the status conflicts":   down(onlyFirst("patch UpgradeConfig/status", conflict)),
		"the operator was down, and the first write of the object conflicts":   down(onlyFirst("patch UpgradeConfig", conflict)),
		"the operator was down, and the first write of the lock conflicts":     down(onlyFirst("patch Lease", conflict)),
		"the operator was down, and the cluster version operator writes first": down(onlyFirst("patch ClusterVersion", conflict)),
		"the operator was down, and the API server is busy": down(onlyFirst("patch UpgradeConfig/status",
			simulation.Fault{Outcome: simulation.Refuse, Err: apierrors.NewServiceUnavailable("busy")})),
		"the clock is ahead": func(w *world) {
			w.Process.Clock().Step(time.Hour)
			w.remove(upgrade)
		},
		"the withdrawal is refused until shortly before the timeout": func(w *world) {
			w.Writes = refuse("patch ClusterVersion")
			w.remove(upgrade)
			w.RunFor(9*time.Minute + 58*time.Second)
			w.Writes = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 6 * time.Hour
			w.runUntilRequested()
			late(w)
			w.runUntil(func() bool { return !w.exists(upgrade) })
			spec := w.cluster.ClusterVersion().Spec
			if spec.DesiredUpdate != nil || spec.Channel != "stable-4.4" {
				t.Errorf("desiredUpdate is %+v, the channel is %q", spec.DesiredUpdate, spec.Channel)
			}
			if cancelled, abandoned := w.events("UpgradeCancelled"), w.events("CancellationAbandoned"); cancelled != 1 || abandoned != 0 {
				t.Errorf("%d Events UpgradeCancelled, %d CancellationAbandoned", cancelled, abandoned)
			}
			if w.holder() != "" {
				t.Errorf("the lock is held by %s", w.holder())
			}
		})
	}
}

// onlyFirst returns a plan with a fault for the first write of a name.
func onlyFirst(what string, fault simulation.Fault) simulation.FaultPlan {
	seen := false
	return func(r simulation.Request) simulation.Fault {
		if seen || nameOf(r) != what {
			return simulation.Fault{}
		}
		seen = true
		return fault
	}
}

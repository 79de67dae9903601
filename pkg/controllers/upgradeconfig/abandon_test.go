// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// abandoningUpgrader is an upgrader whose upgrades leave something behind, which is taken back at once or not.
type abandoningUpgrader struct {
	upgrader ClusterUpgrader
	abandon  func(context.Context) error
}

func (u abandoningUpgrader) Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook {
	book := u.upgrader.Runbook(cfg)
	book.Abandon = u.abandon
	return book
}

func TestWhatAnUpgradeWouldLeaveBehindIsTakenBackWhenItIsLetGoOf(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection was refused")
	for name, tc := range map[string]struct {
		committed  bool
		fails      int // so often
		gone       time.Duration
		event      string
		leastTries int
	}{
		"after the commit":                        {committed: true, event: "UpgradeContinues", leastTries: 1},
		"after the commit, in the end":            {committed: true, fails: 5, gone: time.Second, event: "UpgradeContinues", leastTries: 6},
		"after the commit, if that works":         {committed: true, fails: 1 << 30, gone: 9 * time.Minute, event: "UpgradeContinues", leastTries: 10},
		"when the clean-up does not end":          {gone: 9 * time.Minute, event: "CancellationAbandoned", leastTries: 1},
		"when the clean-up does not end, or this": {fails: 1 << 30, gone: 9 * time.Minute, event: "CancellationAbandoned", leastTries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			tries := 0
			w.snapshot.Upgraders = map[string]ClusterUpgrader{"OSD": abandoningUpgrader{upgrader: w.snapshot.Upgraders["OSD"], abandon: func(ctx context.Context) error {
				if _, bounded := ctx.Deadline(); !bounded {
					t.Error("it may take for ever")
				}
				if tries++; tries <= tc.fails {
					return broken
				}
				return nil
			}}}
			if tc.committed {
				w.runUntilStep("ControlPlaneUpgraded")
			} else {
				w.cluster.unresponsive = false
				w.cluster.acceptDelay = 6 * time.Hour
				w.runUntilRequested()
				w.plan = func(_ int, what string) answer {
					if what == "patch ClusterVersion" {
						return refused
					}
					return applied
				}
			}
			if tries > 0 {
				t.Fatal("it is abandoned although nobody deletes it")
			}
			w.remove(upgrade)
			w.runUntil(func() bool { return !w.exists(upgrade) })
			took := w.clock.Now().Sub(w.deleted[upgrade].Time)
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

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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// abandoningUpgrader is an upgrader whose runbooks abandon by a function.
type abandoningUpgrader struct {
	upgrader ClusterUpgrader
	abandon  func(context.Context) error
}

func (u abandoningUpgrader) Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook {
	book := u.upgrader.Runbook(cfg)
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
			w.snapshot.Upgraders = map[string]ClusterUpgrader{"OSD": abandoningUpgrader{upgrader: w.snapshot.Upgraders["OSD"], abandon: func(ctx context.Context) error {
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
				w.plan = refuse("patch ClusterVersion")
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

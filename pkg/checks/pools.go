// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

var poolsCheck = Check{
	Name:  NamePools,
	Doc:   "Machine config pools are degraded, or paused although they have machines.",
	Reads: []client.Object{&mcfgv1.MachineConfigPool{}},
	Find:  findPools,
}

func findPools(ctx context.Context, in Input) ([]Finding, error) {
	pools, err := clusterstate.ListPools(ctx, in.Reader)
	if err != nil {
		return nil, err
	}
	return Pools(pools, in.Options, in.Sources.now()), nil
}

// Pools returns the pools that are degraded, and those that are paused although they have machines,
// because an upgrade would skip these. Paused pools that the operator unpauses itself are left out if
// the options select that.
func Pools(pools []clusterstate.Pool, options Options, now time.Time) []Finding {
	var degraded, paused []Finding
	for _, pool := range pools {
		if pool.Degraded.IsTrue() && !options.PausedPoolsOnly {
			f := poolFinding("PoolDegraded", "machine config pools degraded", pool)
			f.Description = pool.Degraded.MessageOrReason()
			degraded = append(degraded, f)
		}
		if pool.Paused && !pool.Empty() && (!options.IgnoreDelayedPools || !pool.Delayed()) {
			f := poolFinding("PoolPaused", "machine config pools paused", pool)
			f.Description, f.Remedy = PausedBy(pool, ReleaseOf(pool, false, now))
			paused = append(paused, f)
		}
	}
	return append(degraded, paused...)
}

// PausedBy returns who paused the pool, unless a user did, and what a person can do about it. To
// unpause a pool before its release window would reboot its nodes outside of it.
func PausedBy(pool clusterstate.Pool, release Release) (by, remedy string) {
	remedy = "Set spec.paused of the MachineConfigPool to false."
	switch release.State {
	case ReleaseKept:
		return "by an UpgradeJob that failed, since " + formatTime(release.At), remedy
	case ReleaseLater, ReleaseNow:
		return "by an UpgradeJob, until " + formatTime(pool.Mark.ReleaseAfter),
			"Wait: the operator unpauses the pool between " + formatTime(pool.Mark.ReleaseAfter) + " and " + formatTime(pool.Mark.ReleaseBefore) + "."
	case ReleaseMissed:
		return "by an UpgradeJob, which did not unpause it before " + formatTime(release.At),
			"Set spec.paused of the MachineConfigPool to false at a time at which its nodes may reboot: its release window was missed."
	case ReleaseNotOurs:
	}
	return "", remedy
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func poolFinding(reason, summary string, pool clusterstate.Pool) Finding {
	f := newFinding(reason, summary, Resource{Group: mcfgv1.GroupName, Kind: "MachineConfigPool", Name: pool.Name})
	f.Scope = ScopeWorkerPool
	return f
}

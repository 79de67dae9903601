// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// findPools returns findings for degraded pools and for paused pools with machines, which an upgrade would
// skip. It ignores paused pools that the operator itself will unpause if the options say so. It also ignores
// paused pools in the plan of a release that the control plane already runs, because the only remaining task
// is to unpause them.
func findPools(in Facts, phase RulePhase) []Finding {
	var degraded, paused []Finding
	for _, pool := range in.Pools {
		if pool.Degraded.IsTrue() && !in.Options.PausedPoolsOnly {
			f := poolFinding("PoolDegraded", "machine config pools degraded", pool)
			f.Description = pool.Degraded.MessageOrReason()
			degraded = append(degraded, f)
		}
		if isLeft := phase == Plan && in.isRunning(); pool.Paused && !pool.Empty() && !isLeft && (!in.Options.IgnoreDelayedPools || !pool.Delayed()) {
			f := poolFinding("PoolPaused", "machine config pools paused", pool)
			f.Description, f.Remedy = PausedBy(pool, clusterstate.ReleaseOf(pool, false, in.Now))
			paused = append(paused, f)
		}
	}
	return slices.Concat(degraded, paused, in.poolConflicts())
}

// PausedBy returns who paused the pool, unless it was a user, and a remedy. A pool must not be unpaused
// before its release window, because its nodes would reboot outside of it.
func PausedBy(pool clusterstate.Pool, release clusterstate.PoolRelease) (by, remedy string) {
	remedy = "Set spec.paused of the MachineConfigPool to false."
	switch release.State {
	case clusterstate.ReleaseKept:
		return "by an upgrade that failed, since " + text.FormatTime(release.At), remedy
	case clusterstate.ReleaseLater, clusterstate.ReleaseNow:
		return "by an upgrade, until " + text.FormatTime(pool.Mark.ReleaseAfter),
			"Wait: the operator unpauses the pool between " + text.FormatTime(pool.Mark.ReleaseAfter) + " and " + text.FormatTime(pool.Mark.ReleaseBefore) + "."
	case clusterstate.ReleaseMissed:
		return "by an upgrade, which did not unpause it before " + text.FormatTime(release.At),
			"Set spec.paused of the MachineConfigPool to false at a time at which its nodes may reboot: its release window was missed."
	case clusterstate.ReleaseNotOurs:
	}
	return "", remedy
}

func poolFinding(reason, summary string, pool clusterstate.Pool) Finding {
	f := newFinding(reason, summary, poolResource(pool.Name))
	f.Scope = ScopeWorkerPool
	return f
}

// poolConflicts returns findings for nodes selected by several custom pools. The machine config operator
// ignores these nodes, so they are not updated.
func (f Facts) poolConflicts() []Finding {
	custom := 0
	for i := range f.Pools {
		if f.Pools[i].IsCustom() {
			custom++
		}
	}
	if custom < 2 {
		return nil // clusters may have thousands of nodes
	}
	var found []Finding
	for i := range f.Nodes {
		node := &f.Nodes[i]
		conflicting := clusterstate.ConflictingPools(f.Pools, node)
		if len(conflicting) == 0 || text.MatchesAny(node.Name, f.Options.ExcludeNodes) {
			continue
		}
		finding := newFinding("NodeInSeveralPools", "nodes in several custom machine config pools", nodeResource(node.Name))
		finding.Scope, finding.Description = ScopeWorkerPool, text.JoinNames(conflicting)
		finding.Remedy = "Remove the labels of the node by which all but one of the custom pools select it."
		found = append(found, finding)
	}
	return found
}

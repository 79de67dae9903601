// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"slices"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// findPDBs finds budgets that allow no disruptions, cannot be computed, or are not observed yet. It also
// finds pairs of budgets that guard the same pod, because the Eviction API never evicts such a pod.
func findPDBs(in Facts, phase RulePhase) []Finding {
	if phase == Plan && in.neverDrains() {
		return nil
	}
	found := slices.Concat(in.blockingPDBs(), in.overlappingPDBs())
	if phase == Gate {
		return found
	}
	for i := range found {
		if found[i].Reason == reasonPDBBlocksEviction {
			found[i].Remedy = "Add a replica, or change the budget so that it allows a disruption."
		}
		found[i].Level = LevelWarning
	}
	if len(in.UncomparedPDBs) > 0 {
		f := about(LevelWarning, TypeUnknown, "Unreadable", "unreadable/pdb-overlaps", "not checked, because pods could not be read: whether PodDisruptionBudgets guard the same pods")
		f.Description = "in namespaces " + text.JoinNames(in.UncomparedPDBs)
		found = append(found, f)
	}
	return found
}

// exemptsPDB reports whether a budget is ignored by itself.
func (o GateOptions) exemptsPDB(pdb clusterstate.PDB) bool {
	return text.MatchesAny(pdb.Namespace+"/"+pdb.Name, o.ExcludePDBs)
}

// reasonPDBBlocksEviction is the reason of a finding about a budget that allows no disruptions.
const reasonPDBBlocksEviction = "PDBBlocksEviction"

// pdbProblems lists the reasons why evictions are blocked, in the order of findings.
var pdbProblems = []struct {
	block           clusterstate.EvictionBlock
	reason, summary string
}{
	{clusterstate.BlockedByCount, reasonPDBBlocksEviction, "PodDisruptionBudgets that allow no disruption"},
	{clusterstate.BlockedBySyncError, "PDBSyncFailed", "PodDisruptionBudgets that cannot be computed"},
	{clusterstate.BlockedUnobserved, "PDBNotObserved", "PodDisruptionBudgets not observed yet"},
}

// blockingPDBs returns findings for budgets that allow no disruptions, cannot be computed, or are not
// observed yet.
func (f Facts) blockingPDBs() []Finding {
	var found []Finding
	for _, problem := range pdbProblems {
		for _, pdb := range f.PDBs {
			if pdb.EvictionBlock() == problem.block && !f.Options.exemptsPDB(pdb) {
				finding := newFinding(problem.reason, problem.summary, pdbResource(pdb))
				if problem.block == clusterstate.BlockedBySyncError {
					finding.Description = pdb.SyncError
				}
				found = append(found, finding)
			}
		}
	}
	return found
}

// overlappingPDBs returns findings for pairs of budgets that guard the same pod. A pair is exempt only if
// both budgets are.
func (f Facts) overlappingPDBs() []Finding {
	var found []Finding
	for _, pair := range f.PDBOverlaps {
		if f.Options.exemptsPDB(pair[0]) && f.Options.exemptsPDB(pair[1]) {
			continue
		}
		slices.SortFunc(pair[:], func(a, b clusterstate.PDB) int { return cmp.Compare(a.Name, b.Name) })
		finding := newFinding("PDBsOverlap", "PodDisruptionBudgets that guard the same pods", pdbResource(pair[0]), pdbResource(pair[1]))
		finding.Remedy = "Change the selectors so that at most one PodDisruptionBudget selects each pod."
		found = append(found, finding)
	}
	return found
}

func pdbResource(pdb clusterstate.PDB) Resource {
	return Resource{Group: policyv1.GroupName, Kind: "PodDisruptionBudget", Namespace: pdb.Namespace, Name: pdb.Name}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

var pdbsCheck = Check{
	Name:      "pdbs",
	Doc:       "PodDisruptionBudgets in namespaces where drains are never forced block a drain forever.",
	Reads:     []client.Object{&policyv1.PodDisruptionBudget{}},
	ReadsLive: []client.Object{&corev1.Pod{}},
	Find:      findPDBs,
}

// findPDBs finds budgets that allow no disruption, that cannot be computed or are not observed yet,
// and pairs of budgets that guard the same pod, which the Eviction API never evicts.
func findPDBs(ctx context.Context, in Input) ([]Finding, error) {
	all, err := clusterstate.ListPDBsIn(ctx, in.Reader, in.Options.PDBNamespaces)
	if err != nil {
		return nil, err
	}
	var pdbs []clusterstate.PDB
	for _, pdb := range all {
		if !text.MatchesAny(pdb.Namespace+"/"+pdb.Name, in.Options.ExcludePDBs) {
			pdbs = append(pdbs, pdb)
		}
	}
	found := PDBs(pdbs)
	overlapping, err := in.overlaps(ctx, pdbs)
	return append(found, overlapping...), err
}

// ReasonPDBBlocksEviction is the reason of a finding about a budget that allows no disruption.
const ReasonPDBBlocksEviction = "PDBBlocksEviction"

// PDBs returns the budgets that allow no disruption, that cannot be computed, or that are not observed
// yet.
func PDBs(pdbs []clusterstate.PDB) []Finding {
	var blocking, failing, unobserved []Finding
	for _, pdb := range pdbs {
		switch {
		case !pdb.Observed:
			unobserved = append(unobserved, pdbFinding("PDBNotObserved", "PodDisruptionBudgets not observed yet", pdb))
		case pdb.SyncError != "":
			f := pdbFinding("PDBSyncFailed", "PodDisruptionBudgets that cannot be computed", pdb)
			f.Description = pdb.SyncError
			failing = append(failing, f)
		case pdb.BlocksEviction:
			blocking = append(blocking, pdbFinding(ReasonPDBBlocksEviction, "PodDisruptionBudgets that allow no disruption", pdb))
		}
	}
	return append(append(blocking, failing...), unobserved...)
}

// maxCompared bounds the number of budgets of a namespace whose selectors are compared in pairs.
const maxCompared = 64

// overlaps finds the pairs of budgets that guard the same pod.
func (in Input) overlaps(ctx context.Context, pdbs []clusterstate.PDB) ([]Finding, error) {
	var found []Finding
	var errs []error
	for _, guarding := range guardingByNamespace(pdbs) {
		pairs, decided := comparePairs(guarding)
		if !decided {
			var err error
			pairs, err = in.pairsWithPods(ctx, guarding)
			errs = append(errs, err)
		}
		for _, pair := range pairs {
			f := newFinding("PDBsOverlap", "PodDisruptionBudgets that guard the same pods", pdbResource(pair[0]), pdbResource(pair[1]))
			f.Remedy = "Change the selectors so that at most one PodDisruptionBudget selects each pod."
			found = append(found, f)
		}
	}
	return found, errors.Join(errs...)
}

// guardingByNamespace groups the budgets that guard pods. They are sorted by namespace.
func guardingByNamespace(pdbs []clusterstate.PDB) [][]clusterstate.PDB {
	var groups [][]clusterstate.PDB
	for _, pdb := range pdbs {
		switch last := len(groups) - 1; {
		case !pdb.GuardsPods:
		case last >= 0 && groups[last][0].Namespace == pdb.Namespace:
			groups[last] = append(groups[last], pdb)
		default:
			groups = append(groups, []clusterstate.PDB{pdb})
		}
	}
	return groups
}

type pdbPair [2]clusterstate.PDB

// comparePairs returns the pairs that overlap by their selectors alone; false means that only the
// pods show it.
func comparePairs(pdbs []clusterstate.PDB) (pairs []pdbPair, decided bool) {
	if len(pdbs) > maxCompared {
		return nil, false
	}
	for i, a := range pdbs {
		for _, b := range pdbs[i+1:] {
			switch a.CompareSelectors(b) {
			case clusterstate.OverlapAlways:
				pairs = append(pairs, pdbPair{a, b})
			case clusterstate.OverlapUnknown:
				return nil, false
			case clusterstate.OverlapNever:
			}
		}
	}
	return pairs, true
}

// pairsWithPods returns the pairs that select a common pod. The pods are listed at most once an
// interval, unless a budget is changed.
func (in Input) pairsWithPods(ctx context.Context, pdbs []clusterstate.PDB) ([]pdbPair, error) {
	namespace := pdbs[0].Namespace
	if in.Live == nil {
		return nil, fmt.Errorf("determining whether PodDisruptionBudgets in namespace %s overlap: no access to the API server", namespace)
	}
	key := fnv.New64a()
	for _, pdb := range pdbs {
		_, _ = io.WriteString(key, pdb.Name+"\n"+pdb.Selector()+"\n")
	}
	return in.Sources.overlappingPDBs(ctx, fmt.Sprintf("%s/%x", namespace, key.Sum64()), func(ctx context.Context) ([]pdbPair, error) {
		pods, err := clusterstate.ListPodsIn(ctx, in.Live, namespace)
		if err != nil {
			return nil, err
		}
		return pairsOf(pdbs, pods), nil
	})
}

// pairsOf returns the pairs that select a common pod, each once. A pod that more than two budgets
// select counts for the first two.
func pairsOf(pdbs []clusterstate.PDB, pods []clusterstate.Pod) []pdbPair {
	var pairs []pdbPair
	seen := map[[2]string]bool{}
	for _, pod := range pods {
		var selecting []clusterstate.PDB
		for _, pdb := range pdbs {
			if pdb.Selects(pod) {
				selecting = append(selecting, pdb)
			}
		}
		if len(selecting) < 2 || seen[[2]string{selecting[0].Name, selecting[1].Name}] {
			continue
		}
		seen[[2]string{selecting[0].Name, selecting[1].Name}] = true
		pairs = append(pairs, pdbPair{selecting[0], selecting[1]})
	}
	return pairs
}

func pdbFinding(reason, summary string, pdb clusterstate.PDB) Finding {
	return newFinding(reason, summary, pdbResource(pdb))
}

func pdbResource(pdb clusterstate.PDB) Resource {
	return Resource{Group: policyv1.GroupName, Kind: "PodDisruptionBudget", Namespace: pdb.Namespace, Name: pdb.Name}
}

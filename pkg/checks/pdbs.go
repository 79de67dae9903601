// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"

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
			blocking = append(blocking, pdbFinding("PDBBlocksEviction", "PodDisruptionBudgets that allow no disruption", pdb))
		}
	}
	overlapping, err := in.overlaps(ctx, pdbs)
	return append(append(append(blocking, failing...), unobserved...), overlapping...), err
}

// overlaps finds the pairs of budgets that guard the same pod. The pods are listed only if the
// selectors do not decide that.
func (in Input) overlaps(ctx context.Context, pdbs []clusterstate.PDB) ([]Finding, error) {
	var found []Finding
	var errs []error
	for i, a := range pdbs {
		for _, b := range pdbs[i+1:] {
			if b.Namespace != a.Namespace { // they are sorted
				break
			}
			share, err := in.sharePods(ctx, a, b)
			errs = append(errs, err)
			if share {
				f := newFinding("PDBsOverlap", "PodDisruptionBudgets that guard the same pods", pdbResource(a), pdbResource(b))
				f.Remedy = "Change the selectors so that at most one PodDisruptionBudget selects each pod."
				found = append(found, f)
			}
		}
	}
	return found, errors.Join(errs...)
}

func (in Input) sharePods(ctx context.Context, a, b clusterstate.PDB) (bool, error) {
	if !a.GuardsPods || !b.GuardsPods {
		return false, nil
	}
	switch a.CompareSelectors(b) {
	case clusterstate.OverlapAlways:
		return true, nil
	case clusterstate.OverlapNever:
		return false, nil
	case clusterstate.OverlapUnknown:
	}
	if in.Live == nil {
		return false, fmt.Errorf("determining whether PodDisruptionBudgets %s and %s in namespace %s guard the same pods: no access to the API server", a.Name, b.Name, a.Namespace)
	}
	key := a.Namespace + "/" + a.Name + "/" + b.Name + "/" + a.Selector() + "/" + b.Selector()
	return in.Sources.sharePods(ctx, key, func(ctx context.Context) (bool, error) {
		return clusterstate.SharePods(ctx, in.Live, a, b)
	})
}

func pdbFinding(reason, summary string, pdb clusterstate.PDB) Finding {
	return newFinding(reason, summary, pdbResource(pdb))
}

func pdbResource(pdb clusterstate.PDB) Resource {
	return Resource{Group: policyv1.GroupName, Kind: "PodDisruptionBudget", Namespace: pdb.Namespace, Name: pdb.Name}
}

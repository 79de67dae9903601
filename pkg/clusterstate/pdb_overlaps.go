// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// PDBPair is a pair of PodDisruptionBudgets that select a common pod. The Eviction API never evicts such a
// pod.
type PDBPair [2]PDB

// maxComparedPDBs is the maximum number of budgets per namespace whose selectors are compared pairwise.
const maxComparedPDBs = 64

// OverlappingPDBs returns the pairs of budgets known to select a common pod based on selectors and status.
// Groups of budgets for which this requires the pods are returned separately, by namespace. See OverlapsOn.
// The budgets must be sorted by namespace.
//
// A status without pods proves nothing. If several budgets select a pod, the disruption controller updates
// only one of them. The others keep the counts from before the pod was created.
func OverlappingPDBs(pdbs []PDB) (pairs []PDBPair, undecided [][]PDB) {
	for len(pdbs) > 0 {
		end := slices.IndexFunc(pdbs, func(b PDB) bool { return b.Namespace != pdbs[0].Namespace })
		if end < 0 {
			end = len(pdbs)
		}
		if found, decided := comparePDBs(pdbs[:end]); decided {
			pairs = append(pairs, found...)
		} else {
			undecided = append(undecided, pdbs[:end])
		}
		pdbs = pdbs[end:]
	}
	return pairs, undecided
}

// comparePDBs returns the overlapping pairs within a namespace, or false if this requires the pods.
func comparePDBs(pdbs []PDB) (pairs []PDBPair, decided bool) {
	if len(pdbs) > maxComparedPDBs {
		return nil, false
	}
	for i := range pdbs {
		for j := i + 1; j < len(pdbs); j++ {
			switch pdbs[i].overlap(&pdbs[j]) {
			case overlapCertain:
				pairs = append(pairs, PDBPair{pdbs[i], pdbs[j]})
			case overlapUnknown:
				return nil, false
			case overlapNever:
			}
		}
	}
	return pairs, true
}

// OverlapsOn returns the pairs of budgets that select one of the pods, without duplicates. If more than two
// budgets select a pod, the first two count.
func OverlapsOn(pods []Pod, pdbs []PDB) []PDBPair {
	var pairs []PDBPair
	seen := map[[2]int]bool{}
	for i := range pods {
		var pair [2]int
		selecting := 0
		for j := 0; j < len(pdbs) && selecting < len(pair); j++ {
			if pdbs[j].Selects(pods[i]) {
				pair[selecting] = j
				selecting++
			}
		}
		if selecting == len(pair) && !seen[pair] {
			seen[pair] = true
			pairs = append(pairs, PDBPair{pdbs[pair[0]], pdbs[pair[1]]})
		}
	}
	return pairs
}

// overlap is the relation of two budgets in a namespace: whether they select a common pod.
type overlap int

const (
	overlapUnknown overlap = iota // depends on the pods
	overlapNever                  // no pod can match both selectors
	overlapCertain                // one budget guards pods, and the other selects all of them
)

func (b *PDB) overlap(other *PDB) overlap {
	mine, ok := b.selector.Requirements()
	theirs, okToo := other.selector.Requirements()
	switch {
	case !ok || !okToo || areDisjoint(mine, theirs):
		return overlapNever
	case b.GuardsPods && includesAll(mine, theirs), other.GuardsPods && includesAll(theirs, mine):
		return overlapCertain
	}
	return overlapUnknown
}

// areDisjoint reports whether two requirements demand different values for a label.
func areDisjoint(a, b labels.Requirements) bool {
	for i := range a {
		for j := range b {
			if a[i].Key() == b[j].Key() && isValueSet(a[i]) && isValueSet(b[j]) && !a[i].Values().HasAny(b[j].Values().UnsortedList()...) {
				return true
			}
		}
	}
	return false
}

func isValueSet(r labels.Requirement) bool {
	return r.Operator() == selection.In || r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals
}

// includesAll reports whether the requirements include all of the others.
func includesAll(all, some labels.Requirements) bool {
	for i := range some {
		if !slices.ContainsFunc(all, func(r labels.Requirement) bool { return r.Equal(some[i]) }) {
			return false
		}
	}
	return true
}

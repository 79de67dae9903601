// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

func TestDrainDeadlines_First(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		timeout, pdbTimeout time.Duration
		want                time.Time
	}{
		"unprotected pods first": {time.Minute, time.Hour, noon.Add(time.Minute)},
		"protected pods first":   {time.Hour, time.Minute, noon.Add(time.Minute)},
		"protected pods never":   {time.Hour, -1, noon.Add(time.Hour)},
		"unprotected pods never": {-1, time.Hour, noon.Add(time.Hour)},
		"no pod ever":            {-1, -1, time.Time{}},
	} {
		if got := clusterstate.NewDrainDeadlines(noon, tc.timeout, tc.pdbTimeout).First(); !got.Equal(tc.want) {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

// A timeout of 0 forces pods immediately, and a negative timeout never does.
func TestNewDrainDeadlines(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	at := map[time.Duration]time.Time{-1: {}, 0: start, time.Hour: start.Add(time.Hour)}
	for timeout, unprotected := range at {
		for pdbTimeout, pdb := range at {
			got := clusterstate.NewDrainDeadlines(start, timeout, pdbTimeout)
			if want := (clusterstate.DrainDeadlines{Unprotected: unprotected, PDB: pdb}); !got.Equal(want) {
				t.Errorf("%s and %s: got %v, want %v", timeout, pdbTimeout, got, want)
			}
		}
	}
}

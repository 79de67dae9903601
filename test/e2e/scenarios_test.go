// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"cmp"
	"os"
	"slices"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/test/e2e/scenarios"
)

// alsoThroughTheBinary returns the scenarios that run in virtual time and through the binary. With
// E2E_SCENARIOS=all, all do.
func alsoThroughTheBinary() []string {
	return []string{
		"healthy-z", "superseded", "operator-restarts", "capacity-reserved", "status-wiped", "deleted-before-commit",
		"post-upgrade-procedures", "release-refused", "scheduled-maintenance", "maintenance-both-groups", "maintenance-config-waits", "maintenance-operator-killed",
		"pre-checks-required", "worker-nodes-later",
	}
}

// TestScenarios runs scenarios on clusters of their own.
func TestScenarios(t *testing.T) {
	t.Parallel()
	names, err := scenario.Names(scenarios.Files)
	if err != nil || len(names) == 0 {
		t.Fatalf("looking for scenarios: %v, found %d", err, len(names))
	}
	stories := map[string]*scenario.Scenario{}
	for _, name := range names {
		if stories[name], err = scenario.Load(scenarios.Files, name); err != nil {
			t.Fatal(err)
		}
	}
	// The longest tests come last, because the last test starts first: then no other test waits for
	// them.
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(stories[a].Expect.Within, stories[b].Expect.Within) })
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story := stories[name]
			if !story.Binary && !slices.Contains(alsoThroughTheBinary(), name) && os.Getenv("E2E_SCENARIOS") != "all" {
				t.Skip("runs in virtual time; make e2e-all runs it through the binary, too")
			}
			runScenario(t, story)
		})
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/scenario/binary"
	"github.com/managed-upgrade/managed-upgrade-operator/test/e2e/scenarios"
)

// alsoThroughTheBinary returns the scenarios that run in virtual time and through the binary. With
// E2E_SCENARIOS=all, all do.
func alsoThroughTheBinary() []string {
	return []string{
		"healthy-z", "superseded", "operator-restarts", "capacity-reserved", "status-wiped", "deleted-before-commit",
		"post-upgrade-procedures", "release-refused", "scheduled-maintenance", "maintenance-both-groups", "maintenance-config-waits", "maintenance-operator-killed",
		"pre-checks-required",
	}
}

// TestScenarios runs scenarios on clusters of their own.
func TestScenarios(t *testing.T) {
	t.Parallel()
	names, err := scenario.Names(scenarios.Files)
	if err != nil || len(names) == 0 {
		t.Fatalf("looking for scenarios: %v, found %d", err, len(names))
	}
	// Those that wait for minutes come last, since the last one starts first: then no other waits for them.
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(strings.Count(a, "api-server"), strings.Count(b, "api-server"))
	})
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story, err := scenario.Load(scenarios.Files, name)
			if err != nil {
				t.Fatal(err)
			}
			if !story.Binary && !slices.Contains(alsoThroughTheBinary(), name) && os.Getenv("E2E_SCENARIOS") != "all" {
				t.Skip("runs in virtual time; make e2e-all runs it through the binary, too")
			}
			runScenario(t, story)
		})
	}
}

// runScenario runs a scenario, and fails with its unmet expectations.
func runScenario(t *testing.T, story *scenario.Scenario) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	world, err := binary.New(ctx, story, binary.Options{Dir: stateFolder(t), Repository: repository})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := world.Stop(); err != nil {
			t.Error(err)
		}
	})
	describeOnFailure(t, world.Cluster)
	running, err := scenario.Start(ctx, story, world, scenario.Options{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	if problems := running.Wait(t.Context()); len(problems) > 0 {
		t.Fatalf("%s\nNot as expected:\n- %s", story.Description, strings.Join(problems, "\n- "))
	}
	checkAftermath(t, world.Cluster, world.Operator)
}

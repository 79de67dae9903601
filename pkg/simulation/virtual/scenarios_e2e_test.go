// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package virtual_test

import (
	"strings"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/test/e2e/scenarios"
)

// TestScenarios runs all scenarios that do not need the binary, and the example in the
// documentation.
func TestScenarios(t *testing.T) {
	t.Parallel()
	names, err := scenario.Names(scenarios.Files)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "../../../docs/examples/four-hours.yaml") {
		t.Run(strings.TrimSuffix(name[strings.LastIndex(name, "/")+1:], ".yaml"), func(t *testing.T) {
			t.Parallel()
			story := load(t, name)
			if story.Binary {
				t.Skip("needs the operator's program; package test/e2e runs it")
			}
			if log, problems := runScenario(t, story); len(problems) > 0 {
				t.Errorf("%s\nNot as expected:\n- %s\n%s", story.Description, strings.Join(problems, "\n- "), log)
			}
		})
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reasonPattern matches the reasons of the update informers.
var reasonPattern = regexp.MustCompile(`^(ControlPlane|ClusterVersion|PreviousUpdate|Release|Request|Operator|Drain|Node|Pod|Pool|Alert|CriticalAlert|Upgrade)[A-Za-z]*$`)

// notReasons lists literals in the code that look like reasons but are not.
var notReasons = []string{"Alert", "PodDisruptionBudget", "Pod", "Node", "ClusterVersion", "ClusterOperator", "ClusterOperators", "Release", "ReleaseAccepted", "UpgradeConfig", "UpgradeJob"}

func TestPage_lists_the_reasons_of_the_code(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/concepts/built-in-informers.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cell, _, _ := strings.Cut(line[2:], "|")
		documented = append(documented, strings.Fields(strings.ReplaceAll(cell, "`", ""))...)
	}
	var coded []string
	for _, name := range []string{"update_controlplane.go", "update_nodes.go", "update_alerts.go", "update_upgrades.go", "pools.go"} {
		coded = append(coded, reasonsIn(t, name)...)
	}
	slices.Sort(documented)
	slices.Sort(coded)
	if diff := cmp.Diff(slices.Compact(coded), documented); diff != "" {
		t.Errorf("reasons (-code +page):\n%s", diff)
	}
}

// reasonsIn returns the literals in a file that are reasons.
func reasonsIn(t *testing.T, name string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err == nil && reasonPattern.MatchString(value) && !slices.Contains(notReasons, value) {
			reasons = append(reasons, value)
		}
		return true
	})
	return reasons
}

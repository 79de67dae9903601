// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// reasons returns the values of the constants of a file whose names start with Reason.
func reasons(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, is := node.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
		return true
	})
	return values
}

// quoted returns the words of a part of a page that are set as code and begin with a capital letter.
func quoted(t *testing.T, page, from, to string) []string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(data), from)
	part, _, ended := strings.Cut(after, to)
	if !found || !ended {
		t.Fatalf("%s has no part %q", page, from)
	}
	var words []string
	for i, word := range strings.Split(part, "`") {
		if i%2 == 1 && word[0] >= 'A' && word[0] <= 'Z' {
			words = append(words, word)
		}
	}
	return words
}

func unique(words []string) []string { return slices.Compact(slices.Sorted(slices.Values(words))) }

func TestPages_list_every_reason(t *testing.T) {
	t.Parallel()
	const page, rollouts = "../../../docs/concepts/fleets.md", "../../../docs/concepts/fleet-rollout.md"
	conditions := reasons(t, "../../../api/cluster/v1beta1/names.go")
	runs := append(reasons(t, "../../../api/fleet/v1alpha1/names.go"), engine.ReasonCancelled)
	types := []string{"Selected", "Applied", "InProgress", "Complete", "Failed", "Admitting", "Stalled"}
	listed := quoted(t, page, "Of the conditions of a ManagedClustersUpgrade", "Of a cluster, in its ClusterUpgradeRun")
	listed = slices.DeleteFunc(listed, func(word string) bool { return slices.Contains(types, word) })
	if diff := cmp.Diff(unique(conditions), unique(listed)); diff != "" {
		t.Errorf("reasons of conditions (-code +page):\n%s", diff)
	}
	rows := quoted(t, page, "Of a cluster, in its ClusterUpgradeRun", "## Differences from the proposal")
	rows = slices.DeleteFunc(rows, func(word string) bool { return word == "Failing" || word == "SharedInstallPlan" })
	if diff := cmp.Diff(unique(runs), unique(rows)); diff != "" {
		t.Errorf("reasons of runs (-code +page):\n%s", diff)
	}
	stops := quoted(t, rollouts, "## Why no cluster begins", "## Differences from")
	for reason := range stopVerdicts() {
		if !slices.Contains(stops, reason) {
			t.Errorf("%s does not explain %s", rollouts, reason)
		}
	}
}

// The page shows the screen that the command prints.
func TestPage_shows_the_screen(t *testing.T) {
	t.Parallel()
	screen, err := os.ReadFile("testdata/progress.txt")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/concepts/fleets.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), string(screen)) {
		t.Error("the page shows another screen")
	}
}

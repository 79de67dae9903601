// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
)

// reasonFolders contain the code that sets the reasons of cluster upgrades.
var reasonFolders = []string{
	"pkg/engine", "pkg/lifecycle", "pkg/maintenance", "pkg/operator", "pkg/upgraders", "pkg/steps/admission", "pkg/controllers/upgradeconfig", "pkg/controllers/upgradejob",
	"pkg/steps/approval", "pkg/steps/capacity", "pkg/steps/controlplane", "pkg/steps/externaldeps", "pkg/steps/health", "pkg/steps/hooks", "pkg/steps/notify",
	"pkg/steps/pools", "pkg/steps/postupgrade", "pkg/steps/prechecks", "pkg/steps/silence", "pkg/steps/window", "pkg/manager",
}

// fleetReasonFolders contain the code that sets the reasons of fleets and their clusters.
var fleetReasonFolders = []string{
	"api/cluster/v1beta1", "api/fleet/v1alpha1", "pkg/rollout", "pkg/fleet/admission", "pkg/fleet/selection",
	"pkg/fleet/run", "pkg/fleet/run/delivery", "pkg/controllers/clusterupgraderun", "pkg/controllers/managedclustersupgrade",
}

// resultCalls lists functions of package engine whose result has a reason, with the index of that
// argument.
var resultCalls = map[string]int{"Wait": 0, "WaitFor": 1, "WaitUntil": 1, "Fail": 0, "Skip": 0}

var (
	camelCase    = regexp.MustCompile(`^[A-Z][a-z]+([A-Z][A-Za-z]*)?$`)
	reasonName   = regexp.MustCompile(`^[rR]eason[A-Z]`)
	quotedName   = regexp.MustCompile("`([A-Z][A-Za-z]+)`")
	documentedAs = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|")
)

// TestTroubleshooting compares the reasons in docs/troubleshooting.md with those that the code can
// set.
func TestTroubleshooting(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, folder := range reasonFolders {
		collectReasons(t, filepath.Join("../..", folder), found)
	}
	documented := map[string]bool{}
	for _, match := range documentedAs.FindAllStringSubmatch(readPage(t, "troubleshooting.md"), -1) {
		if documented[match[1]] {
			t.Errorf("the page has reason %s twice", match[1])
		}
		documented[match[1]] = true
	}
	compareReasons(t, found, documented, documented)
}

// TestFleetTroubleshooting compares the reasons on the pages about fleets with those that the hub
// can set.
func TestFleetTroubleshooting(t *testing.T) {
	t.Parallel()
	found := map[string]bool{string(fleetv1alpha1.ActionProgressing): true} // a state that is also a reason
	for _, folder := range fleetReasonFolders {
		collectReasons(t, filepath.Join("../..", folder), found)
	}
	mentioned, explained := map[string]bool{}, map[string]bool{}
	for _, name := range []string{"fleet-troubleshooting.md", "fleet-rollout.md", "fleet-dry-run.md"} {
		for table := range strings.SplitSeq(readPage(t, "concepts", name), "\n\n") {
			if !strings.HasPrefix(table, "|") {
				continue
			}
			for row := range strings.Lines(table) {
				addNames(mentioned, row)
				if first, _, _ := strings.Cut(row[1:], "|"); strings.HasPrefix(table, "| reason |") && !strings.HasPrefix(first, " the reason of ") {
					addNames(explained, first)
				}
			}
		}
	}
	compareReasons(t, found, mentioned, explained)
}

// addNames adds names in a text that may be reasons.
func addNames(names map[string]bool, text string) {
	for _, match := range quotedName.FindAllStringSubmatch(text, -1) {
		names[match[1]] = true
	}
}

func readPage(t *testing.T, path ...string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "docs"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// compareReasons requires that every reason set by the code is mentioned, and that the code sets
// every explained reason.
func compareReasons(t *testing.T, found, mentioned, explained map[string]bool) {
	t.Helper()
	if len(found) < 50 {
		t.Errorf("the code has %d reasons only: this test does not recognize them", len(found))
	}
	for _, reason := range slices.Sorted(maps.Keys(found)) {
		if !mentioned[reason] {
			t.Errorf("the page lacks reason %s", reason)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(explained)) {
		if !found[reason] {
			t.Errorf("the page has reason %s, which the code does not set", reason)
		}
	}
}

// collectReasons adds the reasons in the Go files of a folder.
func collectReasons(t *testing.T, folder string, found map[string]bool) {
	t.Helper()
	files, err := fs.Glob(os.DirFS(folder), "*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files: %v", folder, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			for _, value := range reasonsOf(node) {
				if camelCase.MatchString(value) {
					found[value] = true
				}
			}
			return true
		})
	}
}

// reasonsOf returns the reasons set by a node: a constant named like a reason, a field Reason, or
// the argument of a call.
func reasonsOf(node ast.Node) []string {
	switch node := node.(type) {
	case *ast.ValueSpec:
		for i, name := range node.Names {
			if reasonName.MatchString(name.Name) && i < len(node.Values) {
				return literal(node.Values[i])
			}
		}
	case *ast.KeyValueExpr:
		if key, ok := node.Key.(*ast.Ident); ok && (key.Name == "Reason" || key.Name == "FailReason" || key.Name == "MissedAs") {
			return literal(node.Value)
		}
	case *ast.CallExpr:
		name := ""
		switch function := node.Fun.(type) {
		case *ast.SelectorExpr:
			name = function.Sel.Name
		case *ast.Ident:
			name = function.Name
		}
		if i, ok := resultCalls[name]; ok && i < len(node.Args) {
			return literal(node.Args[i])
		}
	}
	return nil
}

func literal(value ast.Expr) []string {
	text, ok := value.(*ast.BasicLit)
	if !ok || text.Kind != token.STRING {
		return nil
	}
	unquoted, err := strconv.Unquote(text.Value)
	if err != nil {
		return nil
	}
	return []string{unquoted}
}

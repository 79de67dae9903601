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
)

// reasonFolders hold the code that sets the reasons of upgrades of a cluster.
var reasonFolders = []string{
	"pkg/engine", "pkg/lifecycle", "pkg/maintenance", "pkg/operator", "pkg/runbooks", "pkg/controllers/upgradeconfig", "pkg/controllers/upgradejob",
	"pkg/steps/capacity", "pkg/steps/controlplane", "pkg/steps/externaldeps", "pkg/steps/health", "pkg/steps/hooks", "pkg/steps/notify",
	"pkg/steps/pools", "pkg/steps/postupgrade", "pkg/steps/prechecks", "pkg/steps/silence", "pkg/steps/window",
}

// resultCalls are the functions of package engine whose answer has a reason, with the position of it.
var resultCalls = map[string]int{"Wait": 0, "WaitFor": 1, "WaitUntil": 1, "Fail": 0, "Skip": 0}

var (
	camelCase    = regexp.MustCompile(`^[A-Z][a-z]+([A-Z][A-Za-z]*)?$`)
	reasonName   = regexp.MustCompile(`^[rR]eason[A-Z]`)
	documentedAs = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|")
)

// TestTroubleshooting compares the reasons on docs/troubleshooting.md with those that the code can set.
func TestTroubleshooting(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, folder := range reasonFolders {
		collectReasons(t, filepath.Join("../..", folder), found)
	}
	if len(found) < 50 {
		t.Errorf("the code has %d reasons only: this test does not recognize them", len(found))
	}
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, match := range documentedAs.FindAllStringSubmatch(string(page), -1) {
		if documented[match[1]] {
			t.Errorf("the page has reason %s twice", match[1])
		}
		documented[match[1]] = true
	}
	for _, reason := range slices.Sorted(maps.Keys(found)) {
		if !documented[reason] {
			t.Errorf("the page lacks reason %s", reason)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(documented)) {
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

// reasonsOf returns the reasons that a node sets: a constant with the name of a reason, a field Reason, or
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

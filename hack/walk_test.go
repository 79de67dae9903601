// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"go/ast"
	"os"
	"regexp"
	"testing"
)

// TestWalk_names_what_exists checks that every package.Name on the page that walks through the code
// is declared.
func TestWalk_names_what_exists(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/concepts/walk.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`([a-z]+)\\.([A-Z][A-Za-z]+)`").FindAllStringSubmatch(string(page), -1)
	if len(names) < 20 {
		t.Fatalf("the page names %d declarations, want at least 20", len(names))
	}
	declared := declarations(t, "../pkg")
	for _, name := range names {
		if !declared[name[1]+"."+name[2]] {
			t.Errorf("no package %s below pkg declares %s", name[1], name[2])
		}
	}
}

// declarations returns the package.Name of all exported functions, types, and variables in the
// packages below the folder.
func declarations(t *testing.T, folder string) map[string]bool {
	t.Helper()
	declared := map[string]bool{}
	for _, file := range sources(t, folder) {
		for _, name := range namesOf(file) {
			declared[file.Name.Name+"."+name] = true
		}
	}
	return declared
}

// namesOf returns the names of functions without a receiver, types, variables, and constants.
func namesOf(file *ast.File) []string {
	var names []string
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

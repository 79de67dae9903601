// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The page for authors of informers explains each reason of the conditions of an UpdateInformer.
func TestEachReasonOfAnInformerIsExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/update-informers.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := constants(t, "Reasons of the conditions of an UpdateInformer.")
	if len(reasons) < 10 {
		t.Fatalf("only %d reasons", len(reasons))
	}
	for _, reason := range reasons {
		if !strings.Contains(string(page), "`"+reason+"`") {
			t.Errorf("docs/update-informers.md does not explain %s", reason)
		}
	}
}

// constants returns the values of the constants below a comment of names.go.
func constants(t *testing.T, comment string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || !strings.HasPrefix(group.Doc.Text(), comment) {
			continue
		}
		for _, spec := range group.Specs {
			for _, value := range spec.(*ast.ValueSpec).Values {
				text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, text)
			}
		}
	}
	return values
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Names prints how many names a developer must know to change the engine or the lifecycle safely:
// types, fields, methods, functions, and names used from package manager.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Stdout, "pkg/engine", "pkg/lifecycle"); err != nil {
		fmt.Fprintln(os.Stderr, "names:", err)
		os.Exit(1)
	}
}

// sizes contains the numbers of names in a package.
type sizes struct {
	types, fields, methods, functions, lines int
	manager                                  map[string]bool // names used from package manager
}

func run(out io.Writer, folders ...string) error {
	for _, folder := range folders {
		s, err := measure(folder)
		if err != nil {
			return err
		}
		total := s.types + s.fields + s.methods + s.functions + len(s.manager)
		fmt.Fprintf(out, "%s: %d names (%d types, %d fields, %d methods, %d functions, %d of manager) in %d lines\n",
			folder, total, s.types, s.fields, s.methods, s.functions, len(s.manager), s.lines)
	}
	return nil
}

// measure counts the names in a folder's files, except tests.
func measure(folder string) (sizes, error) {
	s := sizes{manager: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return s, err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return s, err
		}
		s.lines += set.Position(file.End()).Line
		ast.Inspect(file, s.count)
	}
	return s, nil
}

// count counts a node of a file and reports whether to visit its children.
func (s *sizes) count(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.TypeSpec:
		s.types++
	case *ast.StructType:
		s.fields += n.Fields.NumFields()
	case *ast.InterfaceType:
		s.methods += n.Methods.NumFields()
	case *ast.FuncDecl:
		if n.Recv == nil {
			s.functions++
		} else {
			s.methods++
		}
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && x.Name == "manager" {
			s.manager[n.Sel.Name] = true
		}
	}
	return true
}

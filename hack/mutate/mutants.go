// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
)

// mutant is a change of a file.
type mutant struct {
	pkg  pkg
	file string
	line int
	// The bytes from start to end are replaced by text.
	start, end int
	old, text  string
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d: %q becomes %q", filepath.Join(m.pkg.relative, filepath.Base(m.file)), m.line, shorten(m.old), shorten(m.text))
}

func shorten(text string) string {
	if len(text) > 60 {
		return text[:57] + "..."
	}
	return text
}

// apply returns the changed source.
func (m mutant) apply(source []byte) []byte {
	return append(append(append([]byte{}, source[:m.start]...), m.text...), source[m.end:]...)
}

// mutantsOf returns all mutants of the packages in source order.
func mutantsOf(packages []pkg) ([]mutant, error) {
	var all []mutant
	for _, p := range packages {
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			source, err := os.ReadFile(path) //nolint:gosec // A source of this module.
			if err != nil {
				return nil, fmt.Errorf("reading source: %w", err)
			}
			found, err := mutantsIn(path, source)
			if err != nil {
				return nil, err
			}
			for i := range found {
				found[i].pkg = p
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// operators maps operators to their mutations.
var operators = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

// mutantsIn returns the mutants of a file. Generated files have none.
func mutantsIn(path string, source []byte) ([]mutant, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing source: %w", err)
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	var found []mutant
	replace := func(from, to token.Pos, text func(old string) string) {
		position := files.Position(from)
		start, end := position.Offset, files.Position(to).Offset
		old := string(source[start:end])
		found = append(found, mutant{file: path, line: position.Line, start: start, end: end, old: old, text: text(old)})
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GenDecl:
			return n.Tok == token.VAR // constants, types, and imports are not logic
		case *ast.BinaryExpr:
			if other, ok := operators[n.Op]; ok {
				replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), func(string) string { return other.String() })
			}
		case *ast.IfStmt:
			negate(n.Cond, replace)
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				replace(n.OpPos, n.OpPos+1, func(string) string { return "" })
			}
		case *ast.BasicLit:
			if value, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
				replace(n.Pos(), n.End(), func(string) string { return strconv.Itoa(value + 1) })
			}
		case *ast.Ident:
			if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
				replace(n.Pos(), n.End(), func(string) string { return other })
			}
		case *ast.BlockStmt:
			dropStatements(n.List, replace)
		case *ast.CaseClause:
			dropStatements(n.Body, replace)
		}
		return true
	})
	return found, nil
}

// negate negates a condition that is not a comparison. Operators of comparisons are changed
// elsewhere.
func negate(condition ast.Expr, replace func(from, to token.Pos, text func(string) string)) {
	switch c := condition.(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr:
		return
	default:
		replace(c.Pos(), c.End(), func(old string) string { return "!(" + old + ")" })
	}
}

// dropStatements drops calls and assignments to existing variables, and ends loops that would
// continue.
func dropStatements(list []ast.Stmt, replace func(from, to token.Pos, text func(string) string)) {
	none := func(string) string { return "" }
	for _, statement := range list {
		switch s := statement.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt:
			replace(s.Pos(), s.End(), none)
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				replace(s.Pos(), s.End(), none)
			}
		case *ast.BranchStmt:
			if s.Tok == token.CONTINUE && s.Label == nil {
				replace(s.Pos(), s.End(), func(string) string { return "break" })
			}
		}
	}
}

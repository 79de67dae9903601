// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// maxNamesakes limits the number of packages that may export a type of the same name.
const maxNamesakes = 3

// namesakes lists the type names for which the limit does not apply, with the reason.
var namesakes = map[string]string{
	"Cluster":    "the cluster as its package knows it: a connection, a simulation, a row of a report",
	"Fleet":      "the fleet as its package knows it",
	"Node":       "a node as its package knows it; only clusterstate reads real ones",
	"Options":    "the options of the one thing that its package provides, as in webhook.Options",
	"Reconciler": "the reconciler of its package, as usual with controller-runtime",
	"Server":     "the server of its package",
	"Simulator":  "the simulator of its package",
	"World":      "the simulated world of its package, which implements scenario.World or extends simulation.World",
}

// TestTypes_have_few_namesakes checks that a search for a type leads to it: a name that several
// packages export must be qualified, unless it is a role that is always read with its package.
func TestTypes_have_few_namesakes(t *testing.T) {
	t.Parallel()
	packages := map[string][]string{}
	for path, file := range sources(t, "../pkg") {
		for _, name := range exportedTypes(file) {
			if folder := filepath.Dir(path); !slices.Contains(packages[name], folder) {
				packages[name] = append(packages[name], folder)
			}
		}
	}
	for name, folders := range packages {
		if len(folders) > maxNamesakes && namesakes[name] == "" {
			slices.Sort(folders)
			t.Errorf("%d packages export a type %s, want at most %d; qualify the name: %v", len(folders), name, maxNamesakes, folders)
		}
	}
	for name := range namesakes {
		if len(packages[name]) <= maxNamesakes {
			t.Errorf("%s is listed as an exception, but only %d packages export it", name, len(packages[name]))
		}
	}
}

// exportedTypes returns the names of the exported types of a file.
func exportedTypes(file *ast.File) []string {
	var names []string
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, spec := range group.Specs {
			if name := spec.(*ast.TypeSpec).Name; name.IsExported() {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

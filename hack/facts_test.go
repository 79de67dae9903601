// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rawFields matches strings that determine facts about a cluster but are invisible to the linter
// because no Go type contains them: annotations of the machine config operator, the name of the
// control plane pool, and fields and values of OLM's objects, which are read without Go types.
var rawFields = map[string]*regexp.Regexp{
	"annotations of the machine config operator": regexp.MustCompile(`^machineconfiguration\.openshift\.io/(currentConfig|desiredConfig|state|reason|desiredDrain|lastAppliedDrain|release-image-version)$|^machineconfiguration\.openshift\.io/$`),
	"the name of the pool of the control plane":  regexp.MustCompile(`^master$|^node-role\.kubernetes\.io/master$`),
	"fields of Subscriptions":                    regexp.MustCompile(`json:"(installPlanApproval|installPlanRef|currentCSV|installedCSV)"|^(installPlanApproval|installPlanRef|currentCSV|installedCSV|AtLatestKnown|ResolutionFailed|CatalogSourcesUnhealthy)$`),
	"fields of InstallPlans":                     regexp.MustCompile(`json:"(approval|approved|clusterServiceVersionNames|bundleLookups)"|^(approval|clusterServiceVersionNames|bundleLookups)$`),
}

// TestFacts_have_one_owner checks that only pkg/clusterstate reads raw fields: each fact about a
// cluster is determined in one place. Simulators write these fields.
func TestFacts_have_one_owner(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for _, folder := range []string{"../pkg", "../cmd"} {
		for path, literals := range literalsOf(t, folder) {
			path = strings.TrimPrefix(path, "../")
			writes := []string{"pkg/devcluster/", "pkg/openshiftsim/", "pkg/simulation/", "pkg/cli/clitest/"}
			if slices.ContainsFunc(writes, func(folder string) bool { return strings.HasPrefix(path, folder) }) {
				continue
			}
			for what, pattern := range rawFields {
				at := slices.IndexFunc(literals, pattern.MatchString)
				switch {
				case at >= 0 && strings.HasPrefix(path, "pkg/clusterstate/"):
					found[what]++
				case at >= 0:
					t.Errorf("%s reads %s (%s): ask pkg/clusterstate", path, what, literals[at])
				}
			}
		}
	}
	for what := range rawFields {
		if found[what] == 0 {
			t.Errorf("pkg/clusterstate does not read %s: the pattern matches nothing", what)
		}
	}
}

// literalsOf returns the string literals and tags in the sources below a folder, by file.
func literalsOf(t *testing.T, folder string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for path, file := range sources(t, folder) {
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
				if value, err := strconv.Unquote(literal.Value); err == nil {
					all[path] = append(all[path], value)
				}
			}
			return true
		})
	}
	return all
}

// sources returns the Go files below a folder by path, without test files.
func sources(t *testing.T, folder string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

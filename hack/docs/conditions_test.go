// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// conditionSections lists the sections of docs/reference/conditions.md, the folders with the code
// that sets the reasons of their kinds, and the strings in these folders that are not reasons of
// their conditions.
var conditionSections = []struct {
	title   string
	folders []string
	others  []string // reasons in the folders that belong to conditions of other sections, steps, slots, or insights
	shared  []string // reasons in the section that other folders set
}{
	{
		"UpgradeConfig of upgrade.managed.openshift.io, UpgradeJob, and ClusterUpgradeRun",
		[]string{"pkg/lifecycle"},
		[]string{"NotConfigured", "UpgradeContinues"},
		[]string{
			"InvalidVersion", "Downgrade", "InvalidPools", "NoPoolSelected", "InvalidHealthChecks", "Cancelled", "AlreadyAtVersion", "NoUpdate", "LateSuccess",
		},
	},
	{
		"UpgradeConfig of managedupgrade.appuio.io",
		[]string{"pkg/controllers/upgradeschedule"},
		nil,
		[]string{"Valid", "Scheduled", "Suspended", "NoUpdate", "UpdatesUnknown", "TooManyJobs", "JobRejected", "InvalidPools", "NoPoolSelected", "InvalidHealthChecks"},
	},
	{
		"UpgradeJobHook",
		[]string{"pkg/controllers/upgradejobhook", "pkg/steps/hooks"},
		[]string{"EnvironmentTooLarge", "HookSucceeded", "HooksRunning"},
		nil,
	},
	{"UpgradeSuspensionWindow", []string{"pkg/controllers/suspensionwindow"}, nil, nil},
	{"ClusterVersion of managedupgrade.appuio.io", []string{"pkg/controllers/clusterversion"}, nil, nil},
	{"UpdateInformer", []string{"pkg/controllers/updateinformer", "api/config/v1beta1"}, nil, []string{"TLSFailed"}},
	{"UpdateStatus and the sections of an UpdatePlan", []string{"api/config/v1beta1"}, nil, nil},
	{"UpdatePlan", []string{"pkg/updateplan", "api/config/v1beta1"}, nil, nil},
	{
		"ManagedClustersUpgrade",
		[]string{"api/cluster/v1beta1", "pkg/fleet/admission"},
		[]string{ // obstacles of a dry run
			"NoFeedback", "VersionUnknown", "UpgradeInProgress", "PreflightRequested", "InvalidClusterVersion", "NotUpgradeable", "NotOffered",
			"OfferUnknown", "ConditionalRisks",
		},
		nil,
	},
}

var conditionRow = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| ((?:True|False|Unknown)(?:, (?:True|False|Unknown))*) \\| (.+) \\|$")

// TestConditions compares the tables of conditions, statuses, and reasons with the constants in the
// code: the tables list every condition of every API, the code of a kind sets every reason in its
// table, and every reason in the code is in the table of a kind that it sets or listed here as
// something else.
func TestConditions(t *testing.T) {
	t.Parallel()
	page := readPage(t, "reference", "conditions.md")
	conditions, everywhere := map[string]bool{}, map[string]bool{}
	inFolder := map[string]map[string]bool{} // reasons in the sections about each folder
	for _, section := range conditionSections {
		_, text, found := strings.Cut(page, "\n## "+section.title+"\n")
		if !found {
			t.Fatalf("the page has no section %s", section.title)
		}
		text, _, _ = strings.Cut(text, "\n## ")
		code := map[string]bool{}
		for _, folder := range section.folders {
			collectReasons(t, filepath.Join("../..", folder), code)
		}
		for _, reason := range section.shared {
			code[reason] = true
		}
		seen := map[string]bool{}
		for _, row := range conditionRow.FindAllStringSubmatch(text, -1) {
			conditions[row[1]] = true
			for status := range strings.SplitSeq(row[2], ", ") {
				if key := row[1] + " " + status; seen[key] {
					t.Errorf("section %s has two rows about %s", section.title, key)
				} else {
					seen[key] = true
				}
			}
			reasons := map[string]bool{}
			addNames(reasons, row[3])
			for _, reason := range slices.Sorted(maps.Keys(reasons)) {
				everywhere[reason] = true
				if !code[reason] {
					t.Errorf("section %s has reason %s of condition %s, which the code does not set", section.title, reason, row[1])
				}
			}
		}
		for _, folder := range section.folders {
			if inFolder[folder] == nil {
				inFolder[folder] = map[string]bool{}
			}
			addNames(inFolder[folder], text)
			for _, reason := range section.others {
				inFolder[folder][reason] = true
			}
		}
	}
	addNames(inFolder["api/config/v1beta1"], readPage(t, "concepts", "update-troubleshooting.md")) // insights about informers
	for folder, documented := range inFolder {
		code := map[string]bool{}
		collectReasons(t, filepath.Join("../..", folder), code)
		for _, reason := range slices.Sorted(maps.Keys(code)) {
			if !documented[reason] {
				t.Errorf("%s sets reason %s, which no section about it has", folder, reason)
			}
		}
	}
	for _, name := range conditionTypes(t) {
		if !conditions[name] && !slices.Contains([]string{"Ready", "Reconciling", "Stalled"}, name) {
			t.Errorf("the page lacks condition %s", name)
		}
		delete(conditions, name)
	}
	for name := range conditions {
		t.Errorf("the page has condition %s, which no API has", name)
	}
	if len(everywhere) < 90 {
		t.Errorf("the page has %d reasons only", len(everywhere))
	}
}

// conditionTypes returns the types of conditions declared by the APIs.
func conditionTypes(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../api/*/*.go")
	more, moreErr := filepath.Glob("../../api/*/*/*.go")
	if err != nil || moreErr != nil {
		t.Fatal(err, moreErr)
	}
	types := map[string]bool{}
	for _, file := range append(files, more...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if strings.HasPrefix(name.Name, "Condition") && i < len(spec.Values) {
					for _, value := range literal(spec.Values[i]) {
						types[value] = true
					}
				}
			}
			return true
		})
	}
	if len(types) < 20 {
		t.Fatalf("the APIs have %d conditions only: this test does not recognize them", len(types))
	}
	return slices.Sorted(maps.Keys(types))
}

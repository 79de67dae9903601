// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The type of every API field is documented on the page of its group or in the Kubernetes
// documentation.
func TestAPIReferenceHasEachType(t *testing.T) {
	t.Parallel()
	for file, kinds := range map[string][]string{
		"api.md":                   {"UpgradeConfig", "Record", "StepCondition"},
		"scheduled-maintenance.md": {"ClusterVersion", "UpgradeConfig", "UpgradeJob", "UpgradeJobHook", "UpgradeSuspensionWindow", "Duration", "Record", "StepCondition"},
		"fleets.md":                {"ManagedClustersUpgrade", "UpgradeStrategy", "ClustersSummary", "Cause"},
		"fleet-runs.md":            {"ClusterUpgradeRun", "Record", "Outcome"},
		"update-status.md":         {"UpdateInformer", "UpdatePlan", "UpdateStatus", "Insight", "Assessment"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile("../../docs/reference/" + file)
			if err != nil {
				t.Fatal(err)
			}
			checkTypes(t, string(content), kinds)
		})
	}
}

func checkTypes(t *testing.T, page string, kinds []string) {
	t.Helper()
	for _, kind := range kinds {
		if !strings.Contains(page, "\n#### "+kind+"\n") {
			t.Errorf("the page has no section %s", kind)
		}
	}
	for _, field := range regexp.MustCompile("(?m)^\\| `(\\w+)` _([^_]*)_").FindAllStringSubmatch(page, -1) {
		link := regexp.MustCompile(`\[\w+\]\(#(\w+)\)`).FindStringSubmatch(field[2])
		switch {
		case link != nil && !regexp.MustCompile("(?mi)^#### "+link[1]+"$").MatchString(page):
			t.Errorf("field %s: the page has no section %s", field[1], link[1])
		case link == nil && !regexp.MustCompile(`\]\((https://|fleets.md#)`).MatchString(field[2]) && regexp.MustCompile(`\b[A-Z]`).MatchString(field[2]):
			t.Errorf("field %s: type %q is not a link; add it to hack/crd-ref-docs/config.yaml", field[1], field[2])
		}
	}
}

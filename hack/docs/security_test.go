// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestSecurity compares the permissions in docs/security.md with the Roles of the Update Status
// Controller and the hub. A test in test/e2e compares the permissions of the operator.
func TestSecurity(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for folder, title := range map[string]string{"update-status": "### Update Status Controller", "hub": "### Hub", "action-replica-sets": "### Hub, with the component `deploy/action-replica-sets`"} {
		_, section, found := strings.Cut(string(content), title+"\n")
		if !found {
			t.Fatalf("the page has no section %s", title)
		}
		section, _, _ = strings.Cut(section, "\n### ")
		listed := map[string]bool{}
		for line := range strings.Lines(section) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			if len(cells) == 4 && strings.Contains(cells[0], "`") && strings.TrimSpace(cells[3]) != "" {
				listed[strings.TrimSpace(strings.Join(cells[:3], " | "))] = true
			}
		}
		for _, rule := range rulesOf(t, folder) {
			if !listed[rule] {
				t.Errorf("section %s lacks a row with a reason for: | %s |", title, rule)
			}
			delete(listed, rule)
		}
		for rule := range listed {
			t.Errorf("section %s has a rule that no Role grants: | %s |", title, rule)
		}
	}
}

// rulesOf returns the rules in a program's Roles in the format of the page.
func rulesOf(t *testing.T, folder string) []string {
	t.Helper()
	content, err := os.ReadFile("../../deploy/" + folder + "/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var role rbacv1.Role // a ClusterRole has the same fields
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			group, where := "", "the cluster"
			if rule.APIGroups[0] != "" {
				group = "." + rule.APIGroups[0]
			}
			if role.Namespace != "" {
				where = "`" + role.Namespace + "`"
			}
			if len(rule.ResourceNames) > 0 {
				where += ", name `" + strings.Join(rule.ResourceNames, "`, `") + "`"
			}
			resources := "`" + strings.Join(rule.Resources, group+"`, `") + group + "`"
			rules = append(rules, fmt.Sprintf("%s | %s | %s", resources, where, strings.Join(rule.Verbs, ", ")))
		}
	}
	return rules
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// permissionsTable contains the reason for each permission of the operator. A test in test/e2e
// compares it with the Roles and with the operator's requests.
const permissionsTable = "test/e2e/testdata/permissions.yaml"

// permissionRow is a row of the table.
type permissionRow struct {
	Namespace string   `json:"namespace"`
	Group     string   `json:"group"`
	Resource  string   `json:"resource"`
	Names     []string `json:"names"`
	Verbs     map[string]struct {
		For string `json:"for"`
	} `json:"verbs"`
}

// permissions returns the page about the operator's permissions.
func permissions() (string, error) {
	content, err := os.ReadFile(permissionsTable)
	if err != nil {
		return "", err
	}
	var rows []permissionRow
	if err := yaml.Unmarshal(content, &rows); err != nil {
		return "", fmt.Errorf("%s: %w", permissionsTable, err)
	}
	var page strings.Builder
	page.WriteString("# Permissions of the operator\n\nEach verb of its Roles, and what needs it. [Admission\n" +
		"policies](../../deploy/operator/admission_policies.yaml) limit what RBAC cannot: fields and names.\n\n" +
		"| resource | where | verb | reason |\n| --- | --- | --- | --- |\n")
	for _, row := range rows {
		resource, where := row.Resource, "the cluster"
		if row.Group != "" {
			resource += "." + row.Group
		}
		if row.Namespace != "" {
			where = "`" + row.Namespace + "`"
		}
		if len(row.Names) > 0 {
			where += ", name `" + strings.Join(row.Names, "`, `") + "`"
		}
		var verbs []string
		for verb := range row.Verbs {
			verbs = append(verbs, verb)
		}
		slices.Sort(verbs)
		for _, verb := range verbs {
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", resource, where, verb, row.Verbs[verb].For)
		}
	}
	return page.String(), nil
}

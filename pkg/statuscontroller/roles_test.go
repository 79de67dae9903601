// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestRoles_of_users lists every permission of the user roles, so it fails if one is added. Tests in
// pkg/updateplan check the effect of the roles with an API server.
func TestRoles_of_users(t *testing.T) {
	t.Parallel()
	reads := func(more ...string) []string {
		all := slices.Clone(more)
		for _, kind := range []string{"updateinformers", "updateplans", "updatestatuses"} {
			for _, verb := range []string{"get", "list", "watch"} {
				all = append(all, verb+" "+kind+".config.openshift.io")
			}
		}
		all = append(all, "get clusterversions.config.openshift.io version", "get leases.coordination.k8s.io update-status-controller-leader")
		slices.Sort(all)
		return all
	}
	plans := []string{"create updateplans.config.openshift.io", "delete updateplans.config.openshift.io", "patch updateplans.config.openshift.io", "patch updatestatuses.config.openshift.io cluster"}
	want := map[string][]string{
		"update-viewer":   reads("aggregated to view"),
		"update-planner":  reads(append(plans, "aggregated to edit")...),
		"update-approver": reads(append(plans, "accept updateplans/risks.config.openshift.io")...),
		"update-bypasser": {"bypass updateplans/gate.config.openshift.io"},
	}
	got := map[string][]string{}
	for _, file := range []string{"roles.yaml", "start-gate/roles.yaml"} {
		for _, role := range clusterRoles(t, filepath.Join("../../deploy/update-status", file)) {
			got[role.Name] = permissions(&role)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
}

func clusterRoles(t *testing.T, file string) []rbacv1.ClusterRole {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var roles []rbacv1.ClusterRole
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(document, &role); err != nil || role.Kind != "ClusterRole" {
			t.Fatalf("%s has a %s, want a ClusterRole: %v", file, role.Kind, err)
		}
		roles = append(roles, role)
	}
	return roles
}

// permissions returns the permissions of a role and the roles that it is aggregated to, sorted.
func permissions(role *rbacv1.ClusterRole) []string {
	var all []string
	for label := range maps.Keys(role.Labels) {
		if to, is := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); is {
			all = append(all, "aggregated to "+to)
		}
	}
	for _, rule := range role.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				all = append(all, verb+" "+url)
			}
			for _, resource := range rule.Resources {
				for _, group := range rule.APIGroups {
					for _, name := range names {
						all = append(all, strings.TrimSpace(verb+" "+resource+"."+group+" "+name))
					}
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The hint names a ClusterRole that grants the missing permission.
func TestHint_of_a_forbidden_request(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		group, resource, verb string
		want                  string // the ClusterRole, or empty if none is named
	}{
		"read an UpgradeConfig":         {"upgrade.managed.openshift.io", "upgradeconfigs", "get", "managed-upgrade-viewer"},
		"list UpgradeJobs":              {"managedupgrade.appuio.io", "upgradejobs", "list", "managed-upgrade-viewer"},
		"change an UpgradeConfig":       {"upgrade.managed.openshift.io", "upgradeconfigs", "patch", "managed-upgrade-editor"},
		"delete an UpgradeJob":          {"managedupgrade.appuio.io", "upgradejobs", "delete", "managed-upgrade-editor"},
		"read an UpdateStatus":          {"config.openshift.io", "updatestatuses", "get", "update-viewer"},
		"change a ClusterVersion":       {"config.openshift.io", "clusterversions", "patch", ""},
		"read a ClusterVersion":         {"config.openshift.io", "clusterversions", "get", "update-viewer"},
		"list machine config pools":     {"machineconfiguration.openshift.io", "machineconfigpools", "list", ""},
		"read a ConfigMap":              {"", "configmaps", "get", ""},
		"acknowledge an insight":        {"config.openshift.io", "updatestatuses", "patch", "update-planner"},
		"create an UpdatePlan":          {"config.openshift.io", "updateplans", "create", "update-planner"},
		"read a ClusterUpgradeRun":      {"upgrade.managed.openshift.io", "clusterupgraderuns", "list", "fleet-viewer"},
		"read the upgrade of a fleet":   {"cluster.open-cluster-management.io", "managedclustersupgrades", "get", "fleet-viewer"},
		"change the upgrade of a fleet": {"cluster.open-cluster-management.io", "managedclustersupgrades", "patch", "fleet-editor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cause := fmt.Errorf("User \"ada\" cannot %s resource %q in API group %q in the namespace %q", tc.verb, tc.resource, tc.group, "managed-upgrade-operator")
			err := apierrors.NewForbidden(schema.GroupResource{Group: tc.group, Resource: tc.resource}, "cluster", cause)
			hint := New(Environment{Program: "/oc-update"}).hint(fmt.Errorf("reading it: %w", err))
			_, role, _ := strings.Cut(hint, "ClusterRole ")
			role, _, _ = strings.Cut(role, ",")
			if role != tc.want || hint == "" {
				t.Errorf("hint %q, want ClusterRole %q", hint, tc.want)
			}
		})
	}
}

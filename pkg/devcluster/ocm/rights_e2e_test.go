// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package ocm_test

import (
	"path/filepath"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm"
)

// checkAgentRights checks what the agent of a cluster may write on the hub with the credentials and
// roles that it got from Open Cluster Management's registration controller. docs/security.md
// describes the consequences.
func checkAgentRights(t *testing.T, f *ocm.Fleet, spoke *ocm.Spoke) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(spoke.Path("hub-kubeconfig"), "kubeconfig"))
	must(t, err)
	agent, err := client.New(config, client.Options{})
	must(t, err)
	const ocmGroup, work, ours, upgrades = "cluster.open-cluster-management.io", "work.open-cluster-management.io", "upgrade.managed.openshift.io", "cluster.open-cluster-management.io"
	own, other := spoke.Name, f.Spokes[1].Name
	for what, tc := range map[string]struct {
		verb, group, resource, subresource, namespace, name string
		want                                                bool
	}{
		"claims of its ManagedCluster":              {verb: "patch", group: ocmGroup, resource: "managedclusters", subresource: "status", name: own, want: true},
		"labels of its ManagedCluster":              {verb: "update", group: ocmGroup, resource: "managedclusters", name: own, want: true},
		"Leases in its namespace":                   {verb: "update", group: "coordination.k8s.io", resource: "leases", namespace: own, name: "cluster-upgrade", want: true},
		"the content of its ManifestWorks":          {verb: "update", group: work, resource: "manifestworks", namespace: own, name: "a", want: true},
		"the status of its ManifestWorks":           {verb: "patch", group: work, resource: "manifestworks", subresource: "status", namespace: own, name: "a", want: true},
		"ManifestWorks of its own":                  {verb: "create", group: work, resource: "manifestworks", namespace: own},
		"ManifestWorks of another cluster":          {verb: "update", group: work, resource: "manifestworks", namespace: other, name: "a"},
		"another ManagedCluster":                    {verb: "update", group: ocmGroup, resource: "managedclusters", name: other},
		"its run":                                   {verb: "patch", group: ours, resource: "clusterupgraderuns", namespace: own, name: "a"},
		"the status of its run":                     {verb: "patch", group: ours, resource: "clusterupgraderuns", subresource: "status", namespace: own, name: "a"},
		"another run of its cluster":                {verb: "create", group: ours, resource: "clusterupgraderuns", namespace: own},
		"upgrades":                                  {verb: "create", group: upgrades, resource: "managedclustersupgrades", namespace: own},
		"decisions of Placements in its namespace":  {verb: "patch", group: ocmGroup, resource: "placementdecisions", subresource: "status", namespace: own, name: "a"},
		"the lock of its cluster":                   {verb: "update", group: "coordination.k8s.io", resource: "leases", namespace: ocm.HubNamespace, name: "cluster-upgrade-" + own},
		"a lock of its cluster that does not exist": {verb: "create", group: "coordination.k8s.io", resource: "leases", namespace: ocm.HubNamespace},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{}
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb: tc.verb, Group: tc.group, Resource: tc.resource, Subresource: tc.subresource, Namespace: tc.namespace, Name: tc.name,
		}
		must(t, agent.Create(t.Context(), review))
		if review.Status.Allowed != tc.want {
			t.Errorf("may the agent of a cluster write %s: %t, want %t", what, review.Status.Allowed, tc.want)
		}
	}
}

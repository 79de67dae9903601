// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package ocm_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

// unused lists the permissions of the hub that TestRollout does not use, with reasons. Permissions
// to list watched kinds are used only if the API server cannot stream lists.
var unused = map[string]string{
	"get namespaces.":                                                              "only for the webhook, which names the hub by the UID of kube-system",
	"get proxies.config.openshift.io":                                              "only for the webhook, which may be behind the proxy of the cluster",
	"execute-as manifestworks.work.open-cluster-management.io":                     "a webhook of Open Cluster Management checks it",
	"delete placements.cluster.open-cluster-management.io":                         "the clusterSelector is not removed",
	"get placements.cluster.open-cluster-management.io":                            "the Placement is not created while the cache is behind",
	"patch placements.cluster.open-cluster-management.io":                          "the clusterSelector does not change",
	"get managedclustersupgrades.cluster.open-cluster-management.io":               "the cache is not behind for long",
	"update managedclustersupgrades/finalizers.cluster.open-cluster-management.io": "an admission plugin of OpenShift checks it",
	"update leases.coordination.k8s.io":                                            "there is no leader election",
	"create subjectaccessreviews.authorization.k8s.io":                             "the metrics are not served",
	"create tokenreviews.authentication.k8s.io":                                    "the metrics are not served",
}

func TestUnused_permissions_are_granted(t *testing.T) {
	t.Parallel()
	granted := grantedBy(t, "hub")
	for permission := range unused {
		if !slices.Contains(granted, permission) {
			t.Errorf("%s is excused, and is not granted", permission)
		}
	}
}

// checkPermissions compares the requests of the hub with the permissions in a folder of deploy. No
// request may be denied, and every permission must be used.
func (r *rollout) checkPermissions(t *testing.T, folder string) {
	t.Helper()
	used := map[string]bool{}
	for _, q := range r.requests(time.Time{}) {
		if q.Response.Code == http.StatusForbidden {
			t.Errorf("a permission is missing: %s %s", q.Verb, q.URI)
		}
		resource := q.Object.Resource
		if q.Object.Subresource != "" {
			resource += "/" + q.Object.Subresource
		}
		used[q.Verb+" "+resource+"."+q.Object.Group] = true
	}
	var surplus []string
	for _, permission := range grantedBy(t, folder) {
		if _, excused := unused[permission]; !used[permission] && !excused {
			surplus = append(surplus, permission)
		}
	}
	if len(surplus) > 0 {
		t.Errorf("permissions that no request has used:\n%s", strings.Join(surplus, "\n"))
	}
}

// grantedBy returns the verbs on resources that the generated Roles in a folder of deploy grant.
func grantedBy(t *testing.T, folder string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/" + folder + "/role.yaml")
	must(t, err)
	objects, err := manifests.Decode(text)
	must(t, err)
	var granted []string
	for _, object := range objects {
		var role rbacv1.ClusterRole
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if verb == "list" && slices.Contains(rule.Verbs, "watch") {
						continue
					}
					granted = append(granted, verb+" "+resource+"."+rule.APIGroups[0])
				}
			}
		}
	}
	slices.Sort(granted)
	return slices.Compact(granted)
}

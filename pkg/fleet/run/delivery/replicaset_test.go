// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// A set does not deliver what its labels cannot name, and not the ClusterVersion.
func TestByReplicaSet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		namespace string
		manifest  string
		want      bool
	}{
		"a Job":                         {namespace: "fleet", manifest: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"}}`, want: true},
		"the longest namespace":         {namespace: strings.Repeat("n", 45), manifest: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"}}`, want: true},
		"a namespace that is too long":  {namespace: strings.Repeat("n", 46), manifest: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"}}`},
		"the ClusterVersion is applied": {namespace: "fleet", manifest: `{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upgrade := testUpgrade(withActions, func(s *fleetv1beta1.ManagedClustersUpgradeSpec) {
				s.PostUpgradeAction.ManifestWork.Workload.Manifests = []workv1.Manifest{raw(tc.manifest)}
			})
			upgrade.Namespace = tc.namespace
			work, err := ActionWork(testRun(), upgrade, PostUpgrade)
			if err != nil {
				t.Fatal(err)
			}
			got := ByReplicaSet(upgrade, work)
			if IsOfReplicaSet(got) != tc.want || IsOfReplicaSet(work) {
				t.Errorf("by a set: %t, want %t", IsOfReplicaSet(got), tc.want)
			}
			if errs := validation.IsValidLabelValue(got.Labels[replicaSetLabel]); len(errs) > 0 {
				t.Error(errs)
			}
			if name := ActionDecisionName(work.Name, strings.Repeat("c", 63)); len(name) > validation.DNS1123SubdomainMaxLength {
				t.Errorf("the name %s is too long", name)
			}
		})
	}
}

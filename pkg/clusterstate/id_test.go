// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestGetClusterID(t *testing.T) {
	t.Parallel()
	version := func(id configv1.ClusterID) *configv1.ClusterVersion {
		return &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: id}}
	}
	for name, tc := range map[string]struct {
		objects     []client.Object
		want, fails string
	}{
		"ID set":            {objects: []client.Object{version("3b8a0a4e")}, want: "3b8a0a4e"},
		"ID unset":          {objects: []client.Object{version("")}, fails: "the cluster version has no spec.clusterID"},
		"no ClusterVersion": {fails: `getting the cluster version: clusterversions.config.openshift.io "version" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := clusterstate.GetClusterID(t.Context(), simulation.NewFakeClient(t, tc.objects...))
			if got != tc.want || (err == nil) != (tc.fails == "") || err != nil && err.Error() != tc.fails {
				t.Errorf("got %q, %v, want %q, %s", got, err, tc.want, tc.fails)
			}
		})
	}
}

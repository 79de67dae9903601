// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// statusFacts holds the facts that only the update status reads.
type statusFacts struct {
	InRelease      bool
	Image          string
	MaxUnavailable *intstr.IntOrString
	Certificates   int
	Updating       clusterstate.Condition
	Network        clusterstate.Condition
	Desired        int32
}

func TestStripForStatus_keeps_what_the_update_status_reads(t *testing.T) {
	t.Parallel()
	noon := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	long := strings.Repeat("x", 100<<10)
	cases := map[string]struct {
		object client.Object
		strip  func(any) (any, error)
		facts  func(any) statusFacts
		want   statusFacts
	}{
		"an operator": {
			&configv1.ClusterOperator{
				ObjectMeta: metav1.ObjectMeta{Name: "dns", Annotations: map[string]string{"include.release.openshift.io/single-node-developer": long, "exclude.release.openshift.io/x": "true", "other": long}},
				Status: configv1.ClusterOperatorStatus{Versions: []configv1.OperandVersion{
					{Name: "operator", Version: "4.20.6"}, {Name: "operator-image", Version: "quay.io/x@sha256:1"}, {Name: "other", Version: long},
				}},
			},
			clusterstate.StripClusterOperatorForStatus,
			func(o any) statusFacts {
				operator := clusterstate.ClusterOperatorOf(o.(*configv1.ClusterOperator))
				return statusFacts{InRelease: operator.InRelease, Image: operator.Image}
			},
			statusFacts{InRelease: true, Image: "quay.io/x@sha256:1"},
		},
		"a pool": {
			&mcfgv1.MachineConfigPool{
				ObjectMeta: metav1.ObjectMeta{Name: "worker", Annotations: map[string]string{"other": long}},
				Spec:       mcfgv1.MachineConfigPoolSpec{MaxUnavailable: new(intstr.FromString("10%"))},
				Status: mcfgv1.MachineConfigPoolStatus{
					Conditions:  []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdating, Status: corev1.ConditionTrue, LastTransitionTime: noon, Message: long}, {Type: "Other", Message: long}},
					CertExpirys: []mcfgv1.CertExpiry{{Bundle: "b", Subject: long, Expiry: &noon}, {Bundle: "without a time"}},
				},
			},
			clusterstate.StripPoolForStatus,
			func(o any) statusFacts {
				pool := clusterstate.NewPool(o.(*mcfgv1.MachineConfigPool))
				pool.Updating.Message = "" // its length is limited
				return statusFacts{MaxUnavailable: pool.MaxUnavailable, Certificates: len(pool.Certificates), Updating: pool.Updating}
			},
			statusFacts{MaxUnavailable: new(intstr.FromString("10%")), Certificates: 1, Updating: clusterstate.Condition{Status: "True", Since: noon.Time}},
		},
		"a pool of which one machine at a time is unavailable": {
			&mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}},
			clusterstate.StripPoolForStatus,
			func(o any) statusFacts {
				return statusFacts{MaxUnavailable: clusterstate.NewPool(o.(*mcfgv1.MachineConfigPool)).MaxUnavailable}
			},
			statusFacts{},
		},
		"a node": {
			&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "worker-0"},
				Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
					{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue, LastTransitionTime: noon, Reason: "R"}, {Type: "Other", Message: long},
				}},
			},
			clusterstate.StripNodeForStatus,
			func(o any) statusFacts {
				node := clusterstate.NodeOf(o.(*corev1.Node))
				return statusFacts{Network: node.Condition(corev1.NodeNetworkUnavailable)}
			},
			statusFacts{Network: clusterstate.Condition{Status: "True", Since: noon.Time, Reason: "R"}},
		},
		"a budget": {
			&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "api", Annotations: map[string]string{"other": long}}, Status: policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 2}},
			clusterstate.StripPDBForStatus,
			func(o any) statusFacts {
				return statusFacts{Desired: clusterstate.PDBOf(o.(*policyv1.PodDisruptionBudget)).Desired}
			},
			statusFacts{Desired: 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var object any = tc.object
			for _, pass := range []string{"first", "second"} { // applying a transform twice must not change the result
				stripped, err := tc.strip(object)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, tc.facts(stripped)); diff != "" {
					t.Errorf("facts after the %s pass (-want +got):\n%s", pass, diff)
				}
				object = stripped
			}
			if size := len(fmt.Sprintf("%v", object)); size > 16<<10 {
				t.Errorf("%d bytes are cached", size)
			}
			if other, err := tc.strip("another object"); err != nil || other != "another object" {
				t.Errorf("another object became %v, %v", other, err)
			}
		})
	}
}

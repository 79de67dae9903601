// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// A gate applies only to its minor version, unless its name or the release is malformed.
func TestAdminGate_applies(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		minor, release string
		want           bool
	}{
		{"4.13", "4.13.9", true},
		{"4.13", "4.14.0", false},
		{"4.13", "5.13.0", false},
		{"", "4.14.0", true},
		{"4.13", "nightly", true},
		{"4.13", "", true},
	} {
		if got := (clusterstate.AdminGate{Minor: tc.minor}).Applies(tc.release); got != tc.want {
			t.Errorf("gate of %q, release %q: got %t", tc.minor, tc.release, got)
		}
	}
}

func TestListAdminGates(t *testing.T) {
	t.Parallel()
	gates := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config-managed", Name: "admin-gates"}, Data: map[string]string{"ack-4.13-b": "b\nb", "ack-4.13-a": "a", "ack-4.13--a": "", "ack-3.11-a": ""}}
	acks := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-config", Name: "admin-acks"}, Data: map[string]string{"ack-4.13-b": "true", "ack-4.13-a": "True"}}
	want := []clusterstate.AdminGate{{Name: "ack-3.11-a"}, {Name: "ack-4.13--a"}, {Name: "ack-4.13-a", Minor: "4.13", Description: "a"}, {Name: "ack-4.13-b", Minor: "4.13", Description: "b b", Acked: true}}
	got, err := clusterstate.ListAdminGates(t.Context(), simulation.NewFakeClient(t, gates, acks))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	want[3].Acked = false
	got, err = clusterstate.ListAdminGates(t.Context(), simulation.NewFakeClient(t, gates))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("without acknowledgments: %v (-want +got):\n%s", err, diff)
	}
	if none, err := clusterstate.ListAdminGates(t.Context(), simulation.NewFakeClient(t, acks)); none != nil || err != nil {
		t.Errorf("without gates: %v, %v", none, err)
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package ocm_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
)

// availability returns the condition Available of a cluster and its taints.
func availability(cluster *clusterv1.ManagedCluster) []string {
	var view []string
	if c := apimeta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable); c != nil {
		view = append(view, fmt.Sprintf("%s %s", c.Status, c.Reason))
	}
	for _, taint := range cluster.Spec.Taints {
		view = append(view, fmt.Sprintf("%s:%s", taint.Key, taint.Effect)) // the time is set by a webhook, which no dev cluster has
	}
	return view
}

// TestRegistration_as_simulated compares what the registration agent and the hub report about a cluster with the
// simulation: while its agent renews its Lease, while its API server does not answer, and after its Lease has expired.
func TestRegistration_as_simulated(t *testing.T) { //nolint:paralleltest // two control planes take most of the machine
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	f := startFleet(ctx, t, ocm.Spec{Real: true, Clusters: 1, Interval: time.Second})
	actual := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Spokes[0].Name}}
	must(t, f.Client.Patch(ctx, actual, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"leaseDurationSeconds": 3}}`))))
	simulated := actual.DeepCopy()
	now := time.Now()
	compare := func(step string, healthy bool, since time.Duration) {
		t.Helper()
		spoke.SetAvailability(simulated, healthy, now.Add(-since), now)
		want, got := availability(simulated), []string(nil)
		if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, settle, true, func(context.Context) (bool, error) {
			must(t, f.Client.Get(ctx, client.ObjectKeyFromObject(actual), actual))
			got = availability(actual)
			return slices.Equal(want, got), nil
		}); err != nil {
			t.Fatalf("%s (-simulated +real):\n%s", step, cmp.Diff(want, got))
		}
	}
	grace := spoke.LeaseGrace(actual)
	compare("available", true, 0)

	must(t, f.Spokes[0].StopRegistration())
	before := actual.DeepCopy()
	apimeta.SetStatusCondition(&actual.Status.Conditions, metav1.Condition{ // as the agent would report
		Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionFalse, Reason: "ManagedClusterKubeAPIServerUnavailable", Message: "status code: 500",
	})
	must(t, f.Client.Status().Patch(ctx, actual, client.MergeFrom(before)))
	compare("its API server does not answer", false, grace-time.Second)

	compare("its Lease has expired", false, grace)
	must(t, f.Spokes[0].StartRegistration(ctx, f))
	compare("its agent is back", true, 0)
}

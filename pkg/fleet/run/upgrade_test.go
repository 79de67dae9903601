// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	fleetrun "github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
)

// hub is a client of a hub with one accepted cluster and one work.
type hub struct {
	client.Client
	work *workv1.ManifestWork
}

func (h hub) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch o := object.(type) {
	case *workv1.ManifestWork:
		h.work.DeepCopyInto(o)
	case *clusterv1.ManagedCluster:
		o.Spec.HubAcceptsClient = true
	case *fleetv1beta1.ManagedClustersUpgrade:
		o.UID = "created-again"
	}
	return nil
}

// An upgrade deleted and created again under its name is another one.
func TestUpgrade_is_found_by_its_UID(t *testing.T) {
	t.Parallel()
	run := &fleetv1alpha1.ClusterUpgradeRun{}
	for uid, want := range map[string]error{"created-again": nil, "deleted": fleetrun.ErrNoUpgrade} {
		run.Spec.ManagedClustersUpgrade = fleetv1alpha1.UpgradeReference{Namespace: "fleet", Name: "stores", UID: uid}
		if _, err := fleetrun.Upgrade(t.Context(), hub{}, run); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", uid, err, want)
		}
	}
}

// Messages alone are not saved while a step waits: why the agent cannot apply a work needs a reason.
func TestWaiting_for_an_agent_that_cannot_apply(t *testing.T) {
	t.Parallel()
	run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}
	run.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6"}
	request, err := delivery.UpgradeWork(run, &fleetv1beta1.ManagedClustersUpgrade{}, delivery.FormApply, time.Time{}, clusterstate.Release{})
	if err != nil {
		t.Fatal(err)
	}
	preflight, err := delivery.PreflightWork(run)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		work *workv1.ManifestWork
		step func(*fleetrun.Cluster, context.Context, engine.Run) (engine.Result, error)
	}{
		"request": {request, func(c *fleetrun.Cluster, ctx context.Context, run engine.Run) (engine.Result, error) {
			_, answer, err := c.ObserveDelivery(ctx, run)
			return answer, err
		}},
		"preflight": {preflight, (*fleetrun.Cluster).NotBeyondTarget},
	} {
		expect := func(reason, message string) {
			t.Helper()
			cluster := fleetrun.Cluster{Client: hub{work: tc.work}, Run: run}
			got, err := tc.step(&cluster, t.Context(), engine.Run{})
			if err != nil || got.Reason() != reason || !strings.Contains(got.Message(), message) {
				t.Errorf("%s: got %q: %q, %v, want %q: %q", name, got.Reason(), got.Message(), err, reason, message)
			}
		}
		expect("Delivered", "waiting until the agent applies")
		tc.work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
			ResourceMeta: workv1.ManifestResourceMeta{Group: "config.openshift.io", Kind: "ClusterVersion", Name: "version"},
			Conditions:   []metav1.Condition{{Type: workv1.ManifestApplied, Status: metav1.ConditionFalse, Message: "forbidden"}},
		}}
		expect("ApplyFailing", "forbidden")
	}
}

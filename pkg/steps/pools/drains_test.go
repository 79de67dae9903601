// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

// shopPods is an API server in which the pod shop/api-1 is on every node.
type shopPods struct{ client.Reader }

func (shopPods) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "api-1", Labels: map[string]string{"app": "api"}}
	switch page := list.(type) {
	case *metav1.PartialObjectMetadataList:
		page.Items = []metav1.PartialObjectMetadata{{ObjectMeta: meta}}
	case *corev1.PodList:
		page.Items = []corev1.Pod{{ObjectMeta: meta}}
	default:
		return errors.New("only pods can be listed")
	}
	return nil
}

func TestWaitUntilUpdated_with_drains(t *testing.T) {
	t.Parallel()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}},
	}
	const held = "pod shop/api-1 is held by PodDisruptionBudget shop/api, forced at 2026-03-01T14:00:00Z"
	working := machineConfigState("Working", "")
	for name, tc := range map[string]struct {
		after  time.Duration
		change []func(*corev1.Node)
		want   engine.Result
	}{
		"drain of nine minutes": {
			9 * time.Minute,
			[]func(*corev1.Node){working, draining},
			engine.WaitFor(time.Minute, "PoolsUpdating", "machine config pools updating: worker (3 of 6 machines; nodes being drained: w-1 (since 2026-03-01T12:00:00Z))"),
		},
		"drain of ten minutes": {
			10 * time.Minute,
			[]func(*corev1.Node){working, draining},
			engine.Wait("PoolsUpdating", "machine config pools updating: worker (3 of 6 machines; nodes being drained: w-1 (since 2026-03-01T12:00:00Z; "+held+"))"),
		},
		"drain that the machine config operator reports as failed": {
			time.Hour,
			[]func(*corev1.Node){machineConfigState("Degraded", "failed to drain node: w-1 after 1 hour"), draining},
			engine.Wait("PoolsUpdating", "machine config pools updating: worker (3 of 6 machines; nodes degraded: w-1 (draining since 2026-03-01T12:00:00Z; "+held+"; failed to drain node: w-1 after 1 hour))"),
		},
		"drain of a node that is not ready": {
			time.Hour,
			[]func(*corev1.Node){working, draining, notReady},
			engine.Wait("PoolsUpdating", "machine config pools updating: worker (3 of 6 machines; nodes not ready: w-1 (since 2026-03-01T12:00:00Z; draining since 2026-03-01T12:00:00Z; "+held+"))"),
		},
		"no drain": {
			time.Hour,
			[]func(*corev1.Node){working},
			engine.Wait("PoolsUpdating", "machine config pools updating: worker (3 of 6 machines; nodes being updated: w-1 (Working))"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := []client.Object{version(), operator("4.4.6", "False"), pool("worker", updating), node("worker", "w-1", tc.change...), budget}
			r := simulation.NewFakeClient(t, objects...)
			drains := checks.Drains{Reader: r, Live: shopPods{}, TimeOut: 20 * time.Minute, PDBTimeout: 2 * time.Hour, Explanations: &checks.DrainExplanations{}}
			run := engine.Run{Started: noon.Add(-time.Hour), Since: noon.Time, Now: noon.Add(tc.after)}
			got, err := pools.WaitUntilUpdated(r, drains)(t.Context(), run)
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v (-want +got):\n%s", got, err, cmp.Diff(tc.want.Message(), got.Message()))
			}
		})
	}
}

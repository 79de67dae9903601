// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

// shopPods is an API server with the pod shop/api-1 on every node.
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
			if err != nil || got.WithProgress(engine.Progress{}) != tc.want {
				t.Errorf("got %v, %v (-want +got):\n%s", got, err, cmp.Diff(tc.want.Message(), got.Message()))
			}
		})
	}
}

// drainingFor makes a node drain for that long before noon.
func drainingFor(d time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) {
		machineConfigState("Working", "")(n)
		draining(n)
		n.Spec.Taints[len(n.Spec.Taints)-1].TimeAdded = new(metav1.NewTime(noon.Add(-d)))
	}
}

// The nodes with the longest drains are named and explained, whatever their names, and few pods are
// listed.
func TestWaitUntilUpdated_explains_the_longest_drains(t *testing.T) {
	t.Parallel()
	objects := []client.Object{version(), operator("4.4.6", "False"), pool("infra", updating), pool("worker", updating)}
	for i := range 12 {
		objects = append(objects, node("infra", fmt.Sprintf("infra-%02d", i), drainingFor(20*time.Minute)))
	}
	for i := range 9 {
		objects = append(objects, node("worker", fmt.Sprintf("w-%d", i), drainingFor(time.Minute)))
	}
	objects = append(objects, node("worker", "w-9", drainingFor(time.Hour)))
	r := simulation.NewFakeClient(t, objects...)
	live := &countingReader{Reader: shopPods{}}
	drains := checks.Drains{Reader: r, Live: live, TimeOut: 2 * time.Hour, PDBTimeout: -1, Explanations: &checks.DrainExplanations{}}
	run := engine.Run{Started: noon.Add(-24 * time.Hour), Since: noon.Time, Now: noon.Time}
	got, err := pools.WaitUntilUpdated(r, drains)(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	_, worker, _ := strings.Cut(got.Message(), "worker (")
	const want = "3 of 6 machines; nodes being drained: " +
		"w-9 (since 2026-03-01T11:00:00Z; pod shop/api-1 is not evicted yet, forced at 2026-03-01T13:00:00Z), " +
		"w-0 (since 2026-03-01T11:59:00Z), w-1 (since 2026-03-01T11:59:00Z) and 7 more)"
	if diff := cmp.Diff(want, worker); diff != "" {
		t.Errorf("pool worker (-want +got):\n%s", diff)
	}
	if live.lists != 4 { // only for the nodes in the message
		t.Errorf("pods were listed %d times", live.lists)
	}
}

// countingReader counts lists.
type countingReader struct {
	client.Reader
	lists int
}

func (c *countingReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.lists++
	return c.Reader.List(ctx, list, options...)
}

// However long the description of a pool is, what holds up its drain is not cut off.
func TestWaitUntilUpdated_does_not_cut_what_holds_a_drain(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("the disk of the node is full ", 20)
	broken := func(p *mcfgv1.MachineConfigPool) {
		updating(p)
		degraded(p)
		p.Status.Conditions[len(p.Status.Conditions)-1].Message = long
	}
	objects := []client.Object{version(), operator("4.4.6", "False"), pool("worker", broken)}
	for i := range 3 {
		objects = append(objects,
			node("worker", fmt.Sprintf("degraded-%d.example.com", i), machineConfigState("Degraded", long)),
			node("worker", fmt.Sprintf("missing-%d.example.com", i), drainingFor(time.Hour), notReady),
			node("worker", fmt.Sprintf("draining-%d.example.com", i), drainingFor(time.Hour)))
	}
	r := simulation.NewFakeClient(t, objects...)
	drains := checks.Drains{Reader: r, Live: shopPods{}, TimeOut: 2 * time.Hour, PDBTimeout: -1, Explanations: &checks.DrainExplanations{}}
	run := engine.Run{Started: noon.Add(-24 * time.Hour), Since: noon.Time, Now: noon.Time}
	got, err := pools.WaitUntilUpdated(r, drains)(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	const want = "draining-0.example.com (since 2026-03-01T11:00:00Z; pod shop/api-1 is not evicted yet, forced at 2026-03-01T13:00:00Z)"
	if message := got.Message(); !strings.Contains(message, want) || len(message) > 800 {
		t.Errorf("got %d bytes: %s", len(message), message)
	}
}

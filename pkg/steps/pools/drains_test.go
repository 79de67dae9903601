// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
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
	working := machineConfigState("Working", "")
	for name, tc := range map[string]struct {
		after  time.Duration
		change []func(*corev1.Node)
		again  time.Duration // if the step asks to be called at that time
	}{
		"drain of nine minutes": {
			9 * time.Minute,
			[]func(*corev1.Node){working, draining},
			time.Minute,
		},
		"drain of ten minutes": {
			10 * time.Minute,
			[]func(*corev1.Node){working, draining},
			0,
		},
		"drain that the machine config operator reports as failed": {
			time.Hour,
			[]func(*corev1.Node){machineConfigState("Degraded", "failed to drain node: w-1 after 1 hour"), draining},
			0,
		},
		"drain of a node that is not ready": {
			time.Hour,
			[]func(*corev1.Node){working, draining, notReady},
			0,
		},
		"no drain": {
			time.Hour,
			[]func(*corev1.Node){working},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := []client.Object{version(), operator("4.4.6", "False"), pool("worker", updating), node("worker", "w-1", tc.change...), budget}
			r := simulation.NewFakeClient(t, objects...)
			drains := checks.Drains{Reader: r, Live: shopPods{}, TimeOut: 20 * time.Minute, PDBTimeout: 2 * time.Hour, Explanations: &checks.DrainExplanations{}}
			run := engine.Run{Started: noon.Add(-time.Hour), Since: noon.Time, Now: noon.Add(tc.after)}
			got, err := pools.WaitUntilUpdated(r, drains)(t.Context(), run)
			golden.Texts(t, "", got.Message())
			if err != nil || got.Passed() || got.Reason() != "PoolsUpdating" || got.After() != tc.again {
				t.Errorf("got %+v, %v", got, err)
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
	golden.Texts(t, "", got.Message())
	_, worker, _ := strings.Cut(got.Message(), "worker (")
	if named := regexp.MustCompile(`w-\d|api-1`).FindAllString(worker, -1); !slices.Equal(named, []string{"w-9", "api-1", "w-0", "w-1"}) {
		t.Errorf("the message of pool worker names %v", named)
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

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fakecluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/health"
)

func version(conditions ...configv1.ClusterOperatorStatusCondition) client.Object {
	v := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	v.Status.Conditions = conditions
	return v
}

func operator(name string, conditions ...configv1.ClusterOperatorStatusCondition) client.Object {
	o := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.Status.Conditions = conditions
	return o
}

func statusCondition(name configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) configv1.ClusterOperatorStatusCondition {
	return configv1.ClusterOperatorStatusCondition{Type: name, Status: status, Reason: reason, Message: message}
}

func healthyOperator(name string) client.Object {
	return operator(name, statusCondition("Available", "True", "", ""), statusCondition("Degraded", "False", "", ""), statusCondition("Progressing", "True", "", ""))
}

func pool(name string, paused bool, conditions ...mcfgv1.MachineConfigPoolCondition) client.Object {
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Paused = paused
	p.Status.MachineCount = 3
	p.Status.Conditions = conditions
	return p
}

func empty(pool client.Object) client.Object {
	pool.(*mcfgv1.MachineConfigPool).Status.MachineCount = 0
	return pool
}

func unobserved(pool client.Object) client.Object {
	pool.SetGeneration(1)
	return pool
}

func degraded(message string) mcfgv1.MachineConfigPoolCondition {
	return mcfgv1.MachineConfigPoolCondition{Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue, Message: message}
}

func node(name string, changes ...func(*corev1.Node)) client.Object {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(n)
	}
	return n
}

// platform are the namespaces in which nothing forces a drain.
var platform = []string{"default", "kube-*", "openshift-*"}

// budget is one of three pods that lets so many of them go.
func budget(namespace, name string, disruptionsAllowed int32, changes ...func(*policyv1.PodDisruptionBudget)) client.Object {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1}}
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3, CurrentHealthy: 3, DisruptionsAllowed: disruptionsAllowed}
	for _, change := range changes {
		change(b)
	}
	return b
}

func notReady(n *corev1.Node) { n.Status.Conditions = nil }
func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }
func draining(n *corev1.Node) {
	n.Annotations = map[string]string{"machineconfiguration.openshift.io/desiredDrain": "drain-rendered-2"}
}

func underPressure(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeDiskPressure}, {Key: corev1.TaintNodeMemoryPressure}}
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		objects []client.Object // beside a cluster version, if there is none among them
		want    string          // empty: healthy
	}{
		"nothing is wrong": {
			objects: []client.Object{healthyOperator("dns"), pool("worker", false), node("a")},
		},
		"the cluster version operator is failing": {
			objects: []client.Object{version(statusCondition("Failing", "True", "ClusterOperatorNotAvailable", "operator dns\nis not available"))},
			want:    "the cluster version operator is failing: operator dns is not available",
		},
		"the cluster version operator says that it is not failing": {
			objects: []client.Object{version(statusCondition("Failing", "False", "", "")), healthyOperator("dns")},
		},
		"a condition that cluster versions do not have is none": {
			objects: []client.Object{version(statusCondition("Degraded", "True", "", ""))},
		},
		"an operator is unavailable": {
			objects: []client.Object{healthyOperator("etcd"), operator("dns", statusCondition("Available", "False", "NoPods", ""), statusCondition("Degraded", "False", "", ""))},
			want:    "cluster operators unavailable: dns (NoPods)",
		},
		"an operator is degraded": {
			objects: []client.Object{healthyOperator("etcd"), operator("dns", statusCondition("Available", "True", "", ""), statusCondition("Degraded", "True", "", ""))},
			want:    "cluster operators degraded: dns",
		},
		"an operator does not know whether it is well": {
			objects: []client.Object{operator("dns", statusCondition("Available", "Unknown", "", ""), statusCondition("Degraded", "Unknown", "", ""))},
			want:    "cluster operators unavailable: dns; cluster operators degraded: dns",
		},
		"an operator says nothing": {
			objects: []client.Object{operator("dns")},
			want:    "cluster operators unavailable: dns; cluster operators degraded: dns",
		},
		"a pool is degraded and another one paused": {
			objects: []client.Object{pool("worker", false, degraded("node x is stuck")), pool("infra", true), pool("master", false)},
			want:    "machine config pools degraded: worker (node x is stuck); machine config pools paused: infra",
		},
		"a pool is paused that has no machines": {
			objects: []client.Object{empty(pool("infra", true))},
		},
		"a pool is paused of which nothing is known yet": {
			objects: []client.Object{unobserved(empty(pool("infra", true)))},
			want:    "machine config pools paused: infra",
		},
		"a node has long not been ready, and another one is cordoned": {
			objects: []client.Object{
				node("a", func(n *corev1.Node) {
					n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(noon)}}
				}),
				node("b", cordoned, func(n *corev1.Node) {
					n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: new(metav1.NewTime(noon))}}
				}),
			},
			want: "nodes not ready: a (since 2026-03-01T12:00:00Z); nodes cordoned by hand: b (since 2026-03-01T12:00:00Z)",
		},
		"a node is not ready": {
			objects: []client.Object{node("a"), node("b", notReady)},
			want:    "nodes not ready: b",
		},
		"a node is cordoned by hand": {
			objects: []client.Object{node("a"), node("b", cordoned)},
			want:    "nodes cordoned by hand: b",
		},
		"a node is cordoned to be updated": {
			objects: []client.Object{node("a"), node("b", cordoned, draining)},
		},
		"a node is under pressure": {
			objects: []client.Object{node("a"), node("b", underPressure)},
			want:    "nodes under pressure: b (disk and memory)",
		},
		"a budget of the platform lets no pod go": {
			objects: []client.Object{budget("openshift-etcd", "guard", 0), budget("kube-system", "b", 0), budget("default", "a", 0), budget("openshift-dns", "dns", 1)},
			want:    "disruption budgets that let no pod go: default/a, kube-system/b, openshift-etcd/guard",
		},
		"a budget of an application lets no pod go, which is forced": {
			objects: []client.Object{budget("shop", "shop", 0), budget("my-openshift-etcd", "guard", 0)},
		},
		"a budget of the platform has no pods": {
			objects: []client.Object{budget("openshift-etcd", "guard", 0, func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods = 0 })},
		},
		"a budget of the platform lets pods go that are ill, as all are": {
			objects: []client.Object{budget("openshift-etcd", "guard", 0, func(b *policyv1.PodDisruptionBudget) {
				b.Status.CurrentHealthy, b.Spec.UnhealthyPodEvictionPolicy = 0, new(policyv1.AlwaysAllow)
			})},
		},
		"nobody knows what a budget of the platform lets go": {
			objects: []client.Object{budget("openshift-etcd", "guard", 1, func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 })},
			want:    "disruption budgets not observed yet: openshift-etcd/guard",
		},
		"everything is wrong": {
			objects: []client.Object{
				node("e", notReady), node("d", notReady, cordoned), node("c", notReady), node("b", notReady), node("a", notReady, underPressure),
				pool("worker", true, degraded("x")), operator("dns"),
				version(statusCondition("Failing", "True", "", "y")), budget("openshift-etcd", "guard", 0),
			},
			want: "the cluster version operator is failing: y; cluster operators unavailable: dns; cluster operators degraded: dns; " +
				"machine config pools degraded: worker (x); machine config pools paused: worker; " +
				"nodes not ready: a, b, c and 2 more; nodes cordoned by hand: d; nodes under pressure: a (disk and memory); " +
				"disruption budgets that let no pod go: openshift-etcd/guard",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := tc.objects
			if !slices.ContainsFunc(objects, func(o client.Object) bool { return o.GetName() == "version" }) {
				objects = append(objects, version())
			}
			r := fakecluster.New(t, objects...)
			want := engine.Done("the cluster is healthy")
			if tc.want != "" {
				want = engine.Wait("ClusterUnhealthy", "%s", tc.want)
			}
			got, err := health.WaitUntilHealthy(r, "ClusterUnhealthy", disabledAlerts(), platform)(t.Context(), engine.Run{})
			if err != nil || got != want {
				t.Errorf("got %v; (-want +got):\n%s", err, cmp.Diff(want.Message(), got.Message()))
			}
			healthy, err := health.IsHealthy(r, disabledAlerts(), platform)(t.Context())
			if err != nil || healthy != (tc.want == "") {
				t.Errorf("is healthy: got %t, %v", healthy, err)
			}
		})
	}
}

func TestNothingThatCannotBeFoundOutIsHealthy(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection was refused")
	healthy := []client.Object{version(), healthyOperator("dns"), pool("worker", false), node("a")}
	for name, fails := range map[string]func(any) bool{
		"the cluster version":      func(o any) bool { _, is := o.(*configv1.ClusterVersion); return is },
		"the cluster operators":    func(o any) bool { _, is := o.(*configv1.ClusterOperatorList); return is },
		"the machine config pools": func(o any) bool { _, is := o.(*mcfgv1.MachineConfigPoolList); return is },
		"the nodes":                func(o any) bool { _, is := o.(*corev1.NodeList); return is },
		"the disruption budgets":   func(o any) bool { _, is := o.(*policyv1.PodDisruptionBudgetList); return is },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fakecluster.WithReadErrors(fakecluster.New(t, healthy...), broken, fails)
			result, err := health.WaitUntilHealthy(r, "ClusterUnhealthy", disabledAlerts(), platform)(t.Context(), engine.Run{})
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), name) || result != (engine.Result{}) {
				t.Errorf("got %v, %v", result, err)
			}
			if yes, err := health.IsHealthy(r, disabledAlerts(), platform)(t.Context()); !errors.Is(err, broken) || yes {
				t.Errorf("is healthy: got %t, %v", yes, err)
			}
		})
	}
}

// The step is asked again with every change in the cluster, and shares what it
// reads with the cache.
func BenchmarkHealthy(b *testing.B) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{configv1.Install, mcfgv1.Install, corev1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			b.Fatal(err)
		}
	}
	shared := cache{version: version().(*configv1.ClusterVersion)}
	for i := range 500 {
		shared.nodes = append(shared.nodes, *node(fmt.Sprintf("worker-%03d", i), cordoned).(*corev1.Node))
		shared.budgets = append(shared.budgets, *budget("shop", fmt.Sprintf("shop-%03d", i), 1, func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
		}).(*policyv1.PodDisruptionBudget))
	}
	step := health.WaitUntilHealthy(shared, "ClusterUnhealthy", disabledAlerts(), platform)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := step(b.Context(), engine.Run{}); err != nil {
			b.Fatal(err)
		}
	}
}

// cache hands out what it has without copying it.
type cache struct {
	version *configv1.ClusterVersion
	nodes   []corev1.Node
	budgets []policyv1.PodDisruptionBudget
}

func (c cache) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	*object.(*configv1.ClusterVersion) = *c.version
	return nil
}

func (c cache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *corev1.NodeList:
		list.Items = c.nodes
	case *policyv1.PodDisruptionBudgetList:
		list.Items = c.budgets
	}
	return nil
}

func disabledAlerts() *health.Alerts { return &health.Alerts{Disabled: true} }

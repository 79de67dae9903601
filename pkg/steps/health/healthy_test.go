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
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/health"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

func version(conditions ...configv1.ClusterOperatorStatusCondition) client.Object {
	v := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	v.Status.History = []configv1.UpdateHistory{{Version: "4.4.5", State: configv1.CompletedUpdate}}
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
	o := operator(name, statusCondition("Available", "True", "", ""), statusCondition("Degraded", "False", "", ""), statusCondition("Progressing", "False", "", ""))
	o.(*configv1.ClusterOperator).Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: "4.4.5"}}
	return o
}

// newCluster returns a healthy cluster with these objects. They replace objects of the same name.
func newCluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	for _, healthy := range []client.Object{version(), healthyOperator("machine-config"), pool("master", false)} {
		if !slices.ContainsFunc(objects, func(o client.Object) bool { return o.GetName() == healthy.GetName() }) {
			objects = append(objects, healthy)
		}
	}
	return simulation.NewFakeClient(t, objects...)
}

// runner returns the checks for a platform with the default settings.
func runner(r client.Reader, sources *checks.Sources) checks.Runner {
	options := checks.GateOptions{PDBNamespaces: platform}
	if sources != nil && sources.AlertsDisabled {
		for _, rule := range checks.Rules() {
			if rule.Name != checks.NameAlerts { // an unknown state of alerts is noted
				options.Checks = append(options.Checks, rule.Name)
			}
		}
	}
	return checks.Runner{Reader: r, Live: r, Sources: sources, Options: options}
}

func pool(name string, paused bool, conditions ...mcfgv1.MachineConfigPoolCondition) client.Object {
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Paused = paused
	p.Spec.Configuration.Name = "rendered-1"
	p.Status.Configuration.Name = "rendered-1"
	p.Status.MachineCount, p.Status.UpdatedMachineCount = 3, 3
	p.Status.Conditions = append(conditions, mcfgv1.MachineConfigPoolCondition{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue})
	return p
}

func empty(pool client.Object) client.Object {
	pool.(*mcfgv1.MachineConfigPool).Status.MachineCount = 0
	return pool
}

func updatingPool(name string) client.Object {
	p := pool(name, false).(*mcfgv1.MachineConfigPool)
	p.Spec.Configuration.Name = "rendered-2"
	return p
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

// platform lists the namespaces without forced drains.
var platform = []string{"default", "kube-*", "openshift-*"}

// budget returns a PDB for three pods that allows this many disruptions.
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
		objects []client.Object // in addition to a default ClusterVersion, unless they include one
		healthy bool
	}{
		"healthy": {
			objects: []client.Object{healthyOperator("dns"), pool("worker", false), node("a")},
			healthy: true,
		},
		"the cluster version operator is failing": {
			objects: []client.Object{version(statusCondition("Failing", "True", "ClusterOperatorNotAvailable", "operator dns\nis not available"))},
		},
		"ClusterVersion not failing": {
			objects: []client.Object{version(statusCondition("Failing", "False", "", "")), healthyOperator("dns")},
			healthy: true,
		},
		"unknown condition": {
			objects: []client.Object{version(statusCondition("Degraded", "True", "", ""))},
			healthy: true,
		},
		"an operator is unavailable": {
			objects: []client.Object{healthyOperator("etcd"), operator("dns", statusCondition("Available", "False", "NoPods", ""), statusCondition("Degraded", "False", "", ""))},
		},
		"an operator is degraded": {
			objects: []client.Object{healthyOperator("etcd"), operator("dns", statusCondition("Available", "True", "", ""), statusCondition("Degraded", "True", "", ""))},
		},
		"ClusterOperator with unknown status": {
			objects: []client.Object{operator("dns", statusCondition("Available", "Unknown", "", ""), statusCondition("Degraded", "Unknown", "", ""))},
		},
		"a pool is degraded and another one paused": {
			objects: []client.Object{pool("worker", false, degraded("node x is stuck")), pool("infra", true), pool("master", false)},
		},
		"a pool is paused that has no machines": {
			objects: []client.Object{empty(pool("infra", true))},
			healthy: true,
		},
		"paused pool without a status": {
			objects: []client.Object{unobserved(empty(pool("infra", true)))},
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
		},
		"a node is not ready": {
			objects: []client.Object{node("a"), node("b", notReady)},
		},
		"a node is cordoned by hand": {
			objects: []client.Object{node("a"), node("b", cordoned)},
		},
		"a node is cordoned to be updated": {
			objects: []client.Object{node("a"), node("b", cordoned, draining)},
			healthy: true,
		},
		"a node is under pressure": {
			objects: []client.Object{node("a"), node("b", underPressure)},
		},
		"PDB of the platform allows no disruption": {
			objects: []client.Object{budget("openshift-etcd", "guard", 0), budget("kube-system", "b", 0), budget("default", "a", 0), budget("openshift-dns", "dns", 1)},
		},
		"PDB of an application allows no disruption": {
			objects: []client.Object{budget("shop", "shop", 0), budget("my-openshift-etcd", "guard", 0)},
			healthy: true,
		},
		"a budget of the platform has no pods": {
			objects: []client.Object{budget("openshift-etcd", "guard", 0, func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods, b.Status.CurrentHealthy = 0, 0 })},
			healthy: true,
		},
		"a budget of the platform expects no pods and has healthy ones": {
			objects: []client.Object{budget("openshift-etcd", "guard", 0, func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods = 0 })},
		},
		"a budget of the platform cannot be computed": {
			objects: []client.Object{budget("openshift-etcd", "guard", 1, func(b *policyv1.PodDisruptionBudget) {
				b.Status.Conditions = []metav1.Condition{{Type: "DisruptionAllowed", Status: "False", Reason: "SyncFailed", Message: "found no controller"}}
			})},
		},
		"a pool is still being updated": {
			objects: []client.Object{updatingPool("worker")},
		},
		"the control plane is still being updated": {
			objects: []client.Object{version(statusCondition("Progressing", "True", "", "Working towards 4.4.5"))},
		},
		"the machine config operator has not begun with the installed release": {
			objects: []client.Object{operator("machine-config", statusCondition("Available", "True", "", ""), statusCondition("Degraded", "False", "", ""))},
		},
		"PDB of the platform allows unhealthy pods, and all are": {
			objects: []client.Object{budget("openshift-etcd", "guard", 0, func(b *policyv1.PodDisruptionBudget) {
				b.Status.CurrentHealthy, b.Spec.UnhealthyPodEvictionPolicy = 0, new(policyv1.AlwaysAllow)
			})},
			healthy: true,
		},
		"PDB of the platform without a status": {
			objects: []client.Object{budget("openshift-etcd", "guard", 1, func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 })},
		},
		"all findings": {
			objects: []client.Object{
				node("e", notReady), node("d", notReady, cordoned), node("c", notReady), node("b", notReady), node("a", notReady, underPressure),
				pool("worker", true, degraded("x")), operator("dns", statusCondition("Available", "False", "", ""), statusCondition("Degraded", "True", "", "")),
				version(statusCondition("Failing", "True", "", "y")), budget("openshift-etcd", "guard", 0),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newCluster(t, tc.objects...)
			want := "ClusterUnhealthy"
			if tc.healthy {
				want = engine.ReasonDone
			}
			got, err := health.WaitUntilHealthy(runner(r, disabledAlerts()), "ClusterUnhealthy")(t.Context(), engine.Run{})
			golden.Texts(t, "", got.Message())
			if err != nil || got.Reason() != want || got.Passed() != tc.healthy {
				t.Errorf("got %+v, %v, want %s", got, err, want)
			}
			healthy, err := health.IsHealthy(runner(r, disabledAlerts()))(t.Context())
			if err != nil || healthy != tc.healthy {
				t.Errorf("is healthy: got %t, %v", healthy, err)
			}
		})
	}
}

func TestHealth_that_is_unknown_is_not_healthy(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection was refused")
	healthy := []client.Object{version(), healthyOperator("dns"), pool("worker", false), node("a")}
	for name, fails := range map[string]func(any) bool{
		"the cluster version":      func(o any) bool { _, is := o.(*configv1.ClusterVersion); return is },
		"the cluster operators":    func(o any) bool { _, is := o.(*configv1.ClusterOperatorList); return is },
		"the machine config pools": func(o any) bool { _, is := o.(*mcfgv1.MachineConfigPoolList); return is },
		"the nodes":                func(o any) bool { _, is := o.(*corev1.NodeList); return is },
		"the PodDisruptionBudgets": func(o any) bool { _, is := o.(*policyv1.PodDisruptionBudgetList); return is },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := simulation.WithReadErrors(newCluster(t, healthy...), broken, fails)
			result, err := health.WaitUntilHealthy(runner(r, disabledAlerts()), "ClusterUnhealthy")(t.Context(), engine.Run{})
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), name) || result != (engine.Result{}) {
				t.Errorf("got %v, %v", result, err)
			}
			if yes, err := health.IsHealthy(runner(r, disabledAlerts()))(t.Context()); !errors.Is(err, broken) || yes {
				t.Errorf("is healthy: got %t, %v", yes, err)
			}
		})
	}
}

// Limits for the CPU time of a health check.
const (
	maxHealthy           = 270 * time.Microsecond
	maxHealthyNoFindings = 150 * time.Microsecond
)

// BenchmarkHealthy measures the step as it runs after every change in the cluster, sharing data
// with the cache. Each cordoned node is a separate finding.
func BenchmarkHealthy(b *testing.B) { benchmarkHealthy(b, maxHealthy, cordoned) }

// BenchmarkHealthyNoFindings is like BenchmarkHealthy, but without cordoned nodes.
func BenchmarkHealthyNoFindings(b *testing.B) { benchmarkHealthy(b, maxHealthyNoFindings) }

func benchmarkHealthy(b *testing.B, limit time.Duration, changes ...func(*corev1.Node)) {
	b.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{configv1.Install, mcfgv1.Install, corev1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			b.Fatal(err)
		}
	}
	shared := cache{
		version: version().(*configv1.ClusterVersion), operator: healthyOperator("machine-config").(*configv1.ClusterOperator),
		pools: []mcfgv1.MachineConfigPool{*pool("worker", false).(*mcfgv1.MachineConfigPool)},
	}
	for i := range 500 {
		shared.nodes = append(shared.nodes, *node(fmt.Sprintf("worker-%03d", i), changes...).(*corev1.Node))
		shared.budgets = append(shared.budgets, *budget("shop", fmt.Sprintf("shop-%03d", i), 1, func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
		}).(*policyv1.PodDisruptionBudget))
	}
	step := health.WaitUntilHealthy(runner(shared, disabledAlerts()), "ClusterUnhealthy")
	pass := func() {
		if _, err := step(b.Context(), engine.Run{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		pass()
	}
	fastest := simulation.FastestPass(b, 200, pass)
	b.ReportMetric(float64(fastest.Nanoseconds())/1000, "best-µs")
	if fastest > limit {
		b.Errorf("the health check takes %s of processor time, limit %s", fastest, limit)
	}
}

// cache returns objects without copying them.
type cache struct {
	version  *configv1.ClusterVersion
	operator *configv1.ClusterOperator
	pools    []mcfgv1.MachineConfigPool
	nodes    []corev1.Node
	budgets  []policyv1.PodDisruptionBudget
}

func (c cache) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	*object.(*configv1.ClusterVersion) = *c.version
	return nil
}

func (c cache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *configv1.ClusterOperatorList:
		list.Items = []configv1.ClusterOperator{*c.operator}
	case *mcfgv1.MachineConfigPoolList:
		list.Items = c.pools
	case *corev1.NodeList:
		list.Items = c.nodes
	case *policyv1.PodDisruptionBudgetList:
		list.Items = c.budgets
	}
	return nil
}

func disabledAlerts() *checks.Sources { return &checks.Sources{AlertsDisabled: true} }

// well is a healthy cluster whose objects are not copied.
var well = cache{
	version: version().(*configv1.ClusterVersion), operator: healthyOperator("machine-config").(*configv1.ClusterOperator),
	pools: []mcfgv1.MachineConfigPool{*pool("worker", false).(*mcfgv1.MachineConfigPool)},
}

type sick struct{}

func (sick) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	return well.Get(ctx, key, object, opts...)
}

func (sick) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if nodes, ok := list.(*corev1.NodeList); ok {
		nodes.Items = []corev1.Node{*node("a", cordoned).(*corev1.Node)}
		return nil
	}
	return well.List(ctx, list, opts...)
}

// A failure is confirmed, so a stale cache does not fail an upgrade.
func TestHealth_of_an_unhealthy_cache_is_confirmed(t *testing.T) {
	t.Parallel()
	lagging := checks.Runner{Reader: sick{}, Live: well, Sources: disabledAlerts(), Options: checks.GateOptions{Timeout: time.Minute}}
	if yes, err := health.IsHealthy(lagging)(t.Context()); err != nil || !yes {
		t.Errorf("is healthy: got %t, %v", yes, err)
	}
	confirmed := lagging
	confirmed.Live = sick{}
	if yes, err := health.IsHealthy(confirmed)(t.Context()); err != nil || yes {
		t.Errorf("is healthy, confirmed: got %t, %v", yes, err)
	}
	early, late := engine.Run{Since: noon, Now: noon.Add(59 * time.Second)}, engine.Run{Since: noon, Now: noon.Add(time.Minute)}
	for name, tc := range map[string]struct {
		runner         checks.Runner
		run            engine.Run
		passes, failed bool
	}{
		"before the timeout":                    {confirmed, early, false, false},
		"at the timeout":                        {confirmed, late, false, true},
		"at the timeout, while the cache lags":  {lagging, late, true, false},
		"at the timeout, with a healthy result": {checks.Runner{Reader: well, Live: well, Sources: disabledAlerts(), Options: checks.GateOptions{Timeout: time.Minute}}, late, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := health.WaitUntilHealthy(tc.runner, "ClusterUnhealthy")(t.Context(), tc.run)
			if err != nil || got.Passed() != tc.passes || got.Failed() != tc.failed || tc.failed && got.Reason() != "ClusterUnhealthy" {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// The message shows an exclusion that matches nothing, whether the gate is closed or open.
func TestMessagesShowWhatDoesNotBlock(t *testing.T) {
	t.Parallel()
	const note = "; exclusions that match no cluster operator: dsn; alerts: not configured"
	for name, tc := range map[string]struct {
		objects []client.Object
		since   time.Duration
		want    engine.Result
	}{
		"healthy":         {want: engine.Done("the cluster is healthy%s", note)},
		"not healthy":     {objects: []client.Object{pool("night", true)}, want: engine.WaitFor(30*time.Minute, "Unhealthy", "machine config pools paused: night%s", note)},
		"not in the time": {objects: []client.Object{pool("night", true)}, since: time.Hour, want: engine.Fail("Unhealthy", "not healthy within 30m0s: machine config pools paused: night%s", note)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checked := runner(newCluster(t, tc.objects...), &checks.Sources{AlertsDisabled: true})
			checked.Options.Checks = nil
			checked.Options.ExcludeOperators, checked.Options.Timeout = []string{"dsn"}, 30*time.Minute
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			got, err := health.WaitUntilHealthy(checked, "Unhealthy")(t.Context(), engine.Run{Now: now, Since: now.Add(-tc.since)})
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func clusterVersion(changes ...func(*configv1.ClusterVersion)) *configv1.ClusterVersion {
	v := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	v.Status.History = []configv1.UpdateHistory{{Version: "4.4.6", State: configv1.CompletedUpdate}}
	for _, change := range changes {
		change(v)
	}
	return v
}

func operator(name string, conditions ...configv1.ClusterStatusConditionType) *configv1.ClusterOperator {
	o := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: "4.4.6"}}
	for _, condition := range conditions {
		status := configv1.ConditionFalse
		if condition == configv1.OperatorAvailable {
			status = configv1.ConditionTrue
		}
		o.Status.Conditions = append(o.Status.Conditions, configv1.ClusterOperatorStatusCondition{Type: condition, Status: status})
	}
	return o
}

func healthyOperator(name string) *configv1.ClusterOperator {
	return operator(name, configv1.OperatorAvailable, configv1.OperatorDegraded)
}

func pool(name string, changes ...func(*mcfgv1.MachineConfigPool)) *mcfgv1.MachineConfigPool {
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Configuration.Name, p.Status.Configuration.Name = "rendered-2", "rendered-2"
	p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"role": name}}
	p.Status.MachineCount, p.Status.UpdatedMachineCount = 1, 1
	p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func node(name string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"role": "worker"}, Annotations: map[string]string{
		"machineconfiguration.openshift.io/currentConfig": "rendered-2", "machineconfiguration.openshift.io/desiredConfig": "rendered-2",
	}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(n)
	}
	return n
}

// cordonedOfMachine cordons a node and links it to the machine returned by machine.
func cordonedOfMachine(n *corev1.Node) {
	n.Spec.Unschedulable = true
	n.Annotations["machine.openshift.io/machine"] = "openshift-machine-api/a"
}

func machine(deleting bool) *machinev1beta1.Machine {
	m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: "a"}}
	if deleting {
		m.Finalizers, m.DeletionTimestamp = []string{"machine.machine.openshift.io"}, new(metav1.NewTime(noon))
	}
	return m
}

func budget(name string, selector *metav1.LabelSelector) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: name, Generation: 1}}
	b.Spec.Selector = selector
	b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3, CurrentHealthy: 3, DisruptionsAllowed: 1}
	return b
}

func movedTo(namespace string, b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	b.Namespace = namespace
	return b
}

// uncounted clears the pod counts in a budget's status.
func uncounted(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	b.Status.ExpectedPods, b.Status.CurrentHealthy, b.Status.DisruptionsAllowed = 0, 0, 0
	return b
}

func selecting(labels ...string) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		selector.MatchLabels[key] = value
	}
	return selector
}

func pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-etcd", Name: name, Labels: labels}}
}

// healthyCluster returns the objects of a healthy cluster. The given objects replace healthy ones of the same
// name.
func healthyCluster(objects ...client.Object) []client.Object {
	for _, healthy := range []client.Object{clusterVersion(), healthyOperator("machine-config"), pool("master"), pool("worker"), node("worker-0")} {
		if !slices.ContainsFunc(objects, func(o client.Object) bool { return o.GetName() == healthy.GetName() }) {
			objects = append(objects, healthy)
		}
	}
	return objects
}

// prometheus is a source of alerts that counts its queries.
type prometheus struct {
	alerts  []clusterstate.Alert
	samples map[string]bool
	err     error
	queries int
	custom  int
}

func (p *prometheus) CriticalAlerts(context.Context) ([]clusterstate.Alert, error) {
	p.queries++
	return p.alerts, p.err
}

func (p *prometheus) HasSamples(_ context.Context, expression string) (bool, error) {
	p.custom++
	return p.samples[expression], p.err
}

func sources(p *prometheus) *checks.Sources {
	return &checks.Sources{Prometheus: p, Clock: testingclock.NewFakePassiveClock(noon), Interval: time.Minute}
}

// recordingReader records which kinds are read.
type recordingReader struct {
	client.Reader
	kinds map[string]bool
}

func (r recordingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	r.kinds[fmt.Sprintf("%T", object)] = true
	return r.Reader.Get(ctx, key, object, opts...)
}

func (r recordingReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	kind := fmt.Sprintf("%T", list)
	if partial, ok := list.(*metav1.PartialObjectMetadataList); ok {
		kind = map[string]string{"PodList": "*v1.PodList", "MachineList": "*v1beta1.MachineList"}[partial.Kind]
	}
	r.kinds[strings.TrimSuffix(kind, "List")] = true
	return r.Reader.List(ctx, list, opts...)
}

// The cache, watches, and permissions are derived from the declared needs. A check that reads an undeclared
// kind would fail in the operator, and a declared kind that is never read would waste memory.
func TestRules_of_gates_read_what_they_need(t *testing.T) {
	t.Parallel()
	both := map[string]string{"app": "etcd", "tier": "db"}
	r := simulation.NewFakeClient(t, healthyCluster(
		node("worker-1", cordonedOfMachine), machine(true), pod("etcd-0", both), budget("a", selecting("app=etcd")), budget("b", selecting("tier=db")),
	)...)
	const version, operators, pools, nodes, budgets = "*v1.ClusterVersion", "*v1.ClusterOperator", "*v1.MachineConfigPool", "*v1.Node", "*v1.PodDisruptionBudget"
	want := map[string][2][]string{ // from the cache and from the API server
		"version": {{version}, nil}, "operators": {{operators}, nil}, "pools": {{pools, nodes}, nil},
		"rollout": {{operators, version, pools, nodes}, nil}, "nodes": {{nodes}, {"*v1beta1.Machine"}},
		"pdbs": {{budgets}, {"*v1.Pod"}}, "queries": {nil, nil}, "alerts": {nil, nil},
	}
	read := map[string]bool{}
	for name, kinds := range want {
		cached, live := recordingReader{r, map[string]bool{}}, recordingReader{r, map[string]bool{}}
		options := checks.GateOptions{PDBNamespaces: []string{"*"}, Queries: []string{"up"}, Checks: []string{name}}
		report := checks.Runner{Reader: cached, Live: live, Sources: sources(&prometheus{}), Options: options}.Run(t.Context(), noon)
		if report.Err != nil {
			t.Errorf("%s: %v", name, report.Err)
		}
		slices.Sort(kinds[0])
		if diff := cmp.Diff(kinds, [2][]string{slices.Sorted(maps.Keys(cached.kinds)), slices.Sorted(maps.Keys(live.kinds))}); diff != "" {
			t.Errorf("%s reads (-want +got):\n%s", name, diff)
		}
		maps.Copy(read, cached.kinds)
	}
	declared := map[string]bool{}
	for _, kind := range checks.Reads() {
		declared[fmt.Sprintf("%T", kind)] = true
	}
	if diff := cmp.Diff(declared, read); diff != "" {
		t.Errorf("kinds (-declared +read):\n%s", diff)
	}
}

func TestRules_are_documented_and_have_names_of_their_own(t *testing.T) {
	t.Parallel()
	names, informers := map[string]bool{}, map[string]bool{}
	for _, informer := range checks.Informers() {
		informers[informer.Name] = true
	}
	for _, rule := range checks.Rules() {
		if names[rule.Name] || rule.Doc == "" || rule.Phases == 0 || rule.Find == nil {
			t.Errorf("%+v", rule)
		}
		if reported := rule.Phases&checks.Update != 0; reported != informers[rule.Informer] {
			t.Errorf("%s counts during an update: %t; its informer is %q", rule.Name, reported, rule.Informer)
		}
		names[rule.Name] = true
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	both := map[string]string{"app": "etcd", "tier": "db"}
	for name, tc := range map[string]struct {
		objects []client.Object
		alerts  []clusterstate.Alert
		samples map[string]bool
		options checks.GateOptions
		blocks  bool
		fails   string
	}{
		"a healthy cluster": {},
		"an operator without Degraded": {
			objects: []client.Object{operator("dns", configv1.OperatorAvailable), healthyOperator("etcd")},
			fails:   "cluster operators do not report their state: dns (no condition Degraded)",
		},
		"an operator without any condition": {
			objects: []client.Object{operator("dns")}, fails: "cluster operators do not report their state: dns (no conditions Available and Degraded)",
		},
		"an operator without Degraded that does not count": {
			objects: []client.Object{operator("dns")}, options: checks.GateOptions{ExcludeOperators: []string{"openshift-dns"}},
		},
		"a cluster without pools": {
			objects: []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "master"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "worker"}}},
			fails:   "the cluster has no machine config pools",
		},
		"a pool that has not counted an outdated node": {
			objects: []client.Object{node("worker-1", func(n *corev1.Node) { n.Annotations["machineconfiguration.openshift.io/currentConfig"] = "rendered-1" })},
			blocks:  true,
		},
		"a node in two custom pools": {
			objects: []client.Object{
				pool("infra", func(p *mcfgv1.MachineConfigPool) { p.Spec.NodeSelector = selecting("edge=yes") }),
				pool("zone", func(p *mcfgv1.MachineConfigPool) { p.Spec.NodeSelector = selecting("edge=yes") }),
				node("worker-1", func(n *corev1.Node) { n.Labels["edge"] = "yes" }),
			},
			blocks: true,
		},
		"a Windows node with another configuration": {
			objects: []client.Object{node("worker-1", func(n *corev1.Node) {
				n.Labels["kubernetes.io/os"] = "windows"
				n.Annotations["machineconfiguration.openshift.io/currentConfig"] = "rendered-1"
			})},
		},
		"a node whose Machine is being deleted": {
			objects: []client.Object{node("worker-1", cordonedOfMachine), machine(true)},
		},
		"a cordoned node whose Machine is not being deleted": {
			objects: []client.Object{node("worker-1", cordonedOfMachine), machine(false)}, blocks: true,
		},
		"a cordoned node that does not count": {
			objects: []client.Object{node("gpu-1", cordonedOfMachine)}, options: checks.GateOptions{ExcludeNodes: []string{"gpu-*"}},
		},
		"two budgets with the same selector": {
			objects: []client.Object{budget("a", selecting("app=etcd")), budget("b", selecting("app=etcd"))},
			blocks:  true,
		},
		"two budgets that a pod has in common": {
			objects: []client.Object{budget("a", selecting("app=etcd")), budget("b", selecting("tier=db")), pod("etcd-0", both)},
			blocks:  true,
		},
		"two budgets that no pod has in common": {
			objects: []client.Object{budget("a", selecting("app=etcd")), budget("b", selecting("tier=db")), pod("etcd-0", map[string]string{"app": "etcd"}), pod("db-0", map[string]string{"tier": "db"})},
		},
		"two budgets with the same selector, of which the disruption controller updates one": {
			objects: []client.Object{budget("a", selecting("app=etcd")), uncounted(budget("b", selecting("app=etcd")))},
			blocks:  true,
		},
		"a wider budget of which the status counts no pods": {
			objects: []client.Object{budget("a", selecting("app=etcd", "tier=db")), uncounted(budget("b", selecting("app=etcd")))},
			blocks:  true,
		},
		"a narrower budget of which the status counts no pods, and a pod": {
			objects: []client.Object{budget("a", selecting("app=etcd")), uncounted(budget("b", selecting("app=etcd", "tier=db"))), pod("etcd-0", both)},
			blocks:  true,
		},
		"a narrower budget that selects no pod": {
			objects: []client.Object{budget("a", selecting("app=etcd")), uncounted(budget("b", selecting("app=etcd", "tier=db"))), pod("etcd-0", map[string]string{"app": "etcd"})},
		},
		"two budgets of which no status counts a pod, and a pod": {
			objects: []client.Object{uncounted(budget("a", selecting("app=etcd"))), uncounted(budget("b", selecting("app=etcd"))), pod("etcd-0", both)},
			blocks:  true,
		},
		"two budgets with the same selector and no pods": {
			objects: []client.Object{uncounted(budget("a", selecting("app=etcd"))), uncounted(budget("b", selecting("app=etcd")))},
		},
		"an exempt budget and another one that guard the same pods": {
			objects: []client.Object{budget("a", selecting("app=etcd")), uncounted(budget("etcd-primary", selecting("app=etcd")))},
			options: checks.GateOptions{ExcludePDBs: []string{"*/*-primary"}},
			blocks:  true,
		},
		"exempt budgets and others in two namespaces": {
			objects: []client.Object{
				budget("a", selecting("app=etcd")), budget("a-primary", selecting("app=etcd")),
				movedTo("openshift-kube", budget("b", selecting("app=etcd"))), movedTo("openshift-kube", budget("b-primary", selecting("app=etcd"))),
			},
			options: checks.GateOptions{ExcludePDBs: []string{"*/*-primary"}},
			blocks:  true,
		},
		"two exempt budgets that guard the same pods": {
			objects: []client.Object{budget("a-primary", selecting("app=etcd")), budget("b-primary", selecting("app=etcd"))},
			options: checks.GateOptions{ExcludePDBs: []string{"*/*-primary"}},
		},
		"two exempt budgets and another one that guard the same pods": {
			objects: []client.Object{
				uncounted(budget("a-primary", selecting("app=etcd"))), uncounted(budget("b-primary", selecting("tier=db"))), uncounted(budget("c", selecting("app=etcd"))), pod("etcd-0", both),
			},
			options: checks.GateOptions{ExcludePDBs: []string{"*/*-primary"}},
			blocks:  true,
		},
		"a budget that allows none by design": {
			objects: []client.Object{func() client.Object {
				b := budget("kubevirt-disruption-budget-x", selecting("app=vm"))
				b.Status.DisruptionsAllowed = 0
				return b
			}()},
			options: checks.GateOptions{ExcludePDBs: []string{"*/kubevirt-disruption-budget-*"}},
		},
		"a critical alert": {
			alerts: []clusterstate.Alert{{Name: "etcdDown", Namespace: "openshift-etcd", Severity: "critical", Firing: true}}, blocks: true,
		},
		"an alert without a namespace and without a name": {alerts: []clusterstate.Alert{{Severity: "critical", Firing: true}}, blocks: true},
		"an alert of an application": {
			alerts: []clusterstate.Alert{{Name: "ShopDown", Namespace: "shop", Severity: "critical", Firing: true}}, options: checks.GateOptions{AlertNamespaces: []string{"default", "kube-*", "openshift-*"}},
		},
		"an alert without a namespace, while only the platform's count": {
			alerts: []clusterstate.Alert{{Name: "Watchfire", Severity: "critical", Firing: true}}, options: checks.GateOptions{AlertNamespaces: []string{"openshift-*"}}, blocks: true,
		},
		"alerts that are excluded by patterns": {
			alerts:  []clusterstate.Alert{{Name: "ShopDown", Namespace: "shop-1", Severity: "critical", Firing: true}, {Name: "KubeletDown", Namespace: "kube-system", Severity: "critical", Firing: true}},
			options: checks.GateOptions{ExcludeNamespaces: []string{"shop-*"}, ExcludeAlerts: []string{"Kube*"}},
		},
		"our own alert":                     {alerts: []clusterstate.Alert{{Name: "ManagedUpgradeStuck", Namespace: "openshift-x", Severity: "critical", Firing: true}}},
		"a pending alert before an upgrade": {alerts: []clusterstate.Alert{{Name: "etcdDown", Severity: "critical"}}},
		"a pending alert after an upgrade": {
			alerts: []clusterstate.Alert{{Name: "etcdDown", Severity: "critical"}}, options: checks.GateOptions{PendingAlerts: true}, blocks: true,
		},
		"a custom query with samples": {
			samples: map[string]bool{"up == 0": true}, options: checks.GateOptions{Queries: []string{"up == 0", "up == 2"}}, blocks: true,
		},
		"a degraded pool and a paused one, while only paused ones count": {
			objects: []client.Object{
				pool("master", func(p *mcfgv1.MachineConfigPool) {
					p.Status.Conditions = append(p.Status.Conditions, mcfgv1.MachineConfigPoolCondition{Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue})
				}),
				pool("night", func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true }),
			},
			options: checks.GateOptions{PausedPoolsOnly: true}, blocks: true,
		},
		"pools that UpgradeJobs have paused, for another upgrade": {
			objects: pausedPools(), blocks: true,
		},
		"pools that UpgradeJobs have paused, for an UpgradeJob": {
			objects: pausedPools(), options: checks.GateOptions{IgnoreDelayedPools: true},
			blocks: true,
		},
		"a check that is not run": {
			alerts: []clusterstate.Alert{{Name: "etcdDown", Severity: "critical", Firing: true}}, options: checks.GateOptions{Checks: allBut(checks.NameAlerts)},
		},
		"only one check is run": {
			alerts: []clusterstate.Alert{{Name: "etcdDown", Severity: "critical", Firing: true}}, objects: []client.Object{operator("dns")}, options: checks.GateOptions{Checks: []string{"nodes"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := simulation.NewFakeClient(t, healthyCluster(tc.objects...)...)
			if tc.options.PDBNamespaces == nil {
				tc.options.PDBNamespaces = []string{"openshift-*"}
			}
			report := checks.Runner{Reader: r, Live: r, Sources: sources(&prometheus{alerts: tc.alerts, samples: tc.samples}), Options: tc.options}.Run(t.Context(), noon)
			checkTexts(t, "", report.Findings)
			golden.Texts(t, "message", report.Message())
			if blocks := report.Message() != ""; blocks != tc.blocks {
				t.Errorf("blocking findings: got %t: %s", blocks, report.Message())
			}
			if err := report.Error(); (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("got %v, want %s", err, tc.fails)
			}
			if healthy := !tc.blocks && tc.fails == ""; report.Healthy() != healthy {
				t.Errorf("healthy: got %t", !healthy)
			}
		})
	}
}

// If alerts are required, the gate stays closed while the operator has no source of alerts. If not, a note
// says so.
func TestAlerts_without_a_source(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{false, true} {
		options := checks.GateOptions{Checks: []string{checks.NameAlerts}, RequireAlerts: required}
		report := checks.Runner{Sources: &checks.Sources{AlertsDisabled: true}, Options: options}.Run(t.Context(), noon)
		message, notes := "", "alerts: not configured"
		if required {
			message, notes = "alerts cannot be checked, because the operator has no source of alerts (alerts.url)", ""
		}
		if report.Healthy() == required || report.Message() != message || report.Notes() != notes || report.Err != nil {
			t.Errorf("required: %t: got %+v", required, report)
		}
	}
}

func TestFinding_identifies_check_and_object(t *testing.T) {
	t.Parallel()
	r := simulation.NewFakeClient(t, healthyCluster(node("worker-1", cordonedOfMachine), machine(false))...)
	report := checks.Runner{Reader: r, Live: r, Sources: sources(&prometheus{alerts: []clusterstate.Alert{{Name: "A", Namespace: "x", Severity: "critical", Firing: true}}})}.Run(t.Context(), noon)
	want := []checks.Finding{
		{
			Informer: "nodes", Scope: checks.ScopeWorkerPool, Resources: []checks.Resource{{Kind: "Node", Name: "worker-1"}},
			Level: checks.LevelError, Type: checks.TypeClusterCapacity, Reason: "NodeCordoned", Summary: "nodes cordoned by hand", Remedy: "Uncordon the node.",
		},
		{
			Informer: "alerts", Scope: checks.ScopeControlPlane, Resources: []checks.Resource{{Group: "monitoring.coreos.com", Kind: "Alert", Namespace: "x", Name: "A"}},
			Level: checks.LevelError, Type: checks.TypeUpdateStalled, Reason: "AlertFiring", Summary: "critical alerts firing", Remedy: "Resolve the cause of the alert, or exclude the alert from the health check.",
		},
	}
	if diff := cmp.Diff(want, report.Findings, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var uids []string
	for _, f := range report.Findings {
		uids = append(uids, f.UID())
	}
	if diff := cmp.Diff([]string{"NodeCordoned/Node/worker-1", "AlertFiring/Alert/x/A"}, uids); diff != "" {
		t.Errorf("UIDs (-want +got):\n%s", diff)
	}
}

func TestRemedy_for_paused_pools(t *testing.T) {
	t.Parallel()
	begin := time.Date(2027, 3, 2, 22, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		now   time.Time // zero if there is no clock
		waits bool      // for the operator to unpause pool night
	}{
		"before the window": {begin.Add(-time.Second), true},
		"in the window":     {begin.Add(time.Hour - time.Second), true},
		"unknown time":      {time.Time{}, true},
		"after the window":  {begin.Add(time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := simulation.NewFakeClient(t, healthyCluster(pausedPools()...)...)
			s := sources(&prometheus{})
			if s.Clock = testingclock.NewFakePassiveClock(tc.now); tc.now.IsZero() {
				s = nil
			}
			var texts []string
			for _, f := range (checks.Runner{Reader: r, Live: r, Sources: s, Options: checks.GateOptions{Checks: []string{checks.NamePools}}}).Run(t.Context(), noon).Findings {
				texts = append(texts, f.Resources[0].Name+" "+f.Description+"; "+f.Remedy)
				if waits := strings.HasPrefix(f.Remedy, "Wait: "); waits != (tc.waits && f.Resources[0].Name == "night") {
					t.Errorf("%s: %s", f.Resources[0].Name, f.Remedy)
				}
			}
			golden.Texts(t, "", texts...)
		})
	}
}

func TestExclusion_without_effect_is_reported_and_blocks_nothing(t *testing.T) {
	t.Parallel()
	r := simulation.NewFakeClient(t, healthyCluster(healthyOperator("dns"))...)
	report := checks.Runner{Reader: r, Live: r, Sources: sources(&prometheus{}), Options: checks.GateOptions{ExcludeOperators: []string{"openshift-dns", "dsn"}}}.Run(t.Context(), noon)
	if diff := cmp.Diff("exclusions that match no cluster operator: dsn", report.Notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if len(report.Findings) != 1 || report.Findings[0].Reason != "ExclusionUnused" || report.Findings[0].Description != "dsn" || !report.Healthy() {
		t.Errorf("got %+v", report)
	}
}

// All objects share one query per interval, and each object filters the result.
func TestObjectsShareQueries(t *testing.T) {
	t.Parallel()
	r := simulation.NewFakeClient(t, healthyCluster(node("worker-1", cordonedOfMachine), machine(false))...)
	p := &prometheus{alerts: []clusterstate.Alert{{Name: "A", Namespace: "shop", Severity: "critical", Firing: true}, {Name: "B", Namespace: "openshift-etcd", Severity: "critical", Firing: true}}}
	shared := sources(p)
	for namespace, want := range map[string]string{"shop": "critical alerts firing: shop/A", "openshift-*": "critical alerts firing: openshift-etcd/B", "*": "critical alerts firing: openshift-etcd/B, shop/A"} {
		report := checks.Runner{Reader: r, Live: r, Sources: shared, Options: checks.GateOptions{AlertNamespaces: []string{namespace}}}.Run(t.Context(), noon)
		if !strings.HasSuffix(report.Message(), want) {
			t.Errorf("namespace %s: got %s", namespace, report.Message())
		}
	}
	if p.queries != 1 {
		t.Errorf("%d queries", p.queries)
	}
}

// An unresponsive source costs the timeout of only a few queries.
func TestCustomQueriesThatFail(t *testing.T) {
	t.Parallel()
	r, p := simulation.NewFakeClient(t), &prometheus{err: errors.New("no complete response in time")}
	options := checks.GateOptions{Checks: []string{checks.NameQueries}, Queries: []string{"a", "b", "c", "d", "e"}}
	runner := checks.Runner{Reader: r, Live: r, Sources: sources(p), Options: options}
	for range 2 {
		report := runner.Run(t.Context(), noon)
		if err := report.Error(); report.Healthy() || err == nil || !strings.Contains(err.Error(), "custom query c: no complete response in time") {
			t.Errorf("got %v", err)
		}
	}
	if p.custom != 3 {
		t.Errorf("%d queries", p.custom)
	}
}

// Each query is sent at most once per interval, regardless of how many different queries there are.
func TestManyCustomQueries(t *testing.T) {
	t.Parallel()
	const limit = 4096
	r, p, clk := simulation.NewFakeClient(t), &prometheus{}, testingclock.NewFakePassiveClock(noon)
	shared := &checks.Sources{Prometheus: p, Clock: clk, Interval: time.Minute}
	runWith := func(first, count int) checks.GateReport {
		options := checks.GateOptions{Checks: []string{checks.NameQueries}}
		for i := range count {
			options.Queries = append(options.Queries, fmt.Sprintf("up == %d", first+i))
		}
		return checks.Runner{Reader: r, Live: r, Sources: shared, Options: options}.Run(t.Context(), noon)
	}
	for range 2 {
		if report := runWith(0, limit); !report.Healthy() {
			t.Fatalf("got %v", report.Error())
		}
	}
	if report := runWith(limit, 1); report.Healthy() || report.Err == nil || !strings.Contains(report.Err.Error(), "more than 4096 different queries are in use") {
		t.Errorf("one query too many: got %v", report.Err)
	}
	if p.custom != limit {
		t.Errorf("%d queries are sent", p.custom)
	}
	clk.SetTime(noon.Add(3 * time.Minute))
	if report := runWith(limit, 1); !report.Healthy() {
		t.Errorf("once the others are unused: got %v", report.Error())
	}
}

// A confirmation reads from the API server, where the operator may only have permission to get the
// ClusterVersion.
func TestConfirmation_gets_only_the_ClusterVersion(t *testing.T) {
	t.Parallel()
	r := simulation.NewFakeClient(t, healthyCluster()...)
	live := interceptor.NewClient(r, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
		if _, ok := object.(*configv1.ClusterVersion); !ok {
			return fmt.Errorf("forbidden: get %T", object)
		}
		return c.Get(ctx, key, object, opts...)
	}})
	runner := checks.Runner{Reader: live, Live: live, Sources: sources(&prometheus{}), Options: checks.GateOptions{PDBNamespaces: []string{"*"}}}
	if report := runner.Run(t.Context(), noon); !report.Healthy() {
		t.Errorf("got %+v", report)
	}
}

// Only blocking findings are confirmed. A healthy cluster is not read again, and neither is one after an
// error.
func TestConfirm(t *testing.T) {
	t.Parallel()
	r := simulation.NewFakeClient(t, healthyCluster()...)
	live := simulation.WithReadErrors(r, errors.New("not reachable"), func(any) bool { return true })
	runner := checks.Runner{Reader: r, Live: live, Sources: sources(&prometheus{})}
	blocking := []checks.Finding{{Level: checks.LevelError, Summary: "s"}}
	for name, tc := range map[string]struct {
		report    checks.GateReport
		confirmed bool
	}{
		"healthy":         {checks.GateReport{}, false},
		"noted":           {checks.GateReport{Findings: []checks.Finding{{Level: checks.LevelInfo, Summary: "s"}}}, false},
		"blocked":         {checks.GateReport{Findings: blocking}, true},
		"an error":        {checks.GateReport{Err: errors.New("before")}, false},
		"error, blocking": {checks.GateReport{Findings: blocking, Err: errors.New("before")}, false},
	} {
		got := runner.Confirm(t.Context(), tc.report)
		if confirmed := got.Err != nil && strings.Contains(got.Err.Error(), "not reachable"); confirmed != tc.confirmed {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// Objects that are not cached are listed at most once per interval.
func TestGate_that_is_quiet_makes_no_request(t *testing.T) {
	t.Parallel()
	r := simulation.NewFakeClient(t, healthyCluster(
		node("worker-1", cordonedOfMachine), machine(false), budget("a", selecting("app=etcd")), budget("b", selecting("tier=db")), budget("c", selecting("app=dns")),
	)...)
	live := &countingLister{Reader: r}
	shared := sources(&prometheus{})
	for range 10 {
		checks.Runner{Reader: r, Live: live, Sources: shared, Options: checks.GateOptions{PDBNamespaces: []string{"*"}}}.Run(t.Context(), noon)
	}
	if live.lists != 2 { // Machines and pods
		t.Errorf("%d requests", live.lists)
	}
}

// A node without a Machine, as on bare metal, causes no Machine requests.
func TestNodesWithoutMachines(t *testing.T) {
	t.Parallel()
	r := simulation.NewFakeClient(t, healthyCluster(node("worker-1", func(n *corev1.Node) { n.Spec.Unschedulable = true }))...)
	live := &countingLister{Reader: r}
	report := checks.Runner{Reader: r, Live: live, Sources: sources(&prometheus{})}.Run(t.Context(), noon)
	if report.Healthy() || live.lists > 0 {
		t.Errorf("%d requests, and %+v", live.lists, report)
	}
}

// The reason given by an operator is shown next to its name.
func TestReasonsOfOperators(t *testing.T) {
	t.Parallel()
	down, degraded := healthyOperator("dns"), healthyOperator("etcd")
	down.Status.Conditions[0].Status, down.Status.Conditions[0].Reason = configv1.ConditionFalse, "NoPods"
	degraded.Status.Conditions[1].Status, degraded.Status.Conditions[1].Reason = configv1.ConditionTrue, "QuorumLost"
	r := simulation.NewFakeClient(t, healthyCluster(down, degraded)...)
	got := map[string]string{}
	for _, f := range (checks.Runner{Reader: r, Live: r, Sources: sources(&prometheus{}), Options: checks.GateOptions{Checks: []string{checks.NameOperators}}}).Run(t.Context(), noon).Findings {
		got[f.Reason+" "+f.Resources[0].Name] = f.Description
	}
	if diff := cmp.Diff(map[string]string{"OperatorUnavailable dns": "NoPods", "OperatorDegraded etcd": "QuorumLost"}, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

type countingLister struct {
	client.Reader
	lists int
}

func (c *countingLister) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.lists++
	return c.Reader.List(ctx, list, opts...)
}

// pausedPools returns pools paused in different ways. Only the pool night will be unpaused.
func pausedPools() []client.Object {
	var pools []client.Object
	for name, mark := range map[string]string{
		"night": "uid/1/2027-03-02T22:00:00Z/2027-03-02T23:00:00Z", "day": "uid/1/never/2027-03-02T22:00:00Z",
		"forged": "uid/1/2027-03-02T22:00:00Z/", "user": "",
	} {
		pools = append(pools, pool(name, func(p *mcfgv1.MachineConfigPool) {
			p.Spec.Paused = true
			p.Annotations = map[string]string{clusterstate.AnnotationPausedBy: mark}
		}))
	}
	return pools
}

func TestIsInstalled(t *testing.T) {
	t.Parallel()
	target := clusterstate.Target{Version: "4.4.6"}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    bool
	}{
		"everywhere":           {nil, true},
		"not on a node":        {[]client.Object{node("worker-1", func(n *corev1.Node) { n.Annotations["machineconfiguration.openshift.io/currentConfig"] = "rendered-1" })}, false},
		"not in a pool":        {[]client.Object{pool("worker", func(p *mcfgv1.MachineConfigPool) { p.Status.UpdatedMachineCount = 0 })}, false},
		"not in a paused pool": {[]client.Object{pool("worker", func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true })}, false},
		"not by the machine config operator": {[]client.Object{func() client.Object {
			o := healthyOperator("machine-config")
			o.Status.Versions[0].Version = "4.4.5"
			return o
		}()}, false},
		"not completely on the control plane": {[]client.Object{clusterVersion(func(v *configv1.ClusterVersion) { v.Status.History[0].State = configv1.PartialUpdate })}, false},
		"not at all":                          {[]client.Object{clusterVersion(func(v *configv1.ClusterVersion) { v.Status.History[0].Version = "4.4.5" })}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := simulation.NewFakeClient(t, healthyCluster(tc.objects...)...)
			if got, err := checks.IsInstalled(t.Context(), r, target); err != nil || got != tc.want {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
	broken := errors.New("the connection was refused")
	r := simulation.WithReadErrors(simulation.NewFakeClient(t, healthyCluster()...), broken, func(o any) bool { _, is := o.(*mcfgv1.MachineConfigPoolList); return is })
	if got, err := checks.IsInstalled(t.Context(), r, target); !errors.Is(err, broken) || got {
		t.Errorf("without pools: got %t, %v", got, err)
	}
}

// If something cannot be determined, the report is not healthy even without findings.
func TestRunner_observes_what_is_unknown(t *testing.T) {
	t.Parallel()
	r := simulation.NewFakeClient(t, healthyCluster(operator("dns", configv1.OperatorAvailable))...)
	s, got := sources(&prometheus{}), map[string]bool{}
	s.Observe = func(check string, ok bool, _ time.Time) { got[check] = ok }
	checks.Runner{Reader: r, Live: r, Sources: s}.Run(t.Context(), noon)
	if ok, observed := got[checks.NameOperators]; ok || !observed || !got[checks.NamePools] {
		t.Errorf("observed %v", got)
	}
}

// allBut returns the names of all rules except one.
func allBut(name string) []string {
	var names []string
	for _, rule := range checks.Rules() {
		if rule.Name != name {
			names = append(names, rule.Name)
		}
	}
	return names
}

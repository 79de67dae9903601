// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// kindOf returns the kind of an object or list, with the group if it has no Go type.
func kindOf(objectOrList any) string {
	if o, ok := objectOrList.(interface {
		GroupVersionKind() schema.GroupVersionKind
	}); ok && o.GroupVersionKind().Kind != "" {
		return strings.TrimSuffix(o.GroupVersionKind().Kind, "List") + "." + o.GroupVersionKind().Group
	}
	name := fmt.Sprintf("%T", objectOrList)
	return strings.TrimSuffix(name[strings.LastIndex(name, ".")+1:], "List")
}

// requests counts requests by verb and kind.
type requests map[string]int

// counting returns a reader that counts requests, not counting further pages, and returns errors for some
// kinds.
func counting(tb testing.TB, objects []client.Object, counted requests, errs map[string]error) client.Reader {
	tb.Helper()
	return interceptor.NewClient(simulation.NewFakeClient(tb, objects...), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			kind := kindOf(object)
			counted["get "+kind]++
			if err := errs[kind]; err != nil {
				return err
			}
			return c.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			kind := kindOf(list)
			if (&client.ListOptions{}).ApplyOptions(opts).Continue == "" {
				counted["list "+kind]++
			}
			if err := errs[kind]; err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	})
}

func (r requests) lists() (n int) {
	for request, count := range r {
		if strings.HasPrefix(request, "list ") {
			n += count
		}
	}
	return n
}

func TestGather_reads_each_source(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.drain("worker", "worker-0", time.Minute)
	c.addPDB("shop", "api", "api", 0)
	c.prometheus = &fakePrometheus{alerts: []clusterstate.Alert{fire("A", "warning")}}
	facts := c.facts(t)
	want := []checks.FactSource{
		"ClusterVersion", "operators", "nodes", "pools", "machine configs", "disruption budgets", "UpgradeConfigs", "UpgradeJobs",
		"MachineSets", "MachineSets of Cluster API", "MachineDeployments", "NodePools", "builds of OS images", "pods", "alerts",
	}
	if diff := cmp.Diff(want, facts.Read); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if len(facts.Missing) > 0 || !facts.Complete() {
		t.Errorf("missing: %v", facts.Missing)
	}
	if len(facts.Operators) != 2 || len(facts.Nodes) != 6 || len(facts.Pools) != 2 || len(facts.Configs) != 4 || len(facts.PDBs) != 1 || len(facts.Alerts) != 1 {
		t.Errorf("facts are missing: %+v", facts)
	}
}

func TestGather_reports_what_is_missing(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
	notServed := &meta.NoKindMatchError{}
	const allowed = "you are not allowed to list them"
	cases := map[string]struct {
		kind     string
		err      error
		source   checks.FactSource
		want     checks.Missing
		complete bool
	}{
		"ClusterVersion is forbidden": {"ClusterVersion.config.openshift.io", forbidden, checks.SourceClusterVersion, checks.Missing{Reason: "Forbidden", Message: "you are not allowed to get it"}, false},
		"no ClusterVersion": {
			"ClusterVersion.config.openshift.io", apierrors.NewNotFound(schema.GroupResource{Resource: "clusterversions"}, "version"), checks.SourceClusterVersion,
			checks.Missing{Reason: "NotFound", Message: `clusterversions "version" not found`},
			false,
		},
		"operators are not served":     {"ClusterOperator", notServed, checks.SourceOperators, checks.Missing{Reason: "NotInstalled", Message: "the API server does not serve this kind"}, false},
		"nodes are forbidden":          {"Node", forbidden, checks.SourceNodes, checks.Missing{Reason: "Forbidden", Message: allowed}, false},
		"nodes time out":               {"Node", context.DeadlineExceeded, checks.SourceNodes, checks.Missing{Reason: "Unavailable", Message: "no answer in time"}, false},
		"pools are not served":         {"MachineConfigPool", notServed, checks.SourcePools, checks.Missing{Reason: "NotInstalled", Message: "the API server does not serve this kind"}, false},
		"pools are not readable":       {"MachineConfigPool", errors.New("connection refused"), checks.SourcePools, checks.Missing{Reason: "Unavailable", Message: "listing the machine config pools: connection refused"}, false},
		"configurations are forbidden": {"MachineConfig.machineconfiguration.openshift.io", forbidden, checks.SourceConfigs, checks.Missing{Reason: "Forbidden", Message: allowed}, true},
		"budgets are forbidden":        {"PodDisruptionBudget", forbidden, checks.SourcePDBs, checks.Missing{Reason: "Forbidden", Message: allowed}, true},
		"pods are forbidden":           {"Pod.", forbidden, checks.SourcePods, checks.Missing{Reason: "Forbidden", Message: allowed}, true},
		"UpgradeJobs are not served":   {"UpgradeJob", notServed, checks.SourceUpgradeJobs, checks.Missing{}, true},
		"MachineSets are not served":   {"MachineSet.machine.openshift.io", notServed, checks.SourceMachineSets, checks.Missing{}, true},
		"NodePools are forbidden":      {"NodePool.hypershift.openshift.io", forbidden, checks.SourceNodePools, checks.Missing{Reason: "Forbidden", Message: allowed}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.drain("worker", "worker-0", time.Minute)
			facts := gather(t, counting(t, c.objects(), requests{}, map[string]error{tc.kind: tc.err}), &fakePrometheus{})
			if diff := cmp.Diff(tc.want, facts.Missing[tc.source]); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			if facts.Has(tc.source) != (tc.want == checks.Missing{}) || facts.Complete() != tc.complete {
				t.Errorf("has %t, complete %t", facts.Has(tc.source), facts.Complete())
			}
		})
	}
}

// A cluster without the machine config operator has no pools.
func TestGather_of_a_cluster_without_pools(t *testing.T) {
	t.Parallel()
	c := newCluster()
	delete(c.operators, "machine-config")
	facts := gather(t, counting(t, c.objects(), requests{}, map[string]error{"MachineConfigPool": &meta.NoKindMatchError{}}), nil)
	if !facts.Has(checks.SourcePools) || !facts.Complete() {
		t.Errorf("missing: %v", facts.Missing)
	}
}

func TestGather_alerts(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change     func(*cluster)
		prometheus *fakePrometheus
		phase      checks.RulePhase
		queries    int
		missing    string
	}{
		"while an update is in progress":         {func(*cluster) {}, &fakePrometheus{}, checks.Update, 1, ""},
		"while none is":                          {func(c *cluster) { c.complete(); updateAll(c) }, &fakePrometheus{}, checks.Update, 0, ""},
		"for pre-checks":                         {func(c *cluster) { c.complete(); updateAll(c) }, &fakePrometheus{}, checks.Plan, 1, ""},
		"without Prometheus":                     {func(*cluster) {}, nil, checks.Update, 0, "NotConfigured"},
		"with a Prometheus that does not answer": {func(*cluster) {}, &fakePrometheus{err: errors.New("down")}, checks.Update, 1, "Unavailable"},
		"with a Prometheus behind a Route where there are none": {
			func(*cluster) {}, &fakePrometheus{err: fmt.Errorf("finding Prometheus: %w", &meta.NoKindMatchError{})}, checks.Update, 1, "Unavailable",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			tc.change(c)
			readers := checks.Readers{Clock: clocktesting.NewFakePassiveClock(now)}
			readers.Reader = simulation.NewFakeClient(t, c.objects()...)
			readers.Live = readers.Reader
			if tc.prometheus != nil {
				readers.Prometheus = tc.prometheus
			}
			facts := checks.Gather(t.Context(), tc.phase, readers)
			if got := facts.Missing[checks.SourceAlerts].Reason; got != tc.missing {
				t.Errorf("missing: got %q, want %q", got, tc.missing)
			}
			if tc.prometheus != nil && tc.prometheus.queries != tc.queries {
				t.Errorf("%d queries, want %d", tc.prometheus.queries, tc.queries)
			}
		})
	}
}

// Pods and alerts are read once a minute. Errors count as answers.
func TestGather_reads_pods_and_alerts_once_a_minute(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"answers": nil, "errors": errors.New("down")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.drain("worker", "worker-0", time.Minute)
			counted, prometheus := requests{}, &fakePrometheus{err: failure}
			reader := counting(t, c.objects(), counted, map[string]error{"Pod.": failure})
			clock := clocktesting.NewFakePassiveClock(now)
			readers := checks.Readers{Reader: reader, Live: reader, Prometheus: prometheus, Clock: clock, Sources: checks.NewSources(clock)}
			for _, step := range []struct {
				at   time.Duration
				want int
			}{{0, 1}, {59 * time.Second, 1}, {time.Minute, 2}, {time.Second, 3}} { // finally, the clock is set back
				clock.SetTime(now.Add(step.at))
				facts := checks.Gather(t.Context(), checks.Update, readers)
				if counted["list Pod."] != step.want || prometheus.queries != step.want {
					t.Errorf("after %s: %d lists of pods and %d queries, want %d", step.at, counted["list Pod."], prometheus.queries, step.want)
				}
				if facts.Has(checks.SourcePods) != (failure == nil) || facts.Has(checks.SourceAlerts) != (failure == nil) {
					t.Errorf("after %s: missing %v", step.at, facts.Missing)
				}
			}
		})
	}
}

// The number of lists does not grow with the number of nodes or drains.
func TestGather_makes_few_requests(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		workers, draining int
		notServed         []string
		cached            bool
		lists, read       int
	}{
		"50 nodes, everything is installed":   {50, 5, nil, false, 12, 1},
		"2000 nodes, everything is installed": {2000, 200, nil, false, 12, 1},
		"50 nodes, only MachineSets are":      {50, 5, []string{"MachineSet.cluster.x-k8s.io", "MachineDeployment.cluster.x-k8s.io", "NodePool.hypershift.openshift.io"}, false, 14, 3},
		"50 nodes, from the cache":            {50, 20, nil, true, 22, 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			clear(c.nodes)
			for i := range tc.workers {
				name := fmt.Sprintf("worker-%04d", i)
				c.addNode("worker", name)
				if i < tc.draining {
					c.drain("worker", name, time.Duration(i)*time.Second)
				}
			}
			notServed := map[string]error{}
			for _, kind := range tc.notServed {
				notServed[kind] = &meta.NoKindMatchError{}
			}
			counted := requests{}
			reader := counting(t, c.objects(), counted, notServed)
			facts := checks.Gather(t.Context(), checks.Update, checks.Readers{
				Reader: reader, Live: reader, Prometheus: &fakePrometheus{}, Clock: clocktesting.NewFakePassiveClock(now), Cached: tc.cached,
			})
			if got := counted.lists(); got != tc.lists { // kinds that are not served cost no request
				t.Errorf("%d lists, want %d: %v", got, tc.lists, counted)
			}
			read := 0
			for node, drain := range facts.Drains {
				if drain.Read {
					read++
				}
				if longest := fmt.Sprintf("worker-%04d", tc.draining-1); node == longest && !drain.Read {
					t.Error("the longest drain is not read")
				}
			}
			if read != tc.read || len(facts.Drains) != tc.draining {
				t.Errorf("%d of %d drains are read, want %d of %d", read, len(facts.Drains), tc.read, tc.draining)
			}
		})
	}
}

// The pods of a namespace are read if one of its budgets blocks a long drain, within the list limit.
func TestGather_reads_the_pods_of_a_budget(t *testing.T) {
	t.Parallel()
	notServed := map[string]error{}
	for _, kind := range []string{"MachineSet.cluster.x-k8s.io", "MachineDeployment.cluster.x-k8s.io", "NodePool.hypershift.openshift.io"} {
		notServed[kind] = &meta.NoKindMatchError{}
	}
	for name, tc := range map[string]struct {
		since     time.Duration
		budget    bool
		notServed map[string]error
		want      []string // of the pods
		lists     int      // of pods
	}{
		"long drain":              {11 * time.Minute, true, notServed, []string{"api-1", "api-2"}, 2},
		"short drain":             {9 * time.Minute, true, notServed, nil, 1},
		"pod without a budget":    {11 * time.Minute, false, notServed, nil, 1},
		"everything is installed": {11 * time.Minute, true, nil, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.drain("worker", "worker-0", tc.since)
			c.addPod("api-1", "api", "worker-0")
			c.addPod("api-2", "api", "worker-1")
			c.addPod("web", "web", "worker-1")
			if tc.budget {
				c.addPDB("shop", "api", "api", 0)
			}
			counted := requests{}
			sources := checks.NewSources(clocktesting.NewFakePassiveClock(now))
			for range 2 {
				reader := counting(t, c.objects(), counted, tc.notServed)
				facts := checks.Gather(t.Context(), checks.Update, checks.Readers{
					Reader: reader, Live: reader, Clock: clocktesting.NewFakePassiveClock(now), Sources: sources,
				})
				var got []string
				for _, pod := range facts.BudgetPods["shop"] {
					got = append(got, pod.Name)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" || counted["list Pod."] != tc.lists {
					t.Errorf("%d lists of pods, want %d; pods (-want +got):\n%s", counted["list Pod."], tc.lists, diff)
				}
			}
		})
	}
}

// Pre-checks compare budgets by their selectors. If these are inconclusive, the pods of the namespace decide.
// They are read once a minute.
func TestGather_compares_budgets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		namespaces int // with two budgets whose selectors are inconclusive
		phase      checks.RulePhase
		forbidden  bool
		want       int // of pairs
		uncompared int
		lists      int // of pods
	}{
		"pre-checks":                        {2, checks.Plan, false, 2, 0, 2},
		"the status of an update":           {2, checks.Update, false, 0, 0, 0},
		"more namespaces than are read":     {10, checks.Plan, false, 8, 2, 8},
		"pods that may not be listed":       {2, checks.Plan, true, 0, 2, 2},
		"budgets that their status decides": {0, checks.Plan, false, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.complete()
			updateAll(c)
			for i := range tc.namespaces {
				for _, b := range []string{"a", "b"} {
					c.addPDB(fmt.Sprintf("shop-%d", i), b, "api", 0)
				}
				c.addPod("api-1", "api", "worker-0").Namespace = fmt.Sprintf("shop-%d", i)
			}
			for _, other := range c.others {
				if b, is := other.(*policyv1.PodDisruptionBudget); is { // as before the pods were created
					b.Status = policyv1.PodDisruptionBudgetStatus{}
				}
			}
			if tc.namespaces == 0 {
				c.addPDB("shop", "a", "api", 1)
				c.addPDB("shop", "b", "api", 1)
			}
			errs := map[string]error{}
			if tc.forbidden {
				errs["Pod."] = apierrors.NewForbidden(schema.GroupResource{}, "", nil)
			}
			counted := requests{}
			sources := checks.NewSources(clocktesting.NewFakePassiveClock(now))
			for range 2 {
				reader := counting(t, c.objects(), counted, errs)
				facts := checks.Gather(t.Context(), tc.phase, checks.Readers{
					Reader: reader, Live: reader, Prometheus: &fakePrometheus{}, Clock: clocktesting.NewFakePassiveClock(now), Sources: sources,
				})
				if len(facts.PDBOverlaps) != tc.want || len(facts.UncomparedPDBs) != tc.uncompared || counted["list Pod."] != tc.lists {
					t.Errorf("%d pairs, %d namespaces not compared, %d lists", len(facts.PDBOverlaps), len(facts.UncomparedPDBs), counted["list Pod."])
				}
			}
		})
	}
}

// Pods are read only for nodes that are being drained for the update.
func TestGather_reads_no_pods_while_idle(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.complete()
	updateAll(c)
	c.addConfig("rendered-worker-kubelet", newRelease, time.Minute)
	c.pools["worker"].Spec.Configuration.Name = "rendered-worker-kubelet"
	c.annotate("worker-0", "desiredConfig", "rendered-worker-kubelet", "state", "Working", "desiredDrain", "drain-rendered-worker-kubelet")
	c.cordon("worker-0", time.Hour)
	counted := requests{}
	if facts := gather(t, counting(t, c.objects(), counted, nil), nil); len(facts.Drains) > 0 || counted["list Pod."] > 0 {
		t.Errorf("drains %v, requests %v", facts.Drains, counted)
	}
}

func TestGather_reads_version_management(t *testing.T) {
	t.Parallel()
	managed := map[string]any{"pausedUntil": "true"}
	c := newCluster()
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineSet",
		"metadata": map[string]any{"namespace": "ns", "name": "a-1", "uid": "u", "ownerReferences": []any{map[string]any{
			"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment", "name": "a", "uid": "d", "controller": true,
		}}},
		"spec": map[string]any{"versionManagement": managed, "template": map[string]any{"spec": map[string]any{"version": "v4.20.5"}}},
	}}
	world := simulation.New(simulation.WorldOptions{})
	if err := world.Add(append(c.objects(), set)...); err != nil {
		t.Fatal(err)
	}
	reader := interceptor.NewClient(world.Client("test"), interceptor.Funcs{
		Get: func(ctx context.Context, cl client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			err := cl.Get(ctx, key, object, opts...)
			if u, ok := object.(*unstructured.Unstructured); ok && err == nil { // the simulated object has the Go type
				err = unstructured.SetNestedMap(u.Object, managed, "spec", "versionManagement")
			}
			return err
		},
	})
	facts := gather(t, reader, nil)
	if diff := cmp.Diff(any(managed), facts.VersionManagement); diff != "" {
		t.Errorf("of the ClusterVersion (-want +got):\n%s", diff)
	}
	if len(facts.MachinePools) != 1 {
		t.Fatalf("got %v", facts.MachinePools)
	}
	got := facts.MachinePools[0]
	if diff := cmp.Diff(any(managed), got.VersionManagement); diff != "" {
		t.Errorf("of the MachineSet (-want +got):\n%s", diff)
	}
	if got.Deployment != "a" || got.Version != "v4.20.5" || got.UID != "u" || got.APIVersion != "cluster.x-k8s.io/v1beta1" || got.Resource.String() != "ns/a-1" {
		t.Errorf("got %+v", got)
	}
}

// The progress of a pool's machines is read from its controller's report.
func TestGather_reads_the_rollout_of_machines(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind         string
		spec, status map[string]any
		updating     bool
		unknown      string
	}{
		"up to date":              {"MachineSet", map[string]any{"replicas": int64(2)}, map[string]any{"observedGeneration": int64(1), "replicas": int64(2), "upToDateReplicas": int64(2)}, false, ""},
		"one machine is outdated": {"MachineSet", map[string]any{"replicas": int64(2)}, map[string]any{"observedGeneration": int64(1), "replicas": int64(2), "upToDateReplicas": int64(1)}, true, ""},
		"a surplus machine":       {"MachineSet", map[string]any{"replicas": int64(1)}, map[string]any{"observedGeneration": int64(1), "replicas": int64(2), "upToDateReplicas": int64(1)}, true, ""},
		"no machines":             {"MachineSet", map[string]any{"replicas": int64(0)}, map[string]any{"observedGeneration": int64(1)}, false, ""},
		"not observed":            {"MachineSet", map[string]any{"replicas": int64(2)}, map[string]any{"upToDateReplicas": int64(2)}, false, "its controller has not observed it yet"},
		"an outdated report":      {"MachineSet", map[string]any{"replicas": int64(2)}, map[string]any{"observedGeneration": int64(0), "upToDateReplicas": int64(2)}, false, "its controller has not observed it yet"},
		"no number of replicas":   {"MachineSet", map[string]any{}, map[string]any{"observedGeneration": int64(1)}, false, "it names no number of replicas"},
		"no report":               {"MachineSet", map[string]any{"replicas": int64(2)}, map[string]any{"observedGeneration": int64(1), "updatedReplicas": int64(2)}, false, "it does not report how many machines are up to date"},
		"a Deployment's report":   {"MachineDeployment", map[string]any{"replicas": int64(2)}, map[string]any{"observedGeneration": int64(1), "updatedReplicas": int64(1)}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.spec["template"] = map[string]any{"spec": map[string]any{"version": "v4.20.5"}}
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": tc.kind, "metadata": map[string]any{"namespace": "ns", "name": "a", "generation": int64(1)},
				"spec": tc.spec, "status": tc.status,
			}}
			c := newCluster()
			c.others = append(c.others, object)
			facts := c.facts(t)
			if len(facts.MachinePools) != 1 {
				t.Fatalf("got %+v", facts.MachinePools)
			}
			if got := facts.MachinePools[0]; got.Updating != tc.updating || got.Unknown != tc.unknown || got.Version != "v4.20.5" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A pool lacks nodes if it counts more machines than there are nodes and some of them may be outdated.
func TestMissingNodes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		machines int32
		updated  bool
		want     string
	}{
		"as many machines as nodes":        {3, false, ""},
		"fewer machines than nodes":        {2, false, ""},
		"more machines than nodes":         {5, false, "it has 5 machines, but 3 nodes are known"},
		"more machines, which are updated": {5, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.complete()
			pool := c.pools["worker"]
			pool.Status.MachineCount = tc.machines
			if tc.updated {
				pool.Status.UpdatedMachineCount, pool.Status.Configuration.Name = tc.machines, rendered("worker", newRelease)
				pool.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
			}
			facts := c.facts(t)
			for i, p := range facts.Rollouts() {
				if got := facts.MissingNodes(&facts.Rollouts()[i]); p.Pool.Name == "worker" && got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				if p.Joining = int(p.Pool.Machines); facts.MissingNodes(&p) != "" { // joining nodes are known
					t.Errorf("with nodes that join, %s", facts.MissingNodes(&p))
				}
			}
		})
	}
}

// The pods of a node are dropped once it is no longer being drained, so another drain starts from scratch.
func TestGather_forgets_pods(t *testing.T) {
	t.Parallel()
	counted, clock := requests{}, clocktesting.NewFakePassiveClock(now)
	sources := checks.NewSources(clock)
	for i, draining := range []bool{true, true, false, true} {
		c := newCluster()
		if draining {
			c.drain("worker", "worker-0", time.Minute)
		}
		reader := counting(t, c.objects(), counted, nil)
		checks.Gather(t.Context(), checks.Update, checks.Readers{Reader: reader, Live: reader, Clock: clock, Sources: sources})
		if want := []int{1, 1, 1, 2}[i]; counted["list Pod."] != want {
			t.Errorf("pass %d: %d lists of pods, want %d", i, counted["list Pod."], want)
		}
	}
}

// A NodePool counts as updating unless its condition says otherwise.
func TestGather_reads_the_rollout_of_node_pools(t *testing.T) {
	t.Parallel()
	condition := func(name, status string) any { return map[string]any{"type": name, "status": status} }
	for name, tc := range map[string]struct {
		conditions []any
		want       bool
	}{
		"no condition":      {nil, false},
		"updating":          {[]any{condition("Ready", "False"), condition("UpdatingVersion", "True")}, true},
		"unknown":           {[]any{condition("UpdatingVersion", "Unknown")}, true},
		"not updating":      {[]any{condition("Ready", "True"), condition("UpdatingVersion", "False")}, false},
		"another condition": {[]any{condition("UpdatingConfig", "True")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.others = append(c.others, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "NodePool", "metadata": map[string]any{"namespace": "ns", "name": "a"},
				"status": map[string]any{"version": "4.20.5", "conditions": tc.conditions},
			}})
			if got := c.facts(t).MachinePools; len(got) != 1 || got[0].Updating != tc.want || got[0].Version != "4.20.5" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

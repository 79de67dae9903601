// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package nodekeeper_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/nodekeeper"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	m.Run()
}

// offsetClock is the real clock plus an offset.
type offsetClock struct{ offset atomic.Int64 }

func (s *offsetClock) Now() time.Time                  { return time.Now().Add(time.Duration(s.offset.Load())) }
func (s *offsetClock) Since(t time.Time) time.Duration { return s.Now().Sub(t) }
func (s *offsetClock) advance(d time.Duration)         { s.offset.Add(int64(d)) }

// testEnv is a cluster with an upgrade in progress, and nodekeeper with the permissions of the
// operator's ServiceAccount.
type testEnv struct {
	tb         testing.TB
	cluster    *devcluster.Cluster
	userClient client.Client
	clock      *offsetClock
	registry   *prometheus.Registry
	requests   requestLog // of nodekeeper
	attempt    nodekeeper.Attempt
	reconciler *nodekeeper.Reconciler // the running one
}

// active implements nodekeeper.AttemptSource.Active.
func (k *testEnv) active(context.Context, client.Reader) ([]nodekeeper.Attempt, error) {
	return []nodekeeper.Attempt{k.attempt}, nil
}

// requestLog records all requests except those that fill a cache.
type requestLog struct {
	mu    sync.Mutex
	lines []string
}

// wrap returns a transport that records requests.
func (l *requestLog) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		query, parts := r.URL.Query(), strings.Count(r.URL.Path, "/")
		discovery := parts < 3 || parts == 3 && strings.HasPrefix(r.URL.Path, "/apis/")
		if !query.Has("watch") && query.Get("resourceVersion") != "0" && !discovery {
			l.mu.Lock()
			l.lines = append(l.lines, r.Method+" "+r.URL.Path+" "+query.Get("fieldSelector"))
			l.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// reset returns the requests since the last call.
func (l *requestLog) reset() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func start(tb testing.TB) *testEnv {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Dir: tb.TempDir(), Spec: openshiftsim.ClusterSpec{Masters: 1, Workers: 1}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			tb.Error(err)
		}
	})
	if err := cluster.Deploy(ctx, "../../.."); err != nil {
		tb.Fatal(err)
	}
	scheme, err := devcluster.Scheme()
	if err != nil {
		tb.Fatal(err)
	}
	if err := upgradev1alpha1.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}
	people, err := client.New(cluster.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		tb.Fatal(err)
	}
	return &testEnv{tb: tb, cluster: cluster, userClient: people, clock: &offsetClock{}, registry: prometheus.NewPedanticRegistry()}
}

// run runs nodekeeper until the test ends.
func (k *testEnv) run(settings config.NodeDrain) {
	k.tb.Helper()
	access, err := k.cluster.ServiceAccountConfig(k.tb.Context(), devcluster.OperatorNamespace, devcluster.OperatorServiceAccount)
	if err != nil {
		k.tb.Fatal(err)
	}
	access.QPS = -1
	access.WrapTransport = k.requests.wrap
	drainMetrics, err := metrics.NewDrains(k.registry, clusterstate.HoldReasons()...)
	if err != nil {
		k.tb.Fatal(err)
	}
	reconciler := &nodekeeper.Reconciler{
		Clock: k.clock, Metrics: drainMetrics,
		Config: func() config.NodeDrain { return settings },
		Sources: []nodekeeper.AttemptSource{{
			Kind:   manager.Kind{Object: &upgradev1alpha1.UpgradeConfig{}, Namespaces: []string{devcluster.OperatorNamespace}},
			Active: k.active,
		}},
	}
	controller := reconciler.Controller()
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme: k.userClient.Scheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, Cache: manager.CacheOptions(controller.Reads),
	})
	if err != nil {
		k.tb.Fatal(err)
	}
	reconciler.Events = &notify.Events{Client: mgr.GetClient(), Clock: k.clock}
	if err := manager.Add(mgr, controller); err != nil {
		k.tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(k.tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	k.tb.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			k.tb.Error(err)
		}
	})
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		k.tb.Fatal("the caches are not synced")
	}
	k.reconciler = reconciler
}

// upgrade starts an upgrade that has passed its point of no return.
func (k *testEnv) upgrade(pdbTimeout int32) {
	k.tb.Helper()
	cfg := &upgradev1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: "upgrade"},
		Spec: upgradev1alpha1.UpgradeConfigSpec{
			Type: "OSD", UpgradeAt: "2026-03-01T12:00:00Z", PDBForceDrainTimeout: &pdbTimeout,
			Desired: upgradev1alpha1.Update{Version: "4.20.6", Channel: "stable-4.20"},
		},
	}
	k.create(cfg)
	k.attempt = nodekeeper.Attempt{
		Version: "4.20.6", Key: string(cfg.UID), StartTime: time.Now().Add(-time.Hour), PDBTimeout: time.Duration(pdbTimeout) * time.Minute,
	}
}

// triggerReconcile makes nodekeeper reconcile the draining nodes by an event without a relevant
// change.
func (k *testEnv) triggerReconcile() {
	k.tb.Helper()
	cfg := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: "upgrade"}}
	k.patch(cfg, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/at":%q}}}`, time.Now()))
}

// addNode adds a node without a pool, so no controller but nodekeeper handles it.
func (k *testEnv) addNode(name string) {
	k.tb.Helper()
	const rendered = "rendered-edge-1"
	k.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		machineconfig.CurrentConfig: rendered, machineconfig.DesiredConfig: rendered, machineconfig.State: machineconfig.StateDone,
		machineconfig.DesiredDrain: "uncordon-" + rendered, machineconfig.LastAppliedDrain: "uncordon-" + rendered,
	}}})
}

// requestDrain requests the drain of a node. No daemon carries it out, so nodekeeper forces every
// pod that leaves the node.
func (k *testEnv) requestDrain(node string, since time.Time) {
	k.tb.Helper()
	k.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, fmt.Sprintf(
		`{"metadata":{"annotations":{%q:"drain-rendered-edge-2"}},"spec":{"unschedulable":true,"taints":[{"key":%q,"effect":"NoSchedule","timeAdded":%q}]}}`,
		machineconfig.DesiredDrain, corev1.TaintNodeUnschedulable, since.UTC().Format(time.RFC3339)))
}

// awaitSighting waits until nodekeeper has seen the drain of a node. If nodekeeper sees a drain
// late, the time of the drain counts from the sighting.
func (k *testEnv) awaitSighting(node string) {
	k.tb.Helper()
	k.eventually("nodekeeper has seen the drain", func() string {
		var cached corev1.Node
		if err := k.reconciler.Client.Get(k.tb.Context(), client.ObjectKey{Name: node}, &cached); err != nil || !clusterstate.DrainState(&cached).Active {
			return fmt.Sprintf("the cache does not show it (%v)", err)
		}
		if _, err := k.reconciler.Reconcile(k.tb.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&cached)}); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (k *testEnv) markDrained(node string) {
	k.tb.Helper()
	k.patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, fmt.Sprintf(`{"metadata":{"annotations":{%q:"drain-rendered-edge-2"}}}`, machineconfig.LastAppliedDrain))
}

// heartbeat updates the heartbeat of a node.
func (k *testEnv) heartbeat(name string, beat int) {
	k.tb.Helper()
	node := &corev1.Node{}
	if err := k.userClient.Get(k.tb.Context(), client.ObjectKey{Name: name}, node); err != nil {
		k.tb.Fatal(err)
	}
	before := node.DeepCopy()
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(time.Now().Add(time.Duration(beat) * time.Second))
	}
	if err := k.userClient.Status().Patch(k.tb.Context(), node, client.MergeFrom(before)); err != nil {
		k.tb.Fatal(err)
	}
}

func (k *testEnv) patch(object client.Object, with string) {
	k.tb.Helper()
	if err := k.userClient.Patch(k.tb.Context(), object, client.RawPatch("application/merge-patch+json", []byte(with))); err != nil {
		k.tb.Fatal(err)
	}
}

func (k *testEnv) create(objects ...client.Object) {
	k.tb.Helper()
	for _, object := range objects {
		if err := k.userClient.Create(k.tb.Context(), object); err != nil {
			k.tb.Fatal(err)
		}
	}
}

// pod returns a pod on that node with a grace period of 1 second.
func pod(node, namespace, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "shop", "tier": "web"}},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: new(int64(1)), AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "shop", Image: "shop"}},
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// budget returns a PDB that allows no disruption of the selected pods.
func budget(namespace, name string, selector *metav1.LabelSelector) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1000)), Selector: selector},
	}
}

func (k *testEnv) eventually(what string, holds func() string) {
	k.tb.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(k.tb.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = holds()
		return last == "", nil
	})
	if err != nil {
		k.tb.Fatalf("waiting until %s: %s (%v)", what, last, err)
	}
}

// remainingPods returns the pods on a node. A cross marks terminating ones.
func (k *testEnv) remainingPods(node string) string {
	k.tb.Helper()
	var pods corev1.PodList
	if err := k.userClient.List(k.tb.Context(), &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		k.tb.Fatal(err)
	}
	var names []string
	for _, p := range pods.Items {
		name := p.Namespace + "/" + p.Name
		if p.DeletionTimestamp != nil {
			name += "†"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (k *testEnv) waitForPods(node, want string) {
	k.tb.Helper()
	k.eventually("the right pods are left", func() string {
		return gocmp.Diff(strings.Join(slices.Sorted(slices.Values(strings.Fields(want))), " "), k.remainingPods(node))
	})
}

// waitUntilReady waits until all pods of a node are ready and the status of all PDBs is current.
func (k *testEnv) waitUntilReady() {
	k.tb.Helper()
	k.eventually("pods and budgets are settled", func() string {
		var pods corev1.PodList
		var budgets policyv1.PodDisruptionBudgetList
		for _, list := range []client.ObjectList{&pods, &budgets} {
			if err := k.userClient.List(k.tb.Context(), list); err != nil {
				k.tb.Fatal(err)
			}
		}
		ready := func(p corev1.Pod) bool {
			return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
		}
		for _, p := range pods.Items {
			if !ready(p) {
				return "pod " + p.Name + " is not ready"
			}
		}
		alone := func(b policyv1.PodDisruptionBudget) bool {
			return b.Namespace != devcluster.OperatorNamespace && b.Namespace != overlap
		}
		for _, b := range budgets.Items { // if PDBs overlap, one of them counts no pods
			if b.Status.ObservedGeneration != b.Generation || alone(b) && b.Status.ExpectedPods == 0 {
				return "budget " + b.Name + " is not accounted for"
			}
		}
		return ""
	})
}

// events returns the number of Events with that reason, by the kind and name of their object.
func (k *testEnv) events(reason string) map[string]int {
	k.tb.Helper()
	var list corev1.EventList
	if err := k.userClient.List(k.tb.Context(), &list); err != nil {
		k.tb.Fatal(err)
	}
	found := map[string]int{}
	for _, e := range list.Items {
		if e.Reason == reason {
			found[e.InvolvedObject.Kind+" "+e.InvolvedObject.Name] += int(max(1, e.Count))
		}
	}
	return found
}

// series returns the metrics that are not zero.
func (k *testEnv) series() map[string]float64 {
	k.tb.Helper()
	found := map[string]float64{}
	for _, s := range simulation.Gather(k.tb, k.registry) {
		if s.Value != 0 {
			found[s.Name+" "+s.Values[0]] = s.Value
		}
	}
	return found
}

// overlap is a namespace with two PDBs for the same pod.
const overlap = "overlap"

// TestDrain_with_the_real_Eviction_API drains nodes with all kinds of pods, protected in all ways
// by real PDBs.
func TestDrain_with_the_real_Eviction_API(t *testing.T) {
	t.Parallel()
	k := start(t)
	const node, dead = "edge-0", "edge-1"
	k.addNode(node)
	k.addNode(dead)
	for _, name := range []string{"guarded", "expression", "all", overlap, "free", "openshift-shop"} {
		k.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	shop := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "free", Name: "daemons"}, Spec: appsv1.DaemonSetSpec{
		Selector: shop, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: shop.MatchLabels}, Spec: pod("", "", "").Spec},
	}}
	k.create(daemons)
	k.create(
		budget("guarded", "labels", shop),
		budget("expression", "expression", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "data"}}, {Key: "app", Operator: metav1.LabelSelectorOpExists},
		}}),
		budget("all", "empty", &metav1.LabelSelector{}),
		budget(overlap, "one", shop), budget(overlap, "another", &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "web"}}),
		pod(node, "guarded", "guarded"),
		pod(node, "guarded", "unlike", func(p *corev1.Pod) { p.Labels = map[string]string{"tier": "web"} }),
		pod(node, "expression", "guarded"),
		pod(node, "all", "unlabelled", func(p *corev1.Pod) { p.Labels = nil }),
		pod(node, overlap, "guarded"),
		pod(node, "free", "plain"),
		pod(node, "free", "kept", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/keep"} }),
		pod(node, "free", "daemon", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: daemons.Name, UID: daemons.UID, Controller: new(true)}}
		}),
		pod(node, "free", "mirror", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }),
		pod(node, "openshift-shop", "platform"),
		pod(dead, "free", "hung"),
	)
	k.waitUntilReady()
	k.upgrade(120)
	k.run(config.NodeDrain{TimeOut: config.Duration{Duration: 45 * time.Minute}, IgnoreNamespaces: []string{"openshift-*"}})
	now := time.Now()
	k.requestDrain(node, now)
	k.requestDrain(dead, now)
	k.awaitSighting(node)
	k.awaitSighting(dead)
	k.cluster.Kubelets.SetDown(dead, true)
	const stays = "free/daemon free/kept† free/mirror openshift-shop/platform"

	k.requests.reset()
	for count := range 20 {
		k.heartbeat(node, count)
		k.triggerReconcile()
	}
	if requests := k.requests.reset(); len(requests) > 0 {
		t.Errorf("requests before the first deadline: %q", requests)
	}
	k.clock.advance(46 * time.Minute)
	k.triggerReconcile()
	k.waitForPods(node, "all/unlabelled expression/guarded guarded/guarded overlap/guarded "+stays)
	k.waitForPods(dead, "free/hung†")
	if events := k.events("DrainForced"); len(events) > 0 {
		t.Errorf("evictions are not forced, but Events were published: %v", events)
	}

	k.clock.advance(5 * time.Minute) // evicted pods should have terminated
	k.triggerReconcile()
	k.eventually("what keeps a pod is published", func() string {
		return gocmp.Diff(map[string]int{"Pod kept": 1, "Pod platform": 1, "Node edge-0": 2, "Pod hung": 1, "Node edge-1": 1}, k.events("DrainBlocked"))
	})
	k.waitForPods(dead, "free/hung†") // its node is not ready
	if events := k.events("DrainForced"); len(events) > 0 {
		t.Errorf("published %v", events)
	}
	k.cluster.Kubelets.SetDown(dead, false)
	k.waitForPods(dead, "")

	k.clock.advance(70 * time.Minute)
	k.triggerReconcile()
	k.waitForPods(node, stays)
	k.eventually("each forced pod is published", func() string {
		return gocmp.Diff(map[string]int{"Pod guarded": 3, "Pod unlabelled": 1, "Node edge-0": 4}, k.events("DrainForced"))
	})
	k.eventually("the metrics show it", func() string {
		return gocmp.Diff(map[string]float64{"forced_drains_total PodDisruptionBudget": 4, "node_drain_blocked edge-0": 1}, k.series())
	})

	for _, request := range k.requests.reset() {
		if strings.HasPrefix(request, "GET") && !strings.HasPrefix(request, "GET /api/v1/nodes/edge-") && !strings.HasPrefix(request, "GET /api/v1/pods spec.nodeName=edge-") {
			t.Errorf("a request that is not needed: %s", request)
		}
	}

	var kept corev1.Pod
	if err := k.userClient.Get(t.Context(), client.ObjectKey{Namespace: "free", Name: "kept"}, &kept); err != nil || len(kept.Finalizers) != 1 {
		t.Errorf("the pod has finalizers %v (%v)", kept.Finalizers, err)
	}
	k.patch(&kept, `{"metadata":{"finalizers":null}}`)
	k.markDrained(node)
	k.markDrained(dead)
	k.eventually("no series is left behind", func() string {
		return gocmp.Diff(map[string]float64{"forced_drains_total PodDisruptionBudget": 4}, k.series())
	})
}

// TestDrain_of_a_node_whose_taint_has_no_time expects the first sighting to be recorded on the
// node, and removed again.
func TestDrain_of_a_node_whose_taint_has_no_time(t *testing.T) {
	t.Parallel()
	k := start(t)
	k.addNode("edge-0")
	k.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, pod("edge-0", "shop", "plain"))
	k.waitUntilReady()
	k.upgrade(120)
	k.run(config.NodeDrain{TimeOut: config.Duration{Duration: 45 * time.Minute}})
	k.requestDrain("edge-0", time.Now())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-0"}}
	k.patch(node, fmt.Sprintf(`{"spec":{"taints":[{"key":%q,"effect":"NoSchedule"}]}}`, corev1.TaintNodeUnschedulable))
	noted := func() string {
		if err := k.userClient.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			t.Fatal(err)
		}
		return node.Annotations[nodekeeper.AnnotationDrainFirstSeen]
	}
	k.eventually("it is noted", func() string {
		if noted() == "" {
			return "it is not"
		}
		return ""
	})
	seen := noted()
	k.clock.advance(44 * time.Minute)
	k.triggerReconcile()
	k.waitForPods("edge-0", "shop/plain")
	k.clock.advance(2 * time.Minute)
	k.triggerReconcile()
	k.waitForPods("edge-0", "")
	if noted() != seen {
		t.Errorf("first it was seen at %s, and then at %s", seen, noted())
	}
	k.patch(node, `{"spec":{"unschedulable":null,"taints":null}}`)
	k.eventually("the note is gone", noted)
}

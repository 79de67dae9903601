// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// nodeName is the node that is being drained in these tests.
const nodeName = "worker-0"

// world is what there is around a Reconciler: an API server that does with pods
// what a real one does, the kubelet of a node, and a clock.
type world struct {
	t     *testing.T
	sim   *simulation.World
	api   client.WithWatch
	clock *testingclock.FakePassiveClock
	pods  map[string]*pod // by namespace and name

	config     config.NodeDrain
	attempts   []Attempt // the active ones
	registry   *prometheus.Registry
	reconciler *Reconciler // of this life of the process

	// fate decides what becomes of the operator's n-th write, from 1; nil means that all are applied.
	fate func(n int) fate
	// unseen are the budgets that the cache does not show yet.
	unseen map[string]bool
	// readError decides which reads fail.
	readError func(what string) error
	// refuse decides which evictions and deletions an admission webhook denies.
	refuse func(what string) error

	requests []string // that the operator has made
	writes   int      // how many of them were writes
}

// pod is a pod, and how its kubelet is with it.
type pod struct {
	metav1.PartialObjectMetadata

	grace        time.Duration // that it asks for
	shutdownTime time.Duration // to end; longer than its grace period is as long as that
	hung         bool          // its kubelet does nothing
}

// fate is what becomes of a write.
type fate int

const (
	applied fate = iota
	failed
	conflicting
	unanswered // although it was applied
	crashed    // the process has died before it
	dying      // the process dies after it
)

// death is what a dying process panics with.
type death struct{}

// newWorld is one in which the upgrade has passed its point of no return and
// the machine config operator has begun, at noon, to drain a node.
func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	sim := simulation.New(simulation.Options{})
	w := &world{
		t: t, sim: sim, api: sim.Client("test"), clock: testingclock.NewFakePassiveClock(noon), pods: map[string]*pod{},
		config: config.NodeDrain{TimeOut: config.Duration{Duration: 45 * time.Minute}, IgnoreNamespaces: []string{"openshift-*"}},
	}
	w.attempts = []Attempt{upgrading()}
	for _, object := range append(objects, draining()) {
		w.create(object)
	}
	w.restart()
	return w
}

// draining is a node that is being drained since noon.
func draining() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: "node-1", Annotations: map[string]string{
			"machineconfiguration.openshift.io/currentConfig": "r-1", "machineconfiguration.openshift.io/desiredConfig": "r-2",
			"machineconfiguration.openshift.io/state": "Working", "machineconfiguration.openshift.io/desiredDrain": "drain-r-2",
			"machineconfiguration.openshift.io/lastAppliedDrain": "uncordon-r-1",
		}},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{
			{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: noon}},
		}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// upgrading is the attempt of an upgrade that started at eleven.
func upgrading() Attempt {
	return Attempt{Version: "4.20.6", Key: "upgrade-1/2026-03-01T11:00:00Z", StartTime: at(-time.Hour), PDBTimeout: 2 * time.Hour}
}

// Active implements Attempts.
func (w *world) Active(context.Context) ([]Attempt, error) {
	return w.attempts, w.failure("active attempts")
}

// restart begins another life of the process.
func (w *world) restart() {
	w.registry = prometheus.NewPedanticRegistry()
	drainMetrics, err := metrics.NewDrains(w.registry)
	if err != nil {
		w.t.Fatal(err)
	}
	operatorClient := w.operatorClient()
	w.reconciler = &Reconciler{
		Client: operatorClient, Live: w.live(), Clock: w.clock, Attempts: w, Metrics: drainMetrics,
		Events: &notify.Events{Client: operatorClient, Clock: w.clock},
		Config: func() config.NodeDrain { return w.config },
	}
}

// live is the API server as it is read.
func (w *world) live() client.Reader {
	return interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if err := w.recordRead(fmt.Sprintf("get %T", obj)); err != nil {
				return err
			}
			return api.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := w.recordRead(fmt.Sprintf("list %T", list)); err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(w.pods)) {
				switch pods := list.(type) {
				case *metav1.PartialObjectMetadataList:
					pods.Items = append(pods.Items, *w.pods[name].DeepCopy())
				case *corev1.PodList:
					grace := int64(w.pods[name].grace.Seconds())
					pods.Items = append(pods.Items, corev1.Pod{ObjectMeta: *w.pods[name].ObjectMeta.DeepCopy(), Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace}})
				}
			}
			if _, ok := list.(*policyv1.PodDisruptionBudgetList); ok {
				return api.List(ctx, list, opts...)
			}
			return nil
		},
	})
}

// operatorClient is the operator's client: it reads from a cache, and its writes meet their fate.
func (w *world) operatorClient() client.Client {
	return interceptor.NewClient(w.api, interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := w.failure(fmt.Sprintf("cached %T", list)); err != nil {
				return err
			}
			err := api.List(ctx, list, opts...)
			if budgets, is := list.(*policyv1.PodDisruptionBudgetList); is {
				budgets.Items = slices.DeleteFunc(budgets.Items, func(b policyv1.PodDisruptionBudget) bool { return w.unseen[b.Name] })
			}
			return err
		},
		Create: func(ctx context.Context, api client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return w.write("create Event", func() error { return api.Create(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, api client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return w.write("patch Node", func() error { return api.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			var options client.DeleteOptions
			options.ApplyOptions(opts)
			return w.write("delete "+obj.GetNamespace()+"/"+obj.GetName(), func() error { return w.delete(obj, *options.AsDeleteOptions()) })
		},
		SubResourceCreate: func(ctx context.Context, _ client.Client, _ string, obj, sub client.Object, _ ...client.SubResourceCreateOption) error {
			return w.write("evict "+obj.GetNamespace()+"/"+obj.GetName(), func() error { return w.evict(ctx, obj, sub.(*policyv1.Eviction)) })
		},
	})
}

// recordRead notes a request for something, and says how it fails.
func (w *world) recordRead(what string) error {
	w.requests = append(w.requests, what)
	return w.failure(what)
}

func (w *world) failure(what string) error {
	if w.readError == nil {
		return nil
	}
	return w.readError(what)
}

// write has a write meet its fate.
func (w *world) write(what string, do func() error) error {
	w.requests = append(w.requests, what)
	w.writes++
	f := applied
	if w.fate != nil {
		f = w.fate(w.writes)
	}
	if w.refuse != nil {
		if err := w.refuse(what); err != nil {
			return err
		}
	}
	switch f {
	case failed:
		return apierrors.NewInternalError(errors.New("no"))
	case conflicting:
		return apierrors.NewConflict(schema.GroupResource{}, "", errors.New("somebody was faster"))
	case unanswered:
		if err := do(); err != nil {
			return err
		}
		return errors.New("connection reset by peer")
	case crashed:
		panic(death{})
	case dying:
		if err := do(); err != nil {
			return err
		}
		panic(death{})
	default:
		return do()
	}
}

// delete does with a pod what the API server does.
func (w *world) delete(obj client.Object, options metav1.DeleteOptions) error {
	name := obj.GetNamespace() + "/" + obj.GetName()
	p := w.pods[name]
	switch {
	case p == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, obj.GetName())
	case options.Preconditions == nil || options.Preconditions.UID == nil:
		w.t.Errorf("pod %s was to be deleted whoever it is", name)
	case *options.Preconditions.UID != p.UID:
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, obj.GetName(), errors.New("another one"))
	}
	grace := p.grace
	if options.GracePeriodSeconds != nil {
		grace = time.Duration(*options.GracePeriodSeconds) * time.Second
	}
	if p.DeletionTimestamp == nil || int64(grace.Seconds()) < *p.DeletionGracePeriodSeconds {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: w.clock.Now().Add(grace)}, new(int64(grace.Seconds()))
	}
	w.reap(name)
	return nil
}

// evict does with a pod what the API server does.
func (w *world) evict(ctx context.Context, obj client.Object, eviction *policyv1.Eviction) error {
	p := w.pods[obj.GetNamespace()+"/"+obj.GetName()]
	if p != nil && p.DeletionTimestamp == nil {
		guards := w.matchingPDBs(ctx, p)
		if len(guards) > 1 {
			return &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
				Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
			}}
		}
		if len(guards) == 1 && guards[0].Status.DisruptionsAllowed == 0 {
			err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
			return err
		}
	}
	return w.delete(obj, ptr.Deref(eviction.DeleteOptions, metav1.DeleteOptions{}))
}

func (w *world) matchingPDBs(ctx context.Context, p *pod) []policyv1.PodDisruptionBudget {
	var budgets policyv1.PodDisruptionBudgetList
	if err := w.api.List(ctx, &budgets, client.InNamespace(p.Namespace)); err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(budgets.Items, func(b policyv1.PodDisruptionBudget) bool {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		return err != nil || !selector.Matches(labels.Set(p.Labels))
	})
}

// reap is what the kubelet and the API server do with pods that were deleted.
func (w *world) reap(name string) {
	p := w.pods[name]
	if p.DeletionTimestamp == nil {
		return
	}
	grace := time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
	deleted := p.DeletionTimestamp.Add(-grace)
	if grace > 0 && !p.hung && !w.clock.Now().Before(deleted.Add(min(p.shutdownTime, grace))) {
		p.DeletionGracePeriodSeconds = new(int64(0))
	}
	if *p.DeletionGracePeriodSeconds == 0 && len(p.Finalizers) == 0 {
		delete(w.pods, name)
	}
}

// addPod adds a pod of the shop to the node. It asks for a grace period of 30 seconds and ends in ten.
func (w *world) addPod(name string, change ...func(*pod)) {
	p := &pod{grace: 30 * time.Second, shutdownTime: 10 * time.Second}
	p.Namespace, p.Name, p.UID = "shop", name, types.UID("uid-of-"+name)
	p.Labels = map[string]string{"app": name}
	for _, c := range change {
		c(p)
	}
	w.pods[p.Namespace+"/"+p.Name] = p
}

// budget guards the pods of the shop with one of these names, and lets none of them go.
func budget(name string, apps ...string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: apps}},
		}},
	}
}

// reconcile takes one look at the node. A process that dies begins another life.
func (w *world) reconcile() (next time.Duration, err error) {
	w.t.Helper()
	defer func() {
		switch r := recover(); r {
		case nil:
		case death{}:
			w.restart()
			err = errors.New("the process died")
		default:
			panic(r)
		}
	}()
	result, err := w.reconciler.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: nodeName}})
	return result.RequeueAfter, err
}

// runUntil plays until that time after noon, as a work queue would: looks are taken
// when the last one asked for the next, and soon after one that failed.
func (w *world) runUntil(until time.Duration) {
	w.t.Helper()
	for passes := 0; ; passes++ {
		next, err := w.reconcile()
		if err != nil {
			next = time.Second
		}
		if passes > 10_000 {
			w.t.Fatal("it never rests")
		}
		if next == 0 || w.clock.Now().Add(next).After(at(until)) {
			w.advance(at(until).Sub(w.clock.Now()))
			return
		}
		w.advance(next)
	}
}

// drainFor lets a drain last that long, without a pass since its first sighting was recorded.
func (w *world) drainFor(d time.Duration) {
	w.t.Helper()
	w.runUntil(15 * time.Minute)
	w.advance(d - 15*time.Minute)
	w.resetRequests()
}

// advance lets time pass, for the kubelet as well.
func (w *world) advance(d time.Duration) {
	w.clock.SetTime(w.clock.Now().Add(d))
	for name := range maps.Clone(w.pods) {
		w.reap(name)
	}
}

// resetRequests are the requests since the last time that this was asked.
func (w *world) resetRequests() []string {
	all := w.requests
	w.requests = nil
	return all
}

// remainingPods are the names of the pods that are there, those that are ending with a cross.
func (w *world) remainingPods() string {
	var names []string
	for _, p := range w.pods {
		name := p.Name
		if p.DeletionTimestamp != nil {
			name += "†"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// events are the Events as "reason kind name: message", sorted.
func (w *world) events() []string {
	w.t.Helper()
	var list corev1.EventList
	if err := w.api.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int {
		return cmp.Or(a.LastTimestamp.Compare(b.LastTimestamp.Time), cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(b.InvolvedObject.Kind, a.InvolvedObject.Kind), cmp.Compare(a.Message, b.Message))
	})
	var all []string
	for _, e := range list.Items {
		all = append(all, fmt.Sprintf("%s %s %s: %s", e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message))
	}
	return all
}

// series are what the metrics show, without those that are nothing.
func (w *world) series() map[string]float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if value := m.GetCounter().GetValue() + m.GetGauge().GetValue(); value != 0 {
				all[strings.TrimPrefix(family.GetName(), "managed_upgrade_")+" "+m.GetLabel()[0].GetValue()] = value
			}
		}
	}
	return all
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.sim.Add(obj); err != nil {
		w.t.Fatal(err)
	}
}

// changeNode changes the node as others do; a node with another UID replaces it.
func (w *world) changeNode(change func(*corev1.Node)) {
	w.t.Helper()
	node := w.node()
	uid := node.UID
	change(node)
	err := w.sim.Set(node)
	if node.UID != uid {
		err = errors.Join(w.api.Delete(w.t.Context(), w.node()), w.sim.Add(node))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) node() *corev1.Node {
	w.t.Helper()
	var node corev1.Node
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: nodeName}, &node); err != nil {
		w.t.Fatal(err)
	}
	return &node
}

func uncordoned(node *corev1.Node) {
	node.Spec = corev1.NodeSpec{}
	node.Annotations["machineconfiguration.openshift.io/desiredDrain"] = "uncordon-r-2"
	node.Annotations["machineconfiguration.openshift.io/lastAppliedDrain"] = "drain-r-2"
}

func withoutTime(node *corev1.Node) { node.Spec.Taints[0].TimeAdded = nil }

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// draining returns the node, whose drain started at noon.
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

// upgrading returns the attempt of an upgrade that started at eleven.
func upgrading() Attempt {
	return Attempt{Version: "4.20.6", Key: "upgrade-1/2026-03-01T11:00:00Z", StartTime: at(-time.Hour), PDBTimeout: 2 * time.Hour, PDBTimeoutField: "PDBForceDrainTimeout"}
}

// pod describes a pod and how it terminates.
type pod struct {
	metav1.ObjectMeta

	grace        time.Duration // its grace period
	shutdownTime time.Duration // until it has terminated, at most its grace period
	hung         bool          // it does not terminate
}

// addPod adds or replaces a pod of the shop on the node. Its grace period is 30 seconds, and it
// terminates within ten.
func (w *world) addPod(name string, change ...func(*pod)) {
	w.TB.Helper()
	p := &pod{grace: 30 * time.Second, shutdownTime: 10 * time.Second}
	p.Namespace, p.Name, p.UID = "shop", name, types.UID("uid-of-"+name)
	p.Labels = map[string]string{"app": name}
	for _, c := range change {
		c(p)
	}
	w.kubelets[p.UID] = p.shutdownTime
	if p.hung {
		w.kubelets[p.UID] = -1
	}
	object := &corev1.Pod{ObjectMeta: p.ObjectMeta}
	object.Spec.NodeName, object.Spec.TerminationGracePeriodSeconds = nodeName, new(int64(p.grace.Seconds()))
	w.deletePod(object)
	w.Must(w.Add(object))
}

// deletePod removes a pod at once.
func (w *world) deletePod(pod *corev1.Pod) {
	w.TB.Helper()
	w.Must(client.IgnoreNotFound(w.User.Delete(w.TB.Context(), pod.DeepCopy(), client.GracePeriodSeconds(0))))
}

// pods returns the pods.
func (w *world) pods() []corev1.Pod {
	w.TB.Helper()
	return simulation.List(w.Harness, &corev1.PodList{}).Items
}

// budget returns a PDB for the pods of the shop with these names. It allows no disruption.
func budget(name string, apps ...string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: apps}},
		}},
	}
}

// reconcile reconciles the node once and returns the delay until the next pass.
func (w *world) reconcile() (time.Duration, error) {
	w.TB.Helper()
	before := w.reconciles
	w.Process.Enqueue(reconcile.Request{NamespacedName: client.ObjectKey{Name: nodeName}})
	w.Await(0, func() bool { return w.reconciles > before })
	return w.result.RequeueAfter, w.err
}

// runUntil advances the time to d after noon.
func (w *world) runUntil(d time.Duration) {
	w.TB.Helper()
	w.Process.Enqueue(reconcile.Request{NamespacedName: client.ObjectKey{Name: nodeName}})
	w.RunFor(at(d).Sub(w.Now()))
}

// drainFor lets a drain run for d, without a reconcile after its first sighting was recorded.
func (w *world) drainFor(d time.Duration) {
	w.TB.Helper()
	w.runUntil(15 * time.Minute)
	w.Advance(d - 15*time.Minute)
	w.resetRequests()
}

// resetRequests returns the requests since the last call.
func (w *world) resetRequests() []string {
	all := w.Requests
	w.Requests = nil
	return all
}

// remainingPods returns the names of the pods. A cross marks terminating ones.
func (w *world) remainingPods() string {
	w.TB.Helper()
	var names []string
	for _, p := range w.pods() {
		name := p.Name
		if p.DeletionTimestamp != nil {
			name += "†"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// events returns the Events as "reason kind name: message", sorted.
func (w *world) events() []string {
	w.TB.Helper()
	list := simulation.List(w.Harness, &corev1.EventList{})
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

// expectEvents checks the reasons and objects of the Events, and compares their texts with the
// golden file.
func (w *world) expectEvents(want ...string) {
	w.TB.Helper()
	golden.Events(w.TB, "", want, w.events()...)
}

// series returns the metrics that are not zero.
func (w *world) series() map[string]float64 {
	w.TB.Helper()
	all := map[string]float64{}
	for _, s := range w.Series() {
		if s.Value != 0 {
			all[s.Name+" "+s.Values[0]] = s.Value
		}
	}
	return all
}

// changeNode changes the node as another client. A change of the UID replaces the node.
func (w *world) changeNode(change func(*corev1.Node)) {
	w.TB.Helper()
	node := w.node()
	uid := node.UID
	change(node)
	if node.UID == uid {
		w.Must(w.Set(node))
		return
	}
	w.Delete(w.node())
	w.Must(w.Add(node))
}

func (w *world) node() *corev1.Node {
	w.TB.Helper()
	return simulation.Get(w.Harness, client.ObjectKey{Name: nodeName}, &corev1.Node{})
}

// explain returns the part of the upgrade's message about the drain.
func (w *world) explain() string {
	w.TB.Helper()
	nodes, err := clusterstate.ListNodes(w.TB.Context(), w.User)
	w.Must(err)
	drains := checks.Drains{
		Reader: w.User, Live: w.User, TimeOut: w.config.TimeOut.Duration, PDBTimeout: w.attempts[0].PDBTimeout,
		IgnoreNamespaces: w.config.IgnoreNamespaces, Explanations: &checks.DrainExplanations{},
	}
	return drains.Explain(w.TB.Context(), nodes[0], w.attempts[0].StartTime, w.Now())
}

func uncordoned(node *corev1.Node) {
	node.Spec = corev1.NodeSpec{}
	node.Annotations["machineconfiguration.openshift.io/desiredDrain"] = "uncordon-r-2"
	node.Annotations["machineconfiguration.openshift.io/lastAppliedDrain"] = "drain-r-2"
}

func withoutTime(node *corev1.Node) { node.Spec.Taints[0].TimeAdded = nil }

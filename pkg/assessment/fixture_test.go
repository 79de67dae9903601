// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/assessment"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

const (
	master = "master"
	worker = "worker"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return now.Add(-d) }

func at(t time.Time) metav1.Time { return metav1.NewTime(t) }

func ago(d time.Duration) *metav1.Time { return new(at(before(d))) }

// fixture builds a cluster and the status computed from it.
type fixture struct {
	now     time.Time
	history []configv1.UpdateHistory // newest first
	// conditions are the conditions of the ClusterVersion.
	conditions []configv1.ClusterOperatorStatusCondition
	// operators holds all operators, and pools the names of the pools.
	operators []clusterstate.ClusterOperator
	pools     []string
	slots     map[string]int
	paused    map[string]bool
	// required names the pools that the control plane waits for.
	required []string
	// requested is the release in spec.desiredUpdate, or nil.
	requested *configv1.Update
	nodes     []corev1.Node
	status    updatev1beta1.UpdateStatusStatus
	facts     checks.Facts
	in        assessment.Input
}

// newFixture returns a cluster with 33 operators during an update from 4.20.5.
func newFixture(to string) *fixture {
	f := &fixture{now: now, slots: map[string]int{}, paused: map[string]bool{}, pools: []string{master, worker}}
	f.conditions = []configv1.ClusterOperatorStatusCondition{{Type: "Failing", Status: configv1.ConditionFalse}, {Type: configv1.OperatorProgressing, Status: configv1.ConditionTrue}}
	f.addHistory(to, before(62*time.Minute), time.Time{})
	f.addHistory("4.20.5", before(30*24*time.Hour), before(30*24*time.Hour-time.Hour))
	for i := range 33 {
		name := fmt.Sprintf("operator-%02d", i)
		f.operators = append(f.operators, clusterstate.ClusterOperator{
			Name: name, Version: to, InRelease: true,
			Available: clusterstate.Condition{Status: "True"}, Degraded: clusterstate.Condition{Status: "False"}, Progressing: clusterstate.Condition{Status: "False"},
		})
	}
	f.status.ControlPlane = &updatev1beta1.ControlPlaneStatus{}
	f.status.WorkerPools = []updatev1beta1.WorkerPoolStatus{{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: worker}}
	return f
}

// addHistory adds an older entry to the history. A zero end leaves the entry incomplete.
func (f *fixture) addHistory(version string, start, end time.Time) {
	entry := configv1.UpdateHistory{Version: version, Image: "image-" + version, State: configv1.PartialUpdate, StartedTime: at(start)}
	if !end.IsZero() {
		entry.State, entry.CompletionTime = configv1.CompletedUpdate, new(at(end))
	}
	f.history = append(f.history, entry)
}

// pendingOperators names the last operators and keeps them at the old release.
func (f *fixture) pendingOperators(names ...string) {
	for i, name := range names {
		operator := &f.operators[len(f.operators)-1-i]
		operator.Name, operator.Version = name, "old"
	}
}

// progressing makes an operator progress since the given time.
func (f *fixture) progressing(name string, since time.Time) {
	for i := range f.operators {
		if f.operators[i].Name == name {
			f.operators[i].Progressing = clusterstate.Condition{Status: "True", Since: since}
		}
	}
}

// addNodes adds nodes to a pool. The first ones are updated.
func (f *fixture) addNodes(pool string, total, updated int) {
	for i := range total {
		config := "rendered-" + pool + "-old"
		if i < updated {
			config = "rendered-" + pool + "-new"
		}
		f.nodes = append(f.nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", pool, i), Labels: map[string]string{"node-role.kubernetes.io/" + pool: ""},
				Annotations: map[string]string{
					"machineconfiguration.openshift.io/currentConfig": config, "machineconfiguration.openshift.io/desiredConfig": config,
					"machineconfiguration.openshift.io/state": "Done",
				},
			},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
}

func (f *fixture) node(name string) *corev1.Node {
	for i := range f.nodes {
		if f.nodes[i].Name == name {
			return &f.nodes[i]
		}
	}
	return nil
}

// drain makes a worker drain since the given time.
func (f *fixture) drain(name string, since time.Time) {
	node := f.node(name)
	f.begin(worker, node)
	node.Annotations["machineconfiguration.openshift.io/desiredDrain"] = "drain-rendered-" + worker + "-new"
	node.Spec.Unschedulable = true
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: new(at(since))}}
}

func (f *fixture) reboot(pool, name string) {
	node := f.node(name)
	f.begin(pool, node)
	node.Annotations["machineconfiguration.openshift.io/state"] = "Rebooting"
	node.Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse, LastTransitionTime: at(f.now)}
}

func (f *fixture) begin(pool string, node *corev1.Node) {
	node.Annotations["machineconfiguration.openshift.io/desiredConfig"] = "rendered-" + pool + "-new"
	node.Annotations["machineconfiguration.openshift.io/state"] = "Working"
}

// condition sets a condition of a section.
func condition(s *updatev1beta1.Section, name string, is bool, reason string) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	s.Conditions = append(s.Conditions, metav1.Condition{Type: name, Status: status, Reason: reason, LastTransitionTime: at(before(time.Hour))})
}

func pending(s *updatev1beta1.Section) {
	condition(s, updatev1beta1.ConditionUpdatePending, true, "Any")
	condition(s, updatev1beta1.ConditionUpdateActive, true, "Any")
}

func pausedBy(s *updatev1beta1.Section, reason string) {
	condition(s, updatev1beta1.ConditionUpdatePending, true, "Any")
	condition(s, updatev1beta1.ConditionUpdateActive, false, reason)
}

func reconciled(s *updatev1beta1.Section) {
	condition(s, updatev1beta1.ConditionUpdatePending, false, "Any")
	condition(s, updatev1beta1.ConditionUpdateActive, false, "Any")
}

func (f *fixture) plane() *updatev1beta1.Section { return &f.status.ControlPlane.Section }

func (f *fixture) pool() *updatev1beta1.Section { return &f.status.WorkerPools[0].Section }

// insight adds an insight to a section.
func (f *fixture) insight(s *updatev1beta1.Section, informer string, i updatev1beta1.Insight) {
	for k := range s.UpdateInformers {
		if s.UpdateInformers[k].Name == informer {
			s.UpdateInformers[k].Insights = append(s.UpdateInformers[k].Insights, i)
			return
		}
	}
	s.UpdateInformers = append(s.UpdateInformers, updatev1beta1.InformerInsights{Name: informer, Insights: []updatev1beta1.Insight{i}})
}

func newInsight(level updatev1beta1.Level, reason, summary string, since time.Time, refs ...updatev1beta1.ResourceReference) updatev1beta1.Insight {
	parts := []string{reason}
	for _, r := range refs {
		parts = append(parts, r.Kind, r.Namespace, r.Name)
	}
	uid := strings.Join(parts, "/")
	return updatev1beta1.Insight{
		UID: uid, UUID: uid, AcquisitionTime: at(now), FirstObservedTime: at(since), Scope: updatev1beta1.InsightScope{Resources: refs},
		Impact: updatev1beta1.InsightImpact{Level: level, Reason: reason, Summary: summary},
	}
}

func ref(kind, namespace, name string) updatev1beta1.ResourceReference {
	return updatev1beta1.ResourceReference{Kind: kind, Namespace: namespace, Name: name}
}

// build returns the status and the input.
func (f *fixture) build() (updatev1beta1.UpdateStatusStatus, assessment.Input) {
	version := &configv1.ClusterVersion{}
	version.Status.History, version.Status.Conditions = f.history, slices.Clone(f.conditions)
	for i := range version.Status.Conditions {
		if c := &version.Status.Conditions[i]; c.Type == configv1.OperatorProgressing && c.LastTransitionTime.IsZero() && f.history[0].State == configv1.CompletedUpdate {
			c.Status = configv1.ConditionFalse
		}
	}
	version.Spec.DesiredUpdate = f.requested
	facts := &f.facts
	facts.Now, facts.Version, facts.Operators = f.now, clusterstate.VersionOf(version), f.operators
	nodes, err := clusterstate.ListNodes(noContext, nodeReader{items: f.nodes})
	if err != nil {
		panic(err)
	}
	facts.Nodes, facts.Pools = nodes, nil
	facts.Configs = map[string]clusterstate.Rendered{}
	for _, name := range f.pools {
		pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pool.Spec.Paused = f.paused[name]
		if slices.Contains(f.required, name) {
			pool.Labels = map[string]string{"operator.machineconfiguration.openshift.io/required-for-upgrade": ""}
		}
		pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}}
		pool.Spec.Configuration.Name = "rendered-" + name + "-new"
		if n := f.slots[name]; n > 0 {
			pool.Spec.MaxUnavailable = new(intstr.FromInt32(int32(n)))
		}
		facts.Pools = append(facts.Pools, clusterstate.NewPool(pool))
		facts.Configs["rendered-"+name+"-new"] = clusterstate.Rendered{Name: "rendered-" + name + "-new", Version: f.history[0].Version, Created: f.history[0].StartedTime.Time}
		facts.Configs["rendered-"+name+"-old"] = clusterstate.Rendered{Name: "rendered-" + name + "-old", Version: "old"}
	}
	f.count()
	in := f.in
	in.Facts, in.Now = *facts, f.now
	return f.status, in
}

// count fills the counts of the sections.
func (f *fixture) count() {
	p := &updatev1beta1.Progress{Total: int32(len(f.operators))}
	for i := range f.operators {
		if f.facts.IsOperatorUpdated(f.operators[i]) {
			p.Updated++
		}
	}
	f.plane().Progress = p
	for _, rollout := range f.facts.Rollouts() {
		for i := range f.status.WorkerPools {
			if s := &f.status.WorkerPools[i]; s.Name == rollout.Pool.Name {
				s.Progress = &updatev1beta1.Progress{
					Total: int32(rollout.Total()), Updated: int32(rollout.Updated), Updating: int32(rollout.Updating),
					Pending: int32(rollout.Pending), Unavailable: int32(rollout.Unavailable),
				}
			}
		}
	}
}

func (f *fixture) assess() updatev1beta1.Assessment { return assessment.Assess(f.build()) }

// shop adds a Deployment with two pods, one of them on the node, and the PodDisruptionBudget that blocks the
// drain.
func (f *fixture) shop(node string, start time.Time) {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}
	budget.Spec.MinAvailable = new(intstr.FromInt32(2))
	budget.Status = policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 2}
	f.facts.PDBs = []clusterstate.PDB{clusterstate.PDBOf(budget)}
	pod := clusterstate.Pod{Namespace: "shop", Name: "api-7c9f4-x2k1p", Labels: map[string]string{"app": "api", "pod-template-hash": "7c9f4"}}
	f.facts.Drains = map[string]checks.DrainingNode{node: {
		Node: node, Start: start, Read: true, Pods: []clusterstate.DrainedPod{{Pod: pod, PDBs: []string{"shop/api"}, NodeReady: true}},
	}}
	other := pod
	other.Name = "api-7c9f4-9zx8w"
	f.facts.BudgetPods = map[string][]clusterstate.Pod{"shop": {pod, other}}
	f.insight(f.pool(), checks.InformerNodes, newInsight(updatev1beta1.LevelWarning, "PodHeldByBudget", "pods that cannot be evicted", start,
		ref("Node", "", node), ref("Pod", "shop", pod.Name), ref("PodDisruptionBudget", "shop", "api")))
}

// noContext is the context for readers that ignore it.
var noContext context.Context

// nodeReader lists nodes.
type nodeReader struct {
	client.Reader
	items []corev1.Node
}

func (r nodeReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.NodeList).Items = r.items
	return nil
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }

func assessOnce(status updatev1beta1.UpdateStatusStatus, in assessment.Input) updatev1beta1.Assessment {
	return assessment.Assess(status, in)
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

const (
	oldRelease = "4.20.5"
	newRelease = "4.20.6"
	mco        = "machineconfiguration.openshift.io/"
)

// cluster is a cluster during an update. Tests modify it before they gather its facts.
type cluster struct {
	version    *configv1.ClusterVersion
	operators  map[string]*configv1.ClusterOperator
	pools      map[string]*mcfgv1.MachineConfigPool
	configs    map[string]*mcfgv1.MachineConfig
	nodes      map[string]*corev1.Node
	others     []client.Object
	prometheus checks.AlertSource
	// alertsDisabled is set in the configuration of the operator. requiresAlerts is set in the spec of an
	// upgrade.
	alertsDisabled, requiresAlerts bool
}

// newCluster returns a cluster whose update began an hour ago. One of two operators is updated, and no node
// of the pools master and worker.
func newCluster() *cluster {
	c := &cluster{
		version: &configv1.ClusterVersion{
			ObjectMeta: metav1.ObjectMeta{Name: "version"},
			Status: configv1.ClusterVersionStatus{
				History: []configv1.UpdateHistory{
					{State: configv1.PartialUpdate, StartedTime: ago(time.Hour), Version: newRelease, Image: "quay.io/r@sha256:6"},
					{State: configv1.CompletedUpdate, StartedTime: ago(100 * time.Hour), CompletionTime: new(ago(99 * time.Hour)), Version: oldRelease, Image: "quay.io/r@sha256:5"},
				},
				Conditions: []configv1.ClusterOperatorStatusCondition{
					{Type: "Failing", Status: configv1.ConditionFalse}, {Type: configv1.OperatorProgressing, Status: configv1.ConditionTrue, Message: "Working towards " + newRelease},
				},
			},
		},
		operators: map[string]*configv1.ClusterOperator{}, pools: map[string]*mcfgv1.MachineConfigPool{},
		configs: map[string]*mcfgv1.MachineConfig{}, nodes: map[string]*corev1.Node{},
	}
	c.addOperator("dns", newRelease)
	c.addOperator("machine-config", oldRelease)
	for _, pool := range []string{"master", "worker"} {
		c.addPool(pool)
		for i := range 3 {
			c.addNode(pool, fmt.Sprintf("%s-%d", pool, i))
		}
	}
	return c
}

func (c *cluster) addOperator(name, release string) {
	c.operators[name] = &configv1.ClusterOperator{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(500 * time.Hour), Annotations: map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"}},
		Status: configv1.ClusterOperatorStatus{
			Versions: []configv1.OperandVersion{{Name: "operator", Version: release}},
			Conditions: []configv1.ClusterOperatorStatusCondition{
				{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: ago(400 * time.Hour)},
				{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse, LastTransitionTime: ago(400 * time.Hour)},
				{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, LastTransitionTime: ago(400 * time.Hour)},
			},
		},
	}
}

// setOperator sets a condition of an operator. An empty status removes it.
func (c *cluster) setOperator(name string, condition configv1.ClusterStatusConditionType, status configv1.ConditionStatus, since time.Duration) {
	all := c.operators[name].Status.Conditions
	for i := range all {
		if all[i].Type == condition && status == "" {
			c.operators[name].Status.Conditions = append(all[:i:i], all[i+1:]...)
			return
		}
		if all[i].Type == condition {
			all[i].Status, all[i].LastTransitionTime = status, ago(since)
		}
	}
}

func rendered(pool, release string) string { return "rendered-" + pool + "-" + release }

// addPool adds a pool with the configuration of the old release, and the rendered configurations of both
// releases.
func (c *cluster) addPool(name string) {
	c.pools[name] = &mcfgv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec: mcfgv1.MachineConfigPoolSpec{
			NodeSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}},
			Configuration: mcfgv1.MachineConfigPoolStatusConfiguration{ObjectReference: corev1.ObjectReference{Name: rendered(name, oldRelease)}},
		},
	}
	c.addConfig(rendered(name, oldRelease), oldRelease, 100*time.Hour)
	c.addConfig(rendered(name, newRelease), newRelease, 30*time.Minute)
}

func (c *cluster) addConfig(name, release string, created time.Duration) {
	c.configs[name] = &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: ago(created), Annotations: map[string]string{mco + "release-image-version": release},
	}}
}

// addNode adds a node with the configuration of the old release.
func (c *cluster) addNode(role, name string, roles ...string) {
	config := rendered(role, oldRelease)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"node-role.kubernetes.io/" + role: ""}, CreationTimestamp: ago(500 * time.Hour),
			Annotations: map[string]string{
				mco + "currentConfig": config, mco + "desiredConfig": config, mco + "state": "Done",
				mco + "desiredDrain": "uncordon-" + config, mco + "lastAppliedDrain": "uncordon-" + config,
			},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(400 * time.Hour)}}},
	}
	for _, role := range roles {
		node.Labels["node-role.kubernetes.io/"+role] = ""
	}
	c.nodes[name] = node
}

// release renders the configurations of the new release for all pools, so the machine config operator starts
// to update nodes.
func (c *cluster) release() {
	for name, pool := range c.pools {
		pool.Spec.Configuration.Name = rendered(name, newRelease)
	}
}

// annotate sets annotations with the machine config operator's prefix on a node.
func (c *cluster) annotate(node string, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		c.nodes[node].Annotations[mco+pairs[i]] = pairs[i+1]
	}
}

// drain makes the machine config operator drain a node for the new release.
func (c *cluster) drain(pool, node string, since time.Duration) {
	config := rendered(pool, newRelease)
	c.annotate(node, "desiredConfig", config, "state", "Working", "desiredDrain", "drain-"+config)
	c.cordon(node, since)
}

func (c *cluster) cordon(node string, since time.Duration) {
	c.nodes[node].Spec.Unschedulable = true
	c.nodes[node].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: new(ago(since))}}
}

// update completes the update of a node to the new release.
func (c *cluster) update(pool, node string) {
	config := rendered(pool, newRelease)
	c.annotate(node, "currentConfig", config, "desiredConfig", config, "state", "Done", "desiredDrain", "uncordon-"+config, "lastAppliedDrain", "uncordon-"+config)
}

// condition sets a condition of a node.
func (c *cluster) condition(node string, name corev1.NodeConditionType, status corev1.ConditionStatus, since time.Duration) {
	conditions := c.nodes[node].Status.Conditions
	for i := range conditions {
		if conditions[i].Type == name {
			conditions[i].Status, conditions[i].LastTransitionTime = status, ago(since)
			return
		}
	}
	c.nodes[node].Status.Conditions = append(conditions, corev1.NodeCondition{Type: name, Status: status, LastTransitionTime: ago(since)})
}

// addPod adds a pod with a label app to a node, in the namespace shop.
func (c *cluster) addPod(name, app, node string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
	c.others = append(c.others, pod)
	return pod
}

// addPDB adds a budget for the pods with a label app that allows the given number of disruptions.
func (c *cluster) addPDB(namespace, name, app string, allowed int32) {
	c.others = append(c.others, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 2 - allowed, DisruptionsAllowed: allowed},
	})
}

func (c *cluster) complete() {
	c.version.Status.History[0].State, c.version.Status.History[0].CompletionTime = configv1.CompletedUpdate, new(ago(20*time.Minute))
	for name := range c.operators {
		c.operators[name].Status.Versions[0].Version = newRelease
	}
	c.release()
}

func (c *cluster) objects() []client.Object {
	objects := append([]client.Object{c.version}, c.others...)
	for _, o := range c.operators {
		objects = append(objects, o)
	}
	for _, o := range c.pools {
		objects = append(objects, o)
	}
	for _, o := range c.configs {
		objects = append(objects, o)
	}
	for _, o := range c.nodes {
		objects = append(objects, o)
	}
	return objects
}

func (c *cluster) facts(tb testing.TB) checks.Facts {
	tb.Helper()
	stored := memory{}
	for _, object := range c.objects() {
		gvk, err := apiutil.GVKForObject(object, allKinds())
		if err != nil {
			tb.Fatal(err)
		}
		stored[gvk] = append(stored[gvk], object)
	}
	return gather(tb, stored, c.prometheus)
}

// allKinds is shared, because a scheme takes longer to make than facts take to gather.
var allKinds = sync.OnceValue(simulation.NewScheme)

// memory is a reader of objects. It takes a fraction of the time of a fake client.
type memory map[schema.GroupVersionKind][]client.Object

func (m memory) source() objects.Source {
	return objects.Source{
		Scheme: allKinds(), Copy: objects.Copy,
		Find: func(kind schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
			if i := slices.IndexFunc(m[kind], func(o client.Object) bool { return client.ObjectKeyFromObject(o) == key }); i >= 0 {
				return m[kind][i], nil
			}
			return nil, nil
		},
		FindAll: func(kind schema.GroupVersionKind, namespace string) ([]client.Object, error) {
			found := slices.DeleteFunc(slices.Clone(m[kind]), func(o client.Object) bool { return namespace != "" && o.GetNamespace() != namespace })
			slices.SortFunc(found, func(a, b client.Object) int {
				return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
			})
			return found, nil
		},
	}
}

func (m memory) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	return m.source().Get(key, object)
}

func (m memory) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	return m.source().List(list, options...)
}

func gather(tb testing.TB, reader client.Reader, prometheus checks.AlertSource) checks.Facts {
	tb.Helper()
	return checks.Gather(tb.Context(), checks.Update, checks.Readers{
		Reader: reader, Live: reader, Prometheus: prometheus, Clock: clocktesting.NewFakePassiveClock(now),
	})
}

var levels = map[checks.Level]string{checks.LevelStatus: "status", checks.LevelInfo: "info", checks.LevelWarning: "warning", checks.LevelError: "error", checks.LevelCritical: "critical"}

// found returns the levels and UIDs of an informer's findings, in order.
func found(tb testing.TB, name string, facts checks.Facts) []string {
	tb.Helper()
	var all []string
	for _, f := range find(tb, name, facts) {
		all = append(all, levels[f.Level]+" "+f.UID())
	}
	return all
}

func find(tb testing.TB, name string, facts checks.Facts) []checks.Finding {
	tb.Helper()
	for _, informer := range checks.Informers() {
		if informer.Name == name {
			all := informer.Find(facts)
			checkTexts(tb, name, all)
			return all
		}
	}
	tb.Fatalf("there is no informer %s", name)
	return nil
}

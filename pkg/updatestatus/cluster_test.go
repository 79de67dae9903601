// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// now is a Thursday.
var now = time.Date(2026, 5, 14, 12, 0, 0, 0, time.UTC)

const (
	oldRelease = "4.20.5"
	newRelease = "4.20.6"
)

// cluster is a cluster of four operators, three control plane nodes, and three workers. It is being updated
// from 4.20.5 to 4.20.6.
type cluster struct {
	version    *configv1.ClusterVersion
	management string // spec.versionManagement of the ClusterVersion as JSON, or empty
	operators  []*configv1.ClusterOperator
	pools      []*mcfgv1.MachineConfigPool
	nodes      []*corev1.Node
	others     []client.Object
	missing    map[checks.FactSource]checks.Missing
}

// newCluster returns a cluster in which the given numbers of operators and workers are updated already.
func newCluster(operators, workers int) *cluster {
	started := metav1.NewTime(now.Add(-time.Hour))
	entry := configv1.UpdateHistory{State: configv1.PartialUpdate, StartedTime: started, Version: newRelease, Image: "image/" + newRelease}
	if operators == 4 {
		entry.State, entry.CompletionTime = configv1.CompletedUpdate, new(metav1.NewTime(now.Add(-30*time.Minute)))
	}
	before := metav1.NewTime(now.Add(-1000 * time.Hour))
	c := &cluster{version: &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "11111111-2222-3333-4444-555555555555", Channel: "stable-4.20"},
		Status: configv1.ClusterVersionStatus{
			Desired:    configv1.Release{Version: newRelease, Image: "image/" + newRelease},
			Conditions: []configv1.ClusterOperatorStatusCondition{{Type: "Failing", Status: configv1.ConditionFalse}, {Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse}},
			History: []configv1.UpdateHistory{entry, {
				State: configv1.CompletedUpdate, StartedTime: before, CompletionTime: new(metav1.NewTime(before.Add(time.Hour))), Version: oldRelease, Image: "image/" + oldRelease,
			}},
		},
	}}
	for i, name := range []string{"etcd", "network", "dns", "machine-config"} {
		c.operators = append(c.operators, newOperator(name, i < operators))
	}
	c.pools = []*mcfgv1.MachineConfigPool{newPool("master"), newPool("worker")}
	for i := range 3 {
		c.nodes = append(c.nodes, newNode("master", i, operators == 4), newNode("worker", i, i < workers))
	}
	if operators == 4 {
		for _, pool := range c.pools {
			pool.Spec.Configuration.Name = rendered(pool.Name, newRelease)
		}
	}
	for _, pool := range []string{"master", "worker"} {
		for _, release := range []string{oldRelease, newRelease} {
			c.others = append(c.others, &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
				Name: rendered(pool, release), CreationTimestamp: metav1.NewTime(now.Add(-45 * time.Minute)),
				Annotations: map[string]string{"machineconfiguration.openshift.io/release-image-version": release},
			}})
		}
	}
	return c
}

func rendered(pool, release string) string { return "rendered-" + pool + "-" + release }

func newOperator(name string, updated bool) *configv1.ClusterOperator {
	release := oldRelease
	if updated {
		release = newRelease
	}
	condition := func(name configv1.ClusterStatusConditionType, status configv1.ConditionStatus) configv1.ClusterOperatorStatusCondition {
		return configv1.ClusterOperatorStatusCondition{Type: name, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-50 * time.Minute))}
	}
	return &configv1.ClusterOperator{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"}},
		Status: configv1.ClusterOperatorStatus{
			Versions: []configv1.OperandVersion{{Name: "operator", Version: release}},
			Conditions: []configv1.ClusterOperatorStatusCondition{
				condition(configv1.OperatorAvailable, "True"), condition(configv1.OperatorDegraded, "False"), condition(configv1.OperatorProgressing, "False"),
			},
		},
	}
}

func newPool(name string) *mcfgv1.MachineConfigPool {
	return &mcfgv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec: mcfgv1.MachineConfigPoolSpec{
			NodeSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}},
			Configuration: mcfgv1.MachineConfigPoolStatusConfiguration{ObjectReference: corev1.ObjectReference{Name: rendered(name, oldRelease)}},
		},
	}
}

func newNode(pool string, number int, updated bool) *corev1.Node {
	config := rendered(pool, oldRelease)
	if updated {
		config = rendered(pool, newRelease)
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", pool, number), Labels: map[string]string{"node-role.kubernetes.io/" + pool: ""},
			Annotations: map[string]string{
				"machineconfiguration.openshift.io/currentConfig": config, "machineconfiguration.openshift.io/desiredConfig": config,
				"machineconfiguration.openshift.io/state": "Done", "machine.openshift.io/machine": fmt.Sprintf("openshift-machine-api/%s-set-abcd%d", pool, number),
			},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-20 * time.Minute))}}},
	}
}

// node finds a node by name.
func (c *cluster) node(name string) *corev1.Node {
	for _, node := range c.nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}

// facts returns the facts of the cluster.
func (c *cluster) facts(tb testing.TB) checks.Facts {
	tb.Helper()
	return c.factsAt(tb, now)
}

func (c *cluster) factsAt(tb testing.TB, at time.Time) checks.Facts {
	tb.Helper()
	var objects []client.Object
	add := func(all ...client.Object) {
		for _, object := range all {
			objects = append(objects, object.DeepCopyObject().(client.Object))
		}
	}
	add(c.version)
	for _, operator := range c.operators {
		add(operator)
	}
	for _, pool := range c.pools {
		add(pool)
	}
	for _, node := range c.nodes {
		add(node)
	}
	add(c.others...)
	reader := simulation.NewFakeClient(tb, objects...)
	facts := checks.Gather(tb.Context(), checks.Update, checks.Readers{Reader: reader, Live: reader, Clock: clocktesting.NewFakePassiveClock(at)})
	facts.VersionManagement = decode(tb, c.management)
	maps.Copy(facts.Missing, c.missing)
	return facts
}

// machinePool returns a MachineSet, a MachineDeployment, or a NodePool.
func machinePool(apiVersion, kind, name string, edits ...func(map[string]any)) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"namespace": "openshift-machine-api", "name": name, "uid": "uid-" + name}, "spec": map[string]any{},
	}}
	for _, edit := range edits {
		edit(object.Object)
	}
	return object
}

// section returns the section of a pool, or of the control plane if the name is empty. It returns nil if
// there is no such section.
func section(status updatev1beta1.UpdateStatusStatus, name string) *updatev1beta1.Section {
	if name == "" {
		return &status.ControlPlane.Section
	}
	for i := range status.WorkerPools {
		if status.WorkerPools[i].Name == name {
			return &status.WorkerPools[i].Section
		}
	}
	return nil
}

// describe formats a condition as "Status Reason: Message".
func describe(section *updatev1beta1.Section, condition string) string {
	if section == nil {
		return "no section"
	}
	c := meta.FindStatusCondition(section.Conditions, condition)
	if c == nil {
		return "no condition"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// nodePool returns a NodePool whose nodes run a release.
func nodePool(release string) *unstructured.Unstructured {
	return machinePool("hypershift.openshift.io/v1beta1", "NodePool", "pool", func(o map[string]any) {
		o["status"] = map[string]any{"version": release}
	})
}

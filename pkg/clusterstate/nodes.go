// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations in which the machine config operator reports the progress of a node.
const (
	annotationCurrentConfig    = "machineconfiguration.openshift.io/currentConfig"
	annotationDesiredConfig    = "machineconfiguration.openshift.io/desiredConfig"
	annotationState            = "machineconfiguration.openshift.io/state"
	annotationReason           = "machineconfiguration.openshift.io/reason"
	annotationDesiredDrain     = "machineconfiguration.openshift.io/desiredDrain"
	annotationLastAppliedDrain = "machineconfiguration.openshift.io/lastAppliedDrain"
)

// Values of these annotations while a node is updated or should be drained.
const (
	stateWorking = "Working"
	drainPrefix  = "drain-"
)

// Node holds the facts about a Node.
type Node struct {
	Name string
	// Ready is set if the condition Ready is True. ReadySince is its last transition, or zero if this is
	// unknown.
	Ready bool
	// Cordoned is set if the node is unschedulable. CordonedSince is when it was cordoned, or zero if this is
	// unknown.
	Cordoned bool
	// Updating is set if the machine config operator is updating the node.
	Updating bool
	// BeingDeleted is set if the cluster autoscaler is about to delete the node.
	BeingDeleted  bool
	ReadySince    time.Time
	CordonedSince time.Time
	// Drain is the node's drain.
	Drain Drain
	// Pressure lists the resources that the node lacks, such as "disk", sorted.
	Pressure []string
	// Machine is the namespace/name of the node's Machine, or empty if unknown.
	Machine string
	// CurrentConfig and DesiredConfig are the rendered configurations that the node has and should have. Both
	// are empty if the machine config operator does not manage the node.
	CurrentConfig string
	DesiredConfig string
	// State is the state of the node's update, such as Working or Degraded. Reason explains it in one line of
	// limited length. Both may be empty.
	State  string
	Reason string

	// DesiredDrain is the last request of the machine config daemon, such as "drain-…" or "uncordon-…".
	// AppliedDrain is the last request that the machine config controller has completed.
	DesiredDrain, AppliedDrain string

	// Created is when the object was created, or zero if this is unknown.
	Created time.Time

	labels     labels.Set
	conditions []corev1.NodeCondition
}

// Condition returns a condition of the node.
func (n *Node) Condition(name corev1.NodeConditionType) Condition {
	for i := range n.conditions {
		if c := &n.conditions[i]; c.Type == name {
			return Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
		}
	}
	return Condition{}
}

// Label returns the value of a label, or "" if the node does not have it.
func (n *Node) Label(key string) string { return n.labels[key] }

// Degraded reports whether the machine config operator cannot continue with the node without help.
func (n *Node) Degraded() bool { return n.State == "Degraded" || n.State == "Unreconcilable" }

// CordonedByHand reports whether the node is cordoned without a visible reason: the machine config operator
// is not updating it, and the cluster autoscaler is not deleting it. The machine API also cordons the node of
// a Machine during its deletion, but does not mark the node. See ListDeletingMachines.
func (n *Node) CordonedByHand() bool { return n.Cordoned && !n.Updating && !n.BeingDeleted }

// isWindows reports whether the node runs Windows. The machine config operator does not manage such nodes,
// even if a pool selects them.
func (n *Node) isWindows() bool { return n.labels[corev1.LabelOSStable] == "windows" }

// ListNodes lists the Nodes, sorted by name.
func ListNodes(ctx context.Context, r client.Reader) ([]Node, error) {
	var list corev1.NodeList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	items := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		items[i] = &list.Items[i]
	}
	slices.SortFunc(items, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	nodes := make([]Node, len(items))
	for i, item := range items {
		nodes[i].read(item)
	}
	return nodes, nil
}

// NodeOf converts a Node.
func NodeOf(node *corev1.Node) Node {
	var facts Node
	facts.read(node)
	return facts
}

// read sets the facts in place, because they are large and a cluster may have thousands of nodes. All fields
// must be zero before the call.
func (n *Node) read(node *corev1.Node) {
	n.Name, n.Created = node.Name, node.CreationTimestamp.Time
	n.labels, n.conditions = node.Labels, node.Status.Conditions
	n.Cordoned, n.Updating, n.BeingDeleted = node.Spec.Unschedulable, updating(node.Annotations), beingDeleted(node)
	n.Pressure = pressure(node)
	if taint := cordonTaint(node); taint != nil {
		n.CordonedSince, n.Drain = taintTime(taint), DrainState(node)
	}
	if len(node.Annotations) > 0 {
		n.Machine = node.Annotations[annotationMachine]
		n.CurrentConfig, n.DesiredConfig = node.Annotations[annotationCurrentConfig], node.Annotations[annotationDesiredConfig]
		n.State, n.Reason = sanitize(node.Annotations[annotationState]), sanitize(node.Annotations[annotationReason])
		n.DesiredDrain, n.AppliedDrain = node.Annotations[annotationDesiredDrain], node.Annotations[annotationLastAppliedDrain]
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			n.Ready, n.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
}

// Marks that the machine API and the cluster autoscaler leave on nodes.
const (
	annotationMachine  = "machine.openshift.io/machine"
	taintAutoscalerDel = "ToBeDeletedByClusterAutoscaler"
)

func beingDeleted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintAutoscalerDel })
}

// ListDeletingMachines returns the Machines that are being deleted, keyed like Node.Machine. The reader must
// read from the API server, because Machines are not cached. A cluster without the machine API has none.
func ListDeletingMachines(ctx context.Context, live client.Reader) (map[string]bool, error) {
	machines := metav1.PartialObjectMetadataList{}
	machines.SetGroupVersionKind(schema.GroupVersionKind{Group: "machine.openshift.io", Version: "v1beta1", Kind: "MachineList"})
	err := live.List(ctx, &machines, client.InNamespace(machineNamespace))
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing the machines: %w", err)
	}
	deleting := map[string]bool{}
	for i := range machines.Items {
		if machine := &machines.Items[i]; machine.DeletionTimestamp != nil {
			deleting[machine.Namespace+"/"+machine.Name] = true
		}
	}
	return deleting, nil
}

// machineNamespace is the namespace of the machine API.
const machineNamespace = "openshift-machine-api"

// updating reports whether the machine config operator is updating a node. An update lasts from the request
// of another configuration until the node is uncordoned. The daemon requests "drain-…" or "uncordon-…", and
// the controller records the request that it has applied.
func updating(annotations map[string]string) bool {
	desiredDrain := annotations[annotationDesiredDrain]
	return annotations[annotationCurrentConfig] != annotations[annotationDesiredConfig] ||
		annotations[annotationState] == stateWorking ||
		desiredDrain != annotations[annotationLastAppliedDrain] ||
		strings.HasPrefix(desiredDrain, drainPrefix)
}

var pressureConditions = map[corev1.NodeConditionType]string{
	corev1.NodeMemoryPressure: "memory",
	corev1.NodeDiskPressure:   "disk",
	corev1.NodePIDPressure:    "PIDs",
}

var pressureTaints = map[string]string{
	corev1.TaintNodeMemoryPressure: "memory",
	corev1.TaintNodeDiskPressure:   "disk",
	corev1.TaintNodePIDPressure:    "PIDs",
}

// pressure returns the resources that a node lacks according to its conditions or the corresponding taints.
func pressure(node *corev1.Node) []string {
	var pressures []string
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if of, known := pressureConditions[c.Type]; known && c.Status == corev1.ConditionTrue {
			pressures = append(pressures, of)
		}
	}
	for i := range node.Spec.Taints {
		if of, known := pressureTaints[node.Spec.Taints[i].Key]; known {
			pressures = append(pressures, of)
		}
	}
	slices.Sort(pressures)
	return slices.Compact(pressures)
}

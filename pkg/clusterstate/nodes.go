// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The annotations with which the machine config operator says on a node how
// far it is with it.
const (
	annotationCurrentConfig    = "machineconfiguration.openshift.io/currentConfig"
	annotationDesiredConfig    = "machineconfiguration.openshift.io/desiredConfig"
	annotationState            = "machineconfiguration.openshift.io/state"
	annotationReason           = "machineconfiguration.openshift.io/reason"
	annotationDesiredDrain     = "machineconfiguration.openshift.io/desiredDrain"
	annotationLastAppliedDrain = "machineconfiguration.openshift.io/lastAppliedDrain"
)

// What these say of a node that is being worked on, and of one that is to be drained.
const (
	stateWorking = "Working"
	drainPrefix  = "drain-"
)

// Node is what a Node says.
type Node struct {
	Name string
	// Ready says that it is up; and ReadySince is since when it is, or is not,
	// zero if it does not say.
	Ready      bool
	ReadySince time.Time
	// Cordoned says that no pods are scheduled to the node, and CordonedSince
	// since when, zero if nothing says so.
	Cordoned      bool
	CordonedSince time.Time
	// Draining says that the node is being drained, as Drain has it.
	Draining bool
	// Pressure is what the node is short of, such as "disk", sorted.
	Pressure []string
	// Updating says that the machine config operator is at work on the node.
	Updating bool
	// CurrentConfig is the rendered configuration that it has, and DesiredConfig
	// the one that it was told to take. Both are empty if nobody has told it any.
	CurrentConfig string
	DesiredConfig string
	// State is how the update of the node goes, e.g. Working or Degraded, and
	// Reason why, in one bounded line. Both may be empty.
	State  string
	Reason string

	labels labels.Set
}

// Degraded says that the machine config operator cannot go on with the node by itself.
func (n Node) Degraded() bool { return n.State == "Degraded" || n.State == "Unreconcilable" }

// CordonedByHand says whether the node is cordoned, and not by the machine
// config operator in the course of an update.
func (n Node) CordonedByHand() bool { return n.Cordoned && !n.Updating }

// ListNodes reads the Nodes, sorted by name.
func ListNodes(ctx context.Context, r client.Reader) ([]Node, error) {
	var list corev1.NodeList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	nodes := make([]Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, nodeOf(&list.Items[i]))
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes, nil
}

func nodeOf(node *corev1.Node) Node {
	facts := Node{
		Name:          node.Name,
		Cordoned:      node.Spec.Unschedulable,
		CordonedSince: taintTime(cordonTaint(node)),
		Draining:      DrainState(node).Active,
		Pressure:      pressure(node),
		Updating:      updating(node.Annotations),
		CurrentConfig: node.Annotations[annotationCurrentConfig],
		DesiredConfig: node.Annotations[annotationDesiredConfig],
		State:         sanitize(node.Annotations[annotationState]),
		Reason:        sanitize(node.Annotations[annotationReason]),
		labels:        node.Labels,
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			facts.Ready, facts.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return facts
}

// updating says whether the machine config operator is at work on a node. It
// is from when it names another configuration until it has uncordoned the node
// again: its daemon asks for "drain-…" or "uncordon-…", and its controller
// notes what it has carried out.
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

// pressure is told by conditions and by the taints that follow them; either will do.
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

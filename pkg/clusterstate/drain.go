// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// LabelExtraNodeOf marks a node that was added for the time of an upgrade, and the
// Machine and MachineSet that it is made by. Its value is the uid of the object
// that asks for the upgrade.
const LabelExtraNodeOf = "upgrade.managed.openshift.io/extra-node-of"

// removalRequest identifies the drain of an extra node that is being removed.
const removalRequest = "remove-extra-node"

// Drain is what a Node says of being drained. The zero Drain is that of a node
// that nobody is draining for an upgrade.
type Drain struct {
	// Active says that the machine config operator is draining the node, and
	// is not done with it, or that an extra node is being removed. Who cordons
	// another node by hand drains nothing.
	Active bool
	// Request identifies the drain: the machine config operator requests each by another name.
	Request string
	// Since is when the node was cordoned for it; zero if nothing says so.
	Since time.Time
}

// Equal says whether both are the same drain.
func (d Drain) Equal(other Drain) bool {
	return d.Active == other.Active && d.Request == other.Request && d.Since.Equal(other.Since)
}

// DrainState reads whether and since when a Node is being drained.
func DrainState(node *corev1.Node) Drain {
	taint := cordonTaint(node)
	switch {
	case taint == nil:
		return Drain{}
	case draining(node.Annotations):
		request := cmp.Or(node.Annotations[annotationDesiredDrain], drainPrefix+node.Annotations[annotationDesiredConfig])
		return Drain{Active: true, Request: request, Since: taintTime(taint)}
	case extraNodeRemoval(node):
		return Drain{Active: true, Request: removalRequest, Since: taintTime(taint)}
	}
	return Drain{}
}

// cordonTaint is the taint of a node that is cordoned; nil if it is not, or not yet.
func cordonTaint(node *corev1.Node) *corev1.Taint {
	at := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeUnschedulable && t.Effect == corev1.TaintEffectNoSchedule
	})
	if at < 0 || !node.Spec.Unschedulable {
		return nil
	}
	return &node.Spec.Taints[at]
}

// taintTime is when a taint was, zero if nothing says so.
func taintTime(taint *corev1.Taint) time.Time {
	if taint == nil || taint.TimeAdded == nil {
		return time.Time{}
	}
	return taint.TimeAdded.Time
}

// draining says whether the machine config operator was asked to drain a node
// and has not noted that it did. Before OpenShift 4.11 its daemon asked nobody:
// it drained on its own, while it was working on another configuration.
func draining(annotations map[string]string) bool {
	desired, requested := annotations[annotationDesiredDrain]
	if requested {
		return strings.HasPrefix(desired, drainPrefix) && desired != annotations[annotationLastAppliedDrain]
	}
	return annotations[annotationState] == stateWorking && annotations[annotationCurrentConfig] != annotations[annotationDesiredConfig]
}

// extraNodeRemoval says whether a node that is cordoned is an extra one that is being
// removed. The machine API, which drains it for that, notes nothing on the node;
// but nobody else has a reason to cordon it, except to update it.
func extraNodeRemoval(node *corev1.Node) bool {
	_, extra := node.Labels[LabelExtraNodeOf]
	return extra && !updating(node.Annotations)
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// LabelExtra marks a node that was added for the time of an upgrade, and the
// Machine and MachineSet that it is made by. Its value is the uid of the object
// that asks for the upgrade.
const LabelExtra = "upgrade.managed.openshift.io/extra-node-of"

// Drain is what a Node says of being drained. The zero Drain is that of a node
// that nobody is draining for an upgrade.
type Drain struct {
	// Running says that the machine config operator is draining the node, and
	// is not done with it, or that an extra node is being removed. Who cordons
	// another node by hand drains nothing.
	Running bool
	// Since is when the node was cordoned for it; zero if nothing says so.
	Since time.Time
}

// Equal says whether both are the same drain.
func (d Drain) Equal(other Drain) bool {
	return d.Running == other.Running && d.Since.Equal(other.Since)
}

// DrainOf reads whether and since when a Node is being drained.
func DrainOf(node *corev1.Node) Drain {
	taint := cordon(node)
	if taint == nil || !draining(node.Annotations) && !leaving(node) {
		return Drain{}
	}
	return Drain{Running: true, Since: added(taint)}
}

// cordon is the taint of a node that is cordoned; nil if it is not, or not yet.
func cordon(node *corev1.Node) *corev1.Taint {
	at := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeUnschedulable && t.Effect == corev1.TaintEffectNoSchedule
	})
	if at < 0 || !node.Spec.Unschedulable {
		return nil
	}
	return &node.Spec.Taints[at]
}

// added is when a taint was, zero if nothing says so.
func added(taint *corev1.Taint) time.Time {
	if taint == nil || taint.TimeAdded == nil {
		return time.Time{}
	}
	return taint.TimeAdded.Time
}

// draining says whether the machine config operator was asked to drain a node
// and has not noted that it did. Before OpenShift 4.11 its daemon asked nobody:
// it drained on its own, while it was working on another configuration.
func draining(annotations map[string]string) bool {
	desired, asks := annotations[annotationDesiredDrain]
	if asks {
		return strings.HasPrefix(desired, drainPrefix) && desired != annotations[annotationLastAppliedDrain]
	}
	return annotations[annotationState] == stateWorking && annotations[annotationCurrentConfig] != annotations[annotationDesiredConfig]
}

// leaving says whether a node that is cordoned is an extra one that is being
// removed. The machine API, which drains it for that, notes nothing on the node;
// but nobody else has a reason to cordon it, except to update it.
func leaving(node *corev1.Node) bool {
	_, extra := node.Labels[LabelExtra]
	return extra && !updating(node.Annotations)
}

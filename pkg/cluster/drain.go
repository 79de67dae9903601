// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Drain is what a Node says of being drained. The zero Drain is that of a node
// that the machine config operator is not draining.
type Drain struct {
	// Running says that the machine config operator is draining the node, and
	// is not done with it. Who cordons a node by hand drains nothing.
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
	if taint == nil || !draining(node.Annotations) {
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

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// LabelExtraNodeOf marks a node that was added for the duration of an upgrade, its Machine, and its
// MachineSet. The value is the UID of the object that requests the upgrade.
const LabelExtraNodeOf = "upgrade.managed.openshift.io/extra-node-of"

// AnnotationDrainFirstSeen records when the drain of a node was first observed and which drain it was, such
// as "2026-03-01T12:00:00Z drain-rendered-worker-1". It survives restarts of the operator and is removed when
// the drain ends.
const AnnotationDrainFirstSeen = "upgrade.managed.openshift.io/drain-first-seen"

// removalRequest identifies the drain of an extra node during its removal.
const removalRequest = "remove-extra-node"

// Drain is the drain of a node. It is zero unless the node is being drained for an upgrade.
type Drain struct {
	// Active is set if the machine config operator is draining the node or an extra node is being removed. A
	// node that a user has cordoned is not being drained.
	Active bool
	// Request identifies the drain. The machine config operator uses a different name for each.
	Request string
	// Since is when the node was cordoned, or zero if this is unknown.
	Since time.Time
	// FirstSeen is when the operator first observed the drain according to the node's annotation, or zero if
	// no time is recorded.
	FirstSeen time.Time
}

// IsPlausible reports whether a recorded time can be right. A time far in the future cannot be: the clock
// that recorded it was ahead, or the clock has been set back since.
func IsPlausible(at, now time.Time) bool {
	return !at.IsZero() && !at.After(now.Add(text.MaxClockSkew))
}

// Start returns the time from which the drain counts: the latest of its cordon, its first observation, and
// the start of the upgrade. It returns zero if neither the cordon nor the observation has a plausible time.
// Forced drains and messages both rely on it.
func (d Drain) Start(upgradeStart, now time.Time) time.Time {
	var start time.Time
	for _, at := range []time.Time{d.Since, d.FirstSeen} {
		if IsPlausible(at, now) && at.After(start) {
			start = at
		}
	}
	if !start.IsZero() && IsPlausible(upgradeStart, now) && upgradeStart.After(start) {
		return upgradeStart
	}
	return start
}

// Equal reports whether both are the same drain, regardless of FirstSeen.
func (d Drain) Equal(other Drain) bool {
	return d.Active == other.Active && d.Request == other.Request && d.Since.Equal(other.Since)
}

// DrainState returns the drain of a Node.
func DrainState(node *corev1.Node) Drain {
	taint := cordonTaint(node)
	var request string
	switch {
	case taint == nil:
		return Drain{}
	case draining(node.Annotations):
		request = cmp.Or(node.Annotations[annotationDesiredDrain], drainPrefix+node.Annotations[annotationDesiredConfig])
	case extraNodeRemoval(node):
		request = removalRequest
	default:
		return Drain{}
	}
	return Drain{Active: true, Request: request, Since: taintTime(taint), FirstSeen: drainFirstSeen(node, request)}
}

// DrainNotCordoned reports whether a drain is requested although the node is schedulable. Another client has
// uncordoned it, so the drain cannot end.
func (n *Node) DrainNotCordoned() bool {
	return !n.Cordoned && strings.HasPrefix(n.DesiredDrain, drainPrefix) && n.DesiredDrain != n.AppliedDrain
}

// drainFirstSeen returns when a drain was first observed according to the node's annotation, or zero if no
// valid time is recorded.
func drainFirstSeen(node *corev1.Node, request string) time.Time {
	recorded, recordedRequest, _ := strings.Cut(node.Annotations[AnnotationDrainFirstSeen], " ")
	if recordedRequest != request {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, recorded)
	if err != nil {
		return time.Time{}
	}
	return at
}

// cordonTaint returns the taint of a cordoned node, or nil.
func cordonTaint(node *corev1.Node) *corev1.Taint {
	at := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeUnschedulable && t.Effect == corev1.TaintEffectNoSchedule
	})
	if at < 0 || !node.Spec.Unschedulable {
		return nil
	}
	return &node.Spec.Taints[at]
}

// taintTime returns when a taint was added, or zero if this is unknown.
func taintTime(taint *corev1.Taint) time.Time {
	if taint == nil || taint.TimeAdded == nil {
		return time.Time{}
	}
	return taint.TimeAdded.Time
}

// draining reports whether a drain was requested from the machine config controller and is not marked as
// finished. Before OpenShift 4.11, the daemon did not request drains. It drained the node itself while
// working on another configuration.
func draining(annotations map[string]string) bool {
	desired, requested := annotations[annotationDesiredDrain]
	if requested {
		return strings.HasPrefix(desired, drainPrefix) && desired != annotations[annotationLastAppliedDrain]
	}
	return annotations[annotationState] == stateWorking && annotations[annotationCurrentConfig] != annotations[annotationDesiredConfig]
}

// extraNodeRemoval reports whether a cordoned node is an extra node being removed. The machine API drains the
// node for removal but does not mark it. Apart from an update, nothing else has a reason to cordon it.
func extraNodeRemoval(node *corev1.Node) bool {
	_, extra := node.Labels[LabelExtraNodeOf]
	return extra && !updating(node.Annotations)
}

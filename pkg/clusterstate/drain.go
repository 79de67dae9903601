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

// LabelExtraNodeOf marks a node that was added for the time of an upgrade, and its Machine and
// MachineSet. Its value is the UID of the object that requests the upgrade.
const LabelExtraNodeOf = "upgrade.managed.openshift.io/extra-node-of"

// AnnotationDrainFirstSeen is the annotation of a node that holds when its drain was first seen,
// and which drain that was: "2026-03-01T12:00:00Z drain-rendered-worker-1". It outlives the
// process, and is removed when the drain ends.
const AnnotationDrainFirstSeen = "upgrade.managed.openshift.io/drain-first-seen"

// removalRequest identifies the drain of an extra node that is being removed.
const removalRequest = "remove-extra-node"

// Drain is the drain of a node. The zero Drain means that the node is not drained for an upgrade.
type Drain struct {
	// Active reports that the machine config operator is draining the node, or that an extra node is
	// being removed. A node that a person has cordoned is not being drained.
	Active bool
	// Request identifies the drain: the machine config operator requests each by another name.
	Request string
	// Since is when the node was cordoned; zero if unknown.
	Since time.Time
	// FirstSeen is when the operator first saw the drain, as it is recorded on the node; zero if no
	// time is recorded.
	FirstSeen time.Time
}

// IsPlausible reports whether a recorded time may be true. Times far in the future are not: the clock
// that recorded them was ahead, or was set back since.
func IsPlausible(at, now time.Time) bool {
	return !at.IsZero() && !at.After(now.Add(text.MaxClockSkew))
}

// Start returns when the time of the drain began to count: at the latest of its cordon, its first
// sighting, and the start of the upgrade, or zero if neither the cordon nor the sighting has a
// plausible time. It is the only answer to that question: forced drains and messages use it.
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

// Equal reports whether both are the same drain, whether or not it was seen.
func (d Drain) Equal(other Drain) bool {
	return d.Active == other.Active && d.Request == other.Request && d.Since.Equal(other.Since)
}

// DrainState returns whether and since when a Node is being drained.
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

// DrainNotCordoned reports whether a drain of the node is requested although pods can be scheduled to
// the node: another client has uncordoned it, so the drain cannot end.
func (n *Node) DrainNotCordoned() bool {
	return !n.Cordoned && strings.HasPrefix(n.DesiredDrain, drainPrefix) && n.DesiredDrain != n.AppliedDrain
}

// drainFirstSeen returns when the drain of that request was first seen, as it is recorded on the
// node, or zero if no valid time is recorded.
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

// cordonTaint returns the taint of a cordoned node, or nil if the node has none.
func cordonTaint(node *corev1.Node) *corev1.Taint {
	at := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeUnschedulable && t.Effect == corev1.TaintEffectNoSchedule
	})
	if at < 0 || !node.Spec.Unschedulable {
		return nil
	}
	return &node.Spec.Taints[at]
}

// taintTime returns when a taint was added, or zero if it is unknown.
func taintTime(taint *corev1.Taint) time.Time {
	if taint == nil || taint.TimeAdded == nil {
		return time.Time{}
	}
	return taint.TimeAdded.Time
}

// draining reports whether a drain of the node was requested from the machine config controller and
// is not noted as finished. Before OpenShift 4.11 the daemon requested nothing: it drained on its
// own, while it was working on another configuration.
func draining(annotations map[string]string) bool {
	desired, requested := annotations[annotationDesiredDrain]
	if requested {
		return strings.HasPrefix(desired, drainPrefix) && desired != annotations[annotationLastAppliedDrain]
	}
	return annotations[annotationState] == stateWorking && annotations[annotationCurrentConfig] != annotations[annotationDesiredConfig]
}

// extraNodeRemoval reports whether a cordoned node is an extra one that is being removed. The
// machine API, which drains the node for its removal, notes nothing on it; nothing else has a
// reason to cordon it, except an update.
func extraNodeRemoval(node *corev1.Node) bool {
	_, extra := node.Labels[LabelExtraNodeOf]
	return extra && !updating(node.Annotations)
}

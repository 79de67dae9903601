// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/pause"
)

const clusterVersionKind = "ClusterVersion"

func (c *computation) addControlPlane() {
	observed := c.observeControlPlane()
	paused := pause.Of(c.controlPlaneSubject(), nil, c.now)
	if observed.pending && paused.State == pause.PausedUntil {
		c.resumes[updatev1beta1.ResourceReference{}] = paused.Until
	}
	var before []metav1.Condition
	if p := c.Previous.ControlPlane; p != nil {
		before = p.Conditions
	}
	for _, condition := range conditions(observed, paused, controlPlaneWording) {
		c.setCondition(&c.controlPlane, before, condition)
	}
	c.controlPlane.Progress = c.operatorProgress()
}

// observeControlPlane observes whether an update of the control plane is pending. It is if the cluster
// version operator is installing a release or has not yet started to install the requested one.
func (c *computation) observeControlPlane() observation {
	if unknown := missing(c.Facts, checks.SourceClusterVersion); unknown != "" {
		return observation{unknown: unknown}
	}
	version := c.Facts.Version
	if len(version.Updates) == 0 || version.Current.Version == "" {
		return observation{unknown: "ClusterVersion: its history names no release"}
	}
	if contradiction := version.Contradiction(c.now); contradiction != "" {
		return observation{unknown: "ClusterVersion: " + contradiction}
	}
	_, requested := version.PendingRequest()
	return observation{pending: requested || c.Facts.UpdatingControlPlane()}
}

// controlPlaneSubject returns the settings that may pause the control plane.
func (c *computation) controlPlaneSubject() pause.Subject {
	subject := pause.Subject{Kind: clusterVersionKind, VersionManagement: c.Facts.VersionManagement, Started: c.Facts.UpdatingControlPlane()}
	subject.Missing = c.Facts.Missing[checks.SourceClusterVersion].Message
	if at := slices.IndexFunc(c.Facts.Pools, c.holdsControlPlane); at >= 0 && c.onlyNodesLeft() {
		subject.Pool = &c.Facts.Pools[at]
	}
	return subject
}

// holdsControlPlane reports whether a pool is paused although the control plane update waits for it.
func (c *computation) holdsControlPlane(pool clusterstate.Pool) bool {
	rollout, known := c.rollouts[pool.Name]
	return pool.Paused && pool.Required() && (!known || rollout.Outdated())
}

// onlyNodesLeft reports whether all operators are updated except the one that updates the nodes. In this
// state, the control plane update waits for its nodes and is paused if their pool is paused.
func (c *computation) onlyNodesLeft() bool {
	operators, _ := c.Facts.ReleaseOperators()
	left := false
	for i := range operators {
		switch {
		case c.Facts.IsOperatorUpdated(operators[i]):
		case operators[i].Name == clusterstate.MachineConfigOperator:
			left = true
		default:
			return false
		}
	}
	return left
}

// operatorProgress counts the operators of the release. It returns nil if they cannot be observed.
func (c *computation) operatorProgress() *updatev1beta1.Progress {
	if !c.Facts.Has(checks.SourceOperators) || !c.Facts.Has(checks.SourceClusterVersion) {
		return nil
	}
	var p updatev1beta1.Progress
	_, requested := c.Facts.Version.PendingRequest()
	begun := !requested || c.Facts.UpdatingControlPlane()
	operators, _ := c.Facts.ReleaseOperators()
	for i := range operators {
		operator := &operators[i]
		p.Total++
		switch {
		case begun && c.Facts.IsOperatorUpdated(*operator):
			p.Updated++
		case operator.Progressing.IsTrue():
			p.Updating++
		default:
			p.Pending++
		}
		if operator.IsUnavailable() {
			p.Unavailable++
		}
		if operator.IsDegraded() {
			p.Degraded++
		}
	}
	return &p
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"slices"
	"strings"
	"time"
)

// Alert is an alert of Prometheus that is firing or pending.
type Alert struct {
	Name      string
	Namespace string // empty if it has none
	Severity  string
	// Firing reports that the alert fires; otherwise, its condition has not held long enough.
	Firing bool
	// Since is when its condition began to hold; zero if unknown.
	Since time.Time
	// Labels and Annotations are all that the alert has.
	Labels, Annotations map[string]string
}

// OwnAlerts is the prefix of the names of the operator's own alerts. They report that an upgrade makes
// no progress, so they must not be what blocks it, and its insights report the same.
const OwnAlerts = "ManagedUpgrade"

// AlertWeight describes what an alert means to an update.
type AlertWeight int

// The weights in ascending order.
const (
	// AlertIgnored is the weight of an alert that says nothing about updates.
	AlertIgnored AlertWeight = iota
	// AlertNoted is the weight of an alert that is worth a look before an update.
	AlertNoted
	// AlertRisk is the weight of an alert by which OpenShift advises against an update.
	AlertRisk
	// AlertBlocks is the weight of an alert that closes the health gates.
	AlertBlocks
)

const (
	severityCritical = "critical"
	severityWarning  = "warning"

	// labelPreCheck is the label of the alerts that OpenShift evaluates before an update.
	labelPreCheck = "openShiftUpdatePrecheck"
	// budgetAlerts is the prefix of the names of the alerts about PodDisruptionBudgets.
	budgetAlerts = "PodDisruptionBudget"
)

// riskyAlerts are the prefixes of the names of the alerts for which OpenShift advises against an update:
// containers that wait, the health of nodes and kubelets, VMs that cannot be evicted, and budgets.
var riskyAlerts = []string{"KubeContainerWaiting", "KubeNode", "Kubelet", "VMCannotBeEvicted", "VirtHandlerDaemonSetRolloutFailing", budgetAlerts}

// Weight returns what the alert means to an update that has not begun. A pending alert means nothing yet.
func (a Alert) Weight() AlertWeight {
	switch {
	case a.ClosesGates(false):
		return AlertBlocks
	case !a.Firing || a.isOwn():
		return AlertIgnored
	case a.Labels[labelPreCheck] == "true" || slices.ContainsFunc(riskyAlerts, func(prefix string) bool { return strings.HasPrefix(a.Name, prefix) }):
		return AlertRisk
	case a.Severity == severityWarning:
		return AlertNoted
	}
	return AlertIgnored
}

// ClosesGates reports whether the alert closes the health gates, also while it is pending if that counts.
func (a Alert) ClosesGates(pending bool) bool {
	return a.IsCritical() && !a.isOwn() && (a.Firing || pending)
}

func (a Alert) isOwn() bool { return strings.HasPrefix(a.Name, OwnAlerts) }

// ConcernsUpdate reports whether the alert is worth an insight about an update that began at a time: it
// began during the update, or is about a budget. Unknown times may be during it.
func (a Alert) ConcernsUpdate(began time.Time) bool {
	if a.Weight() == AlertIgnored || a.Severity != severityWarning && !a.IsCritical() {
		return false
	}
	return strings.HasPrefix(a.Name, budgetAlerts) || a.Since.IsZero() || began.IsZero() || !a.Since.Before(began)
}

// IsCritical reports whether the severity of the alert is critical.
func (a Alert) IsCritical() bool { return a.Severity == severityCritical }

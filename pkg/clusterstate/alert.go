// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"slices"
	"strings"
	"time"
)

// Alert is a firing or pending alert from Prometheus.
type Alert struct {
	Name      string
	Namespace string // empty if it has none
	Severity  string
	// Firing is set if the alert fires. If not, it is pending because its condition has not held long enough.
	Firing bool
	// Since is when the condition became true, or zero if this is unknown.
	Since time.Time
	// Labels and Annotations are complete.
	Labels, Annotations map[string]string
}

// OwnAlerts is the name prefix of the operator's own alerts. They report that an upgrade makes no progress.
// They must not block that upgrade and add nothing to its insights.
const OwnAlerts = "ManagedUpgrade"

// AlertWeight describes how an alert affects an update.
type AlertWeight int

// Weights of alerts in ascending order.
const (
	// AlertIgnored is the weight of an alert unrelated to updates.
	AlertIgnored AlertWeight = iota
	// AlertNoted is the weight of an alert worth checking before an update.
	AlertNoted
	// AlertRisk is the weight of an alert for which OpenShift advises against updating.
	AlertRisk
	// AlertBlocks is the weight of an alert that closes the health gates.
	AlertBlocks
)

const (
	severityCritical = "critical"
	severityWarning  = "warning"

	// labelPreCheck labels the alerts that OpenShift evaluates before an update.
	labelPreCheck = "openShiftUpdatePrecheck"
	// budgetAlerts is the name prefix of alerts about PodDisruptionBudgets.
	budgetAlerts = "PodDisruptionBudget"
)

// riskyAlerts lists name prefixes of alerts for which OpenShift advises against updating: waiting containers,
// unhealthy nodes and kubelets, VMs that cannot be evicted, and PodDisruptionBudgets.
var riskyAlerts = []string{"KubeContainerWaiting", "KubeNode", "Kubelet", "VMCannotBeEvicted", "VirtHandlerDaemonSetRolloutFailing", budgetAlerts}

// Weight returns the effect on an update that has not started. Pending alerts have none.
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

// ClosesGates reports whether the alert closes the health gates. Set pending to include pending alerts.
func (a Alert) ClosesGates(pending bool) bool {
	return a.IsCritical() && !a.isOwn() && (a.Firing || pending)
}

func (a Alert) isOwn() bool { return strings.HasPrefix(a.Name, OwnAlerts) }

// ConcernsUpdate reports whether the alert deserves an insight about an update that started at the given
// time. It does if it started during the update or is about a PodDisruptionBudget. Unknown times count as
// during the update.
func (a Alert) ConcernsUpdate(began time.Time) bool {
	if a.Weight() == AlertIgnored || a.Severity != severityWarning && !a.IsCritical() {
		return false
	}
	return strings.HasPrefix(a.Name, budgetAlerts) || a.Since.IsZero() || began.IsZero() || !a.Since.Before(began)
}

// IsCritical reports whether the severity of the alert is critical.
func (a Alert) IsCritical() bool { return a.Severity == severityCritical }

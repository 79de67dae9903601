// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import "time"

// GateOptions select and narrow the checks for one upgrade object. In all patterns, an asterisk matches any
// characters. The zero GateOptions run every check without exceptions.
type GateOptions struct {
	// Checks lists the checks to run. If empty, all checks run.
	Checks []string

	// AlertNamespaces lists patterns of namespaces whose alerts count. If empty, all namespaces count. Alerts
	// without a namespace always count.
	AlertNamespaces []string
	// ExcludeNamespaces lists patterns of namespaces whose alerts are ignored.
	ExcludeNamespaces []string
	// ExcludeAlerts lists patterns of alerts to ignore.
	ExcludeAlerts []string
	// RequireAlerts adds a finding if alerts are not queried (Sources.AlertsDisabled).
	RequireAlerts bool
	// PendingAlerts includes pending alerts.
	PendingAlerts bool

	// ExcludeOperators lists patterns of ClusterOperators to ignore, with or without the prefix "openshift-".
	ExcludeOperators []string
	// ExcludeNodes lists patterns of nodes to ignore.
	ExcludeNodes []string

	// PausedPoolsOnly ignores degraded machine config pools.
	PausedPoolsOnly bool

	// IgnoreDelayedPools ignores paused machine config pools that the operator itself will unpause. See
	// clusterstate.PoolMark.
	IgnoreDelayedPools bool

	// PDBNamespaces lists patterns of namespaces in which PodDisruptionBudgets must not block evictions.
	PDBNamespaces []string
	// ExcludePDBs lists namespace/name patterns of PodDisruptionBudgets to ignore.
	ExcludePDBs []string

	// Queries lists PromQL expressions that must not return samples.
	Queries []string

	// Objects lists conditions that objects must satisfy.
	Objects []ObjectCheck

	// Timeout is how long a gate waits for a healthy cluster before the upgrade fails. If 0, only the runbook
	// limits the wait.
	Timeout time.Duration
}

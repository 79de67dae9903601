// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import "time"

// Options select and narrow the checks for one upgrade object. In every pattern an asterisk matches
// any characters. The zero Options run every check without exceptions.
type Options struct {
	// Checks are the names of the checks to run; empty means all.
	Checks []string

	// AlertNamespaces are patterns of the namespaces whose alerts count; empty means every one. An
	// alert without a namespace always counts.
	AlertNamespaces []string
	// ExcludeNamespaces are patterns of namespaces whose alerts do not count.
	ExcludeNamespaces []string
	// ExcludeAlerts are patterns of the names of alerts that do not count.
	ExcludeAlerts []string
	// RequireAlerts makes it a finding that alerts are not queried (Sources.AlertsDisabled).
	RequireAlerts bool
	// PendingAlerts makes pending alerts count as well.
	PendingAlerts bool

	// ExcludeOperators are patterns of the names of ClusterOperators that do not count, with or
	// without the prefix "openshift-".
	ExcludeOperators []string
	// ExcludeNodes are patterns of the names of nodes that do not count.
	ExcludeNodes []string

	// PausedPoolsOnly makes degraded machine config pools not count.
	PausedPoolsOnly bool

	// IgnoreDelayedPools makes paused machine config pools not count that the operator itself unpauses,
	// see clusterstate.PoolMark.
	IgnoreDelayedPools bool

	// PDBNamespaces are patterns of the namespaces in which a PodDisruptionBudget that blocks
	// evictions is a finding.
	PDBNamespaces []string
	// ExcludePDBs are patterns of namespace/name of PodDisruptionBudgets that do not count.
	ExcludePDBs []string

	// Queries are PromQL expressions; any sample in a result is a finding.
	Queries []string

	// Objects are conditions that objects must satisfy.
	Objects []ObjectCheck

	// Timeout is how long a gate waits for a healthy cluster before the upgrade fails; 0 means that
	// the runbook alone limits it.
	Timeout time.Duration
}

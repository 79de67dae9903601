// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// title is the title of the dashboard.
const title = "Managed upgrades"

// row is a line of panels.
type row struct {
	title  string
	panels []panel
}

// panel shows the results of one expression.
type panel struct {
	title  string
	kind   kind
	unit   string // of Grafana, such as s or short
	expr   string
	legend string
}

// kind is how a panel shows its results.
type kind int

const (
	// graph is a panel with a line for each series.
	graph kind = iota
	// stat is a panel with one number.
	stat
)

// countInADay returns the expression of how much counters grew in a day. A counter begins at 1 if its labels are those of what it
// counts, and increase ignores what it begins with: one that is younger than a day is shown as it is.
func countInADay(by, counter string) string {
	return fmt.Sprintf("sum by (%[1]s) ((%[2]s unless %[2]s offset 1d) or increase(%[2]s[1d]))", by, counter)
}

// rows is the dashboard. Expressions about incidents end with "or vector(0)", so that a panel
// without an incident shows 0 instead of an error.
var rows = []row{
	{"Now", []panel{
		{"Unfinished upgrades", stat, "short", `count(managed_upgrade_last_sync_timestamp_seconds) or vector(0)`, ""},
		{"Held upgrades", stat, "short", `sum(managed_upgrade_held) or vector(0)`, ""},
		{"Cluster is upgrading", stat, "short", `max(managed_upgrade_cluster_upgrading)`, ""},
		{"Configuration is valid", stat, "short", `min(managed_upgrade_configuration_valid)`, ""},
	}},
	{"Progress", []panel{
		{"Phase", graph, "short", `max by (namespace, name, phase) (managed_upgrade_phase == 1)`, "{{namespace}}/{{name}} {{phase}}"},
		{"Time in the current step", graph, "s", `time() - max by (namespace, name, step) (managed_upgrade_step_timestamp_seconds)`, "{{namespace}}/{{name}} {{step}}"},
		{"Pools whose nodes are updated", graph, "short", `max by (pool) (managed_upgrade_pool_updating)`, "{{pool}}"},
		{"Nodes with a blocked drain", graph, "short", `sum(managed_upgrade_node_drain_blocked) or vector(0)`, "nodes"},
	}},
	{"Results", []panel{
		{"Successes in a day", graph, "short", countInADay("type", "managed_upgrade_successes_total"), "{{type}}"},
		{"Failures in a day", graph, "short", countInADay("reason", "managed_upgrade_failures_total") + " or vector(0)", "{{reason}}"},
		{"Mean duration of upgrades", graph, "s", `sum by (result) (managed_upgrade_duration_seconds_sum) / sum by (result) (managed_upgrade_duration_seconds_count)`, "{{result}}"},
		{"Mean duration of steps", graph, "s", `sum by (step) (managed_upgrade_step_duration_seconds_sum) / sum by (step) (managed_upgrade_step_duration_seconds_count)`, "{{step}}"},
	}},
	{"Incidents", []panel{
		{"Force-deleted pods in a day", graph, "short", countInADay("reason", "managed_upgrade_forced_drains_total") + " or vector(0)", "{{reason}}"},
		{"Failures of health checks in a day", graph, "short", countInADay("check", "managed_upgrade_health_check_failures_total") + " or vector(0)", "{{check}}"},
		{"Failed notifications in an hour", graph, "short", `sum by (channel) (increase(managed_upgrade_notification_failures_total[1h])) or vector(0)`, "{{channel}}"},
	}},
	{"Operator", []panel{
		{"Replicas by version", graph, "short", `count by (version) (managed_upgrade_build_info)`, "{{version}}"},
		{"Time since the last reconcile", graph, "s", `time() - min by (namespace, name) (managed_upgrade_last_sync_timestamp_seconds) or vector(0)`, "{{namespace}}/{{name}}"},
	}},
}

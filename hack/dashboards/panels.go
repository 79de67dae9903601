// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// dashboard is a page of panels.
type dashboard struct {
	name, title, uid string
	// variables are the labels that a user can select by, and source is a metric with their values.
	variables []string
	source    string
	rows      []row
}

// row is a line of panels.
type row struct {
	title  string
	panels []panel
}

// panel shows the results of an expression.
type panel struct {
	title  string
	kind   kind
	unit   string // in Grafana's notation, such as s or short
	expr   string
	legend string
}

// kind is the way a panel shows its results.
type kind int

const (
	// graph is a panel with one line per series.
	graph kind = iota
	// stat is a panel with a single number.
	stat
)

// countInADay returns an expression for the increase of counters within a day. A counter starts at
// 1 if its labels describe what is counted, and increase() ignores its first value, so counters
// younger than a day are shown directly.
func countInADay(by, counter string) string {
	return fmt.Sprintf("sum by (%[1]s) ((%[2]s unless %[2]s offset 1d) or increase(%[2]s[1d]))", by, counter)
}

// upgradeRows show the upgrades of a cluster. Expressions about incidents end with "or on()
// vector(0)", so that panels show 0 instead of an error if there were none.
var upgradeRows = []row{
	{"Now", []panel{
		{"Unfinished upgrades", stat, "short", `count(managed_upgrade_last_sync_timestamp_seconds{OBJECT}) or on() vector(0)`, ""},
		{"Held upgrades", stat, "short", `sum(managed_upgrade_held{OBJECT}) or on() vector(0)`, ""},
		{"Cluster is upgrading", stat, "short", `max(managed_upgrade_cluster_upgrading{CLUSTER})`, ""},
		{"Configuration is valid", stat, "short", `min(managed_upgrade_configuration_valid{CLUSTER})`, ""},
	}},
	{"Progress", []panel{
		{"Phase", graph, "short", `max by (namespace, name, phase) (managed_upgrade_phase{OBJECT} == 1)`, "{{namespace}}/{{name}} {{phase}}"},
		{"Time in the current step", graph, "s", `time() - max by (namespace, name, step) (managed_upgrade_step_timestamp_seconds{OBJECT})`, "{{namespace}}/{{name}} {{step}}"},
		{"Pools whose nodes are updated", graph, "short", `max by (pool) (managed_upgrade_pool_updating{CLUSTER})`, "{{pool}}"},
		{"Nodes with a blocked drain", graph, "short", `sum(managed_upgrade_node_drain_blocked{CLUSTER}) or on() vector(0)`, "nodes"},
	}},
	{"Results", []panel{
		{"Successes in a day", graph, "short", countInADay("type", "managed_upgrade_successes_total{CLUSTER}"), "{{type}}"},
		{"Failures in a day", graph, "short", countInADay("reason", "managed_upgrade_failures_total{CLUSTER}") + " or on() vector(0)", "{{reason}}"},
		{"Mean duration of upgrades", graph, "s", `sum by (result) (managed_upgrade_duration_seconds_sum{CLUSTER}) / sum by (result) (managed_upgrade_duration_seconds_count{CLUSTER})`, "{{result}}"},
		{"Mean duration of steps", graph, "s", `sum by (step) (managed_upgrade_step_duration_seconds_sum{CLUSTER}) / sum by (step) (managed_upgrade_step_duration_seconds_count{CLUSTER})`, "{{step}}"},
	}},
	{"Incidents", []panel{
		{"Force-deleted pods in a day", graph, "short", countInADay("reason", "managed_upgrade_forced_drains_total{CLUSTER}") + " or on() vector(0)", "{{reason}}"},
		{"Failures of health checks in a day", graph, "short", countInADay("check", "managed_upgrade_health_check_failures_total{CLUSTER}") + " or on() vector(0)", "{{check}}"},
		{"Failed notifications in an hour", graph, "short", `sum by (channel) (increase(managed_upgrade_notification_failures_total{CLUSTER}[1h])) or on() vector(0)`, "{{channel}}"},
	}},
	{"Operator", []panel{
		{"Replicas by version", graph, "short", `count by (version) (managed_upgrade_build_info{CLUSTER})`, "{{version}}"},
		{"Time since the last reconcile", graph, "s", `time() - min by (namespace, name) (managed_upgrade_last_sync_timestamp_seconds{OBJECT}) or on() vector(0)`, "{{namespace}}/{{name}}"},
	}},
}

// statusRows show the update in progress and the plans for the next one.
var statusRows = []row{
	{"Now", []panel{
		{"A person must act", stat, "short", `max(managed_upgrade_status_action_required{CLUSTER})`, ""},
		{"Insights", stat, "short", `sum(managed_upgrade_status_insights{CLUSTER}) or on() vector(0)`, ""},
		{"Plans that allow an update", stat, "short", `sum(managed_upgrade_plan_startable{CLUSTER}) or on() vector(0)`, ""},
		{"Informers that do not answer", stat, "short", `count(managed_upgrade_informer_reachable{CLUSTER} == 0) or on() vector(0)`, ""},
	}},
	{"Update", []panel{
		{"State", graph, "short", `max by (state) (managed_upgrade_status_state{CLUSTER} == 1)`, "{{state}}"},
		{"Insights by level", graph, "short", `sum by (level) (managed_upgrade_status_insights{CLUSTER})`, "{{level}}"},
		{"Time since the last computation", graph, "s", `time() - max(managed_upgrade_status_last_pass_timestamp_seconds{CLUSTER})`, "status"},
	}},
	{"Plans", []panel{
		{"Open risks", graph, "short", `sum by (release) (managed_upgrade_plan_insights{CLUSTER, accepted="false"}) or on() vector(0)`, "{{release}}"},
		{"Accepted risks", graph, "short", `sum by (release) (managed_upgrade_plan_insights{CLUSTER, accepted="true"}) or on() vector(0)`, "{{release}}"},
		{"Age of the analysis", graph, "s", `time() - max by (release) (managed_upgrade_plan_last_analysis_timestamp_seconds{CLUSTER})`, "{{release}}"},
	}},
	{"Informers", []panel{
		{"Requests in an hour", graph, "short", `sum by (informer, outcome) (increase(managed_upgrade_informer_requests_total{CLUSTER}[1h]))`, "{{informer}} {{outcome}}"},
		{"Reachable", graph, "short", `max by (informer) (managed_upgrade_informer_reachable{CLUSTER})`, "{{informer}}"},
	}},
}

// fleetRows show fleet upgrades.
var fleetRows = []row{
	{"Now", []panel{
		{"Clusters in flight", stat, "short", `sum(managed_upgrade_fleet_clusters{OBJECT, state=~"Initialized|PartialUpgrade"}) or on() vector(0)`, ""},
		{"Failed clusters", stat, "short", `sum(managed_upgrade_fleet_failed_clusters{OBJECT}) or on() vector(0)`, ""},
		{"Clusters without progress", stat, "short", `sum(managed_upgrade_fleet_stalled_clusters{OBJECT}) or on() vector(0)`, ""},
		{"Least budget left", stat, "short", `min(managed_upgrade_fleet_budget_left{OBJECT})`, ""},
	}},
	{"Progress", []panel{
		{"Clusters by state", graph, "short", `sum by (state) (managed_upgrade_fleet_clusters{OBJECT})`, "{{state}}"},
		{"Why no cluster begins", graph, "short", `max by (namespace, name, reason) (managed_upgrade_fleet_admission_blocked{OBJECT}) == 1`, "{{namespace}}/{{name}} {{reason}}"},
		{"Budget left", graph, "short", `min by (namespace, name) (managed_upgrade_fleet_budget_left{OBJECT})`, "{{namespace}}/{{name}}"},
		{"Time of the longest cluster in flight", graph, "s", `time() - min by (namespace, name) (managed_upgrade_fleet_oldest_in_flight_timestamp_seconds{OBJECT})`, "{{namespace}}/{{name}}"},
	}},
	{"Results", []panel{
		{"Failed clusters by reason", graph, "short", `sum by (reason) (managed_upgrade_fleet_failed_clusters{OBJECT}) or on() vector(0)`, "{{reason}}"},
		{"Mean duration of steps", graph, "s", `sum by (step) (managed_upgrade_fleet_step_duration_seconds_sum{CLUSTER}) / sum by (step) (managed_upgrade_fleet_step_duration_seconds_count{CLUSTER})`, "{{step}}"},
		{"Time since the last reconcile", graph, "s", `time() - min by (namespace, name) (managed_upgrade_fleet_last_pass_timestamp_seconds{OBJECT})`, "{{namespace}}/{{name}}"},
	}},
}

// dashboards lists all dashboards.
var dashboards = []dashboard{
	{"upgrades", "Managed upgrades", "managed-upgrades", []string{"cluster", "namespace", "name"}, "managed_upgrade_phase", upgradeRows},
	{"status", "Update status and plans", "managed-upgrade-status", []string{"cluster"}, "managed_upgrade_status_state", statusRows},
	{"fleets", "Fleet upgrades", "managed-upgrade-fleets", []string{"cluster", "namespace", "name"}, "managed_upgrade_fleet_clusters", fleetRows},
}

// selectors replaces OBJECT and CLUSTER in expressions with selectors that use the variables.
var selectors = strings.NewReplacer("OBJECT", `cluster=~"$cluster", namespace=~"$namespace", name=~"$name"`, "CLUSTER", `cluster=~"$cluster"`)

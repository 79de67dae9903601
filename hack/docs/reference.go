// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/hub"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/statuscontroller"
)

func configuration() string {
	cfg := config.Default()
	var page strings.Builder
	fmt.Fprintf(&page, "# Configuration\n\nThe file of the operator's flag `--config`: key `config.yaml` of the ConfigMap `managed-upgrade-operator-config`.\n"+
		"The manifests do not have this ConfigMap; without it, or without a key, the default applies.\n"+
		"Every key has a default. A duration has its unit, as in `90s`, `30m` or `2h30m`.\n\n```yaml\napiVersion: %s\nkind: %s\nupgradeWindow: 1h\ncontrolPlane:\n  slowAfter: 90m\n```\n\n", config.APIVersion, config.Kind)
	page.WriteString("| key | description | default | valid values |\n| --- | --- | --- | --- |\n")
	for _, s := range cfg.Settings() {
		fmt.Fprintf(&page, "| `%s` | %s | `%s` | %s |\n", s.Path, s.Doc, s.Value.DefaultText(), s.Value.Range())
	}
	return page.String()
}

// pluginReference returns the main page of kubectl-update. hack/commands writes the pages of its
// commands.
func pluginReference() string {
	var page strings.Builder
	page.WriteString("# kubectl-update\n\nWith `kubectl-update` on the `PATH`, `oc update` and `kubectl update` run it.\n" +
		"[All commands](kubectl-update/oc_update.md) have a page, and a man page in the archive of a release.\n\n" +
		"## Exit codes\n\n| code | meaning |\n| --- | --- |\n")
	for _, exit := range session.ExitCodes() {
		fmt.Fprintf(&page, "| %d | %s |\n", exit.Code, exit.Meaning)
	}
	return page.String()
}

func flags() string {
	var options manager.Options
	set := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	options.Bind(set)
	return flagTable("Operator", set)
}

func statusFlags() string {
	return flagTable("Update Status Controller", statuscontroller.Command("").Flags())
}

func hubFlags() string {
	return flagTable("Hub", hub.Command("").Flags())
}

func flagTable(program string, set *pflag.FlagSet) string {
	var page strings.Builder
	fmt.Fprintf(&page, "# %s flags\n\n| flag | default | description |\n| --- | --- | --- |\n", program)
	set.VisitAll(func(f *pflag.Flag) {
		value := ""
		if f.DefValue != "" {
			value = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(&page, "| `--%s` | %s | %s |\n", f.Name, orDash(value), f.Usage)
	})
	return page.String()
}

func metricsPage() (string, error) {
	registry := prometheus.NewRegistry()
	upgradeMetrics, err := metrics.NewUpgrades(registry)
	if err != nil {
		return "", err
	}
	if err := registry.Register(webhook.New(webhook.Options{})); err != nil {
		return "", err
	}
	at := metav1.NewTime(time.Unix(0, 0)) // sets a value for each metric to make its labels visible
	upgradeMetrics.SetUpgrade(metrics.Snapshot{
		Record:     history.Record{Conditions: []history.StepCondition{{StartTime: &at}}},
		Conditions: []metav1.Condition{{LastTransitionTime: at}},
		StartAfter: at.Time, StartBefore: at.Time,
	})
	upgradeMetrics.ObserveStep(schema.GroupKind{}, "", history.StepCondition{StartTime: &at, CompleteTime: &at})
	upgradeMetrics.ObserveEnd(schema.GroupKind{}, "", history.PhaseUpgraded, "", time.Hour)
	upgradeMetrics.ObserveEnd(schema.GroupKind{}, "", history.PhaseSkipped, "", 0)
	upgradeMetrics.ObserveEnd(schema.GroupKind{}, "", history.PhaseFailed, "", 0)
	upgradeMetrics.ObserveEnd(schema.GroupKind{}, "", history.PhaseFailed, engine.ReasonCancelled, 0)
	if err := metrics.RegisterBuildInfo(registry, ""); err != nil {
		return "", err
	}
	upgradeMetrics.ObserveHealthCheck("", false, at.Time)
	if err := addStatusMetrics(registry); err != nil {
		return "", err
	}
	versionMetrics, err := metrics.NewClusterVersions(registry)
	if err != nil {
		return "", err
	}
	versionMetrics.AddDrift([]string{""})
	versionMetrics.SetUpgrading(true)
	drainMetrics, err := metrics.NewDrains(registry, clusterstate.HoldReasons()...)
	if err != nil {
		return "", err
	}
	drainMetrics.SetBlocked("", true)
	scheduleMetrics, err := metrics.NewSchedules(registry, "")
	if err != nil {
		return "", err
	}
	hookMetrics, err := metrics.NewHooks(registry)
	if err != nil {
		return "", err
	}
	hookMetrics.IncHookRuns("", "", "", true)
	poolMetrics, err := metrics.NewPools(registry)
	if err != nil {
		return "", err
	}
	poolMetrics.SetPool("", metrics.Pool{PausedReason: metrics.PausedByDelay, PausedUntil: at.Time})
	scheduleMetrics.SetSchedule(metrics.Schedule{Next: at.Time, LastSlot: at.Time})
	families, err := registry.Gather()
	if err != nil {
		return "", err
	}
	ofHub, err := fleetMetrics()
	if err != nil {
		return "", err
	}
	families = slices.Concat(families, ofHub)
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	var page strings.Builder
	page.WriteString("# Metrics\n\nServed over HTTPS at `/metrics`, to clients that may `get` that path. `kind` is the kind and the\n" +
		"group of the object that requests the upgrade. The series of an object end when it is deleted. A\n" +
		"timestamp is in seconds since 1970. The [alerts](../alerts) use the metrics. Those that start with\n" +
		"`managed_upgrade_status_`, `managed_upgrade_plan_`, and `managed_upgrade_informer_` are of the Update\n" +
		"Status Controller, those that start with `managed_upgrade_fleet_` of the hub, and the other ones of the\n" +
		"operator. The hub also has those about notifications, and `managed_upgrade_build_info`.\n\n" +
		"| metric | type | labels | description |\n| --- | --- | --- | --- |\n")
	for _, family := range families {
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+label.GetName()+"`")
		}
		slices.Sort(labels)
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", family.GetName(), kind(family.GetType()), orDash(strings.Join(labels, ", ")), family.GetHelp())
	}
	page.WriteString("\nThe metrics of Go and of controller-runtime are served, too. The alerts use one of them:\n\n" +
		"| metric | type | labels | description |\n| --- | --- | --- | --- |\n" +
		"| `leader_election_master_status` | gauge | `name` | 1 for the replica that is the leader, 0 for one on standby. |\n")
	return page.String(), nil
}

func kind(t dto.MetricType) string { return strings.ToLower(t.String()) }

// fleetMetrics returns the metrics that only the hub has.
func fleetMetrics() ([]*dto.MetricFamily, error) {
	registry := prometheus.NewRegistry()
	fleets, err := metrics.NewFleets(registry)
	if err != nil {
		return nil, err
	}
	at := metav1.NewTime(time.Unix(0, 0))
	fleets.ObserveStep(history.StepCondition{StartTime: &at, CompleteTime: &at})
	fleets.SetFleet(metrics.Fleet{
		Clusters: map[string]int32{"": 1}, Failures: map[string]int32{"": 1}, BudgetLeft: new(int), Blocked: fleetv1beta1.ReasonPaused,
		OldestInFlight: at.Time, LastPass: at.Time,
	})
	families, err := registry.Gather()
	return slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == metrics.NotificationFailures }), err
}

// addStatusMetrics registers the metrics of the Update Status Controller.
func addStatusMetrics(registry *prometheus.Registry) error {
	statusMetrics, err := metrics.NewUpdateStatus(registry)
	if err != nil {
		return err
	}
	statusMetrics.SetStatusTime(time.Unix(0, 0))
	statusMetrics.SetStatus(updatev1beta1.UpdateStatusStatus{Assessment: &updatev1beta1.Assessment{}})
	statusMetrics.SetPlans([]metrics.PlanSnapshot{{Analyzed: time.Unix(0, 0)}})
	statusMetrics.ObserveInformerRequest("", "", "")
	statusMetrics.SetInformerReachable("", false)
	return nil
}

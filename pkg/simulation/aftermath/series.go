// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package aftermath

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/api/meta"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// checkSeries returns an error that lists gauges that do not match the state of their upgrade, and
// upgrades without a gauge.
func (s Scene) checkSeries(ctx context.Context, upgrades []Upgrade) error {
	if len(s.Series) == 0 {
		return nil
	}
	var schedules maintenancev1beta1.UpgradeConfigList
	if err := s.Objects.List(ctx, &schedules); err != nil {
		return fmt.Errorf("listing UpgradeConfigs: %w", err)
	}
	pools, err := clusterstate.ListPools(ctx, s.Objects)
	if err != nil {
		return fmt.Errorf("listing pools: %w", err)
	}
	var errs []error
	shown := map[string]bool{}
	for _, family := range s.Series {
		name := family.GetName()
		if !strings.HasPrefix(name, "managed_upgrade_") || family.GetType() != dto.MetricType_GAUGE {
			continue
		}
		for _, series := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range series.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			shown[name+" "+labels["kind"]+" "+labels["namespace"]+"/"+labels["name"]] = true
			switch {
			case labels["pool"] != "":
				errs = append(errs, checkPool(name, labels, pools))
			case labels["kind"] == "UpgradeConfig."+maintenancev1beta1.GroupVersion.Group:
				errs = append(errs, checkSchedule(name, labels, schedules.Items))
			default:
				errs = append(errs, checkGauge(name, labels, upgrades))
			}
		}
	}
	for i := range upgrades {
		if of := "managed_upgrade_phase " + upgrades[i].label() + " " + upgrades[i].Namespace + "/" + upgrades[i].Name; !shown[of] {
			errs = append(errs, fmt.Errorf("no series %s", of))
		}
	}
	return errors.Join(errs...)
}

// label returns the value of the label kind.
func (u *Upgrade) label() string { return u.Kind + "." + u.Group }

// checkSchedule returns an error if a gauge belongs to a deleted UpgradeConfig.
func checkSchedule(name string, labels map[string]string, schedules []maintenancev1beta1.UpgradeConfig) error {
	if slices.ContainsFunc(schedules, func(c maintenancev1beta1.UpgradeConfig) bool {
		return c.Namespace == labels["namespace"] && c.Name == labels["name"]
	}) {
		return nil
	}
	return fmt.Errorf("%s%v is about a deleted UpgradeConfig", name, labels)
}

// checkPool returns an error if a gauge belongs to a deleted pool, or claims that an upgrade has
// paused a pool that it did not pause.
func checkPool(name string, labels map[string]string, pools []clusterstate.Pool) error {
	i := slices.IndexFunc(pools, func(p clusterstate.Pool) bool { return p.Name == labels["pool"] })
	switch {
	case i < 0:
		return fmt.Errorf("%s%v is about a deleted pool", name, labels)
	case labels["reason"] != "" && !pools[i].PausedByMark():
		return fmt.Errorf("%s%v is about a pool that no upgrade has paused", name, labels)
	}
	return nil
}

// checkGauge returns an error if a gauge belongs to a deleted upgrade or does not match the newest
// attempt.
func checkGauge(name string, labels map[string]string, upgrades []Upgrade) error {
	if labels["node"] != "" && !slices.ContainsFunc(upgrades, func(u Upgrade) bool { return u.InProgress() != nil }) {
		return fmt.Errorf("%s%v is about a node that is not being upgraded", name, labels)
	}
	if labels["name"] == "" {
		return nil // a series without an upgrade
	}
	i := slices.IndexFunc(upgrades, func(u Upgrade) bool {
		return u.Namespace == labels["namespace"] && u.Name == labels["name"] && u.label() == labels["kind"]
	})
	if i < 0 {
		return fmt.Errorf("%s%v is about a deleted upgrade", name, labels)
	}
	upgrade := &upgrades[i]
	if len(upgrade.History) == 0 {
		return fmt.Errorf("%s%v is about an upgrade without a history", name, labels)
	}
	newest := &upgrade.History[0]
	truth := map[string]string{"kind": upgrade.label(), "version": newest.Version, "phase": string(newest.Phase)}
	for _, c := range newest.Conditions {
		if c.StartTime != nil && c.CompleteTime == nil {
			truth["step"] = c.Type
		}
	}
	if c := meta.FindStatusCondition(upgrade.Conditions, labels["condition"]); c != nil {
		truth["condition"], truth["status"], truth["reason"] = c.Type, string(c.Status), c.Reason
	}
	for label, value := range labels {
		if label != "namespace" && label != "name" && value != truth[label] {
			return fmt.Errorf("%s%v is stale: its %s is %q", name, labels, label, truth[label])
		}
	}
	if name == "managed_upgrade_last_sync_timestamp_seconds" && newest.CompleteTime != nil {
		return fmt.Errorf("%s%v is about an upgrade that is over", name, labels)
	}
	return nil
}

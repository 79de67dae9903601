// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	fleetrun "github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// defaultTimes explains the origin of the deadlines on a page.
const defaultTimes = "Times are from the [default configuration](../reference/configuration.md)."

func runbook(name string, newUpgrader func(upgraders.Deps) upgraders.ClusterUpgrader) func() (string, error) {
	return func() (string, error) {
		deps := upgraders.Deps{Config: config.Default()}
		book := newUpgrader(deps).Runbook(upgraders.Attempt{})
		return upgraders.Page(name, fmt.Sprintf("an UpgradeConfig of type `%s`", name), defaultTimes, book)
	}
}

// jobRunbook returns the page about UpgradeJobs.
func jobRunbook() (string, error) {
	job := &maintenancev1beta1.UpgradeJob{Spec: maintenancev1beta1.UpgradeJobSpec{
		StartAfter: "2027-03-02T21:00:00Z", StartBefore: "2027-03-02T22:00:00Z", DesiredVersion: maintenancev1beta1.DesiredVersion{Version: "4.20.6"},
	}}
	upgrader := upgraders.Job{Deps: upgraders.Deps{Config: config.Default()}}
	return upgraders.Page("UpgradeJob", "an `UpgradeJob`", defaultTimes, upgrader.Runbook(upgraders.Attempt{Job: job}))
}

// fleetRunbook returns the page about ClusterUpgradeRuns. Their upgrades have no window.
func fleetRunbook() (string, error) {
	cluster := fleetrun.Cluster{Run: &fleetv1alpha1.ClusterUpgradeRun{}}
	book := cluster.Runbook(nil, time.Time{})
	page, err := upgraders.Page("ClusterUpgradeRun", "a `ClusterUpgradeRun`", "Times are the defaults of `upgradeStrategy`.", book)
	if err != nil {
		return "", err
	}
	return strings.NewReplacer("when the window closes, or ", "", "when the window closes", "–").Replace(page), nil
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

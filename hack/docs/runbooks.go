// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks/fleet"
)

// defaultTimes says where the deadlines of a page come from.
const defaultTimes = "Times are those of the [default configuration](../reference/configuration.md)."

// upgrader is a way to upgrade.
type upgrader interface {
	Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook
}

func runbook(name string, newUpgrader func(runbooks.Deps) upgrader) func() (string, error) {
	return func() (string, error) {
		deps := runbooks.Deps{Config: config.Default()}
		book := newUpgrader(deps).Runbook(&v1alpha1.UpgradeConfig{})
		return runbooks.Page(name, fmt.Sprintf("an UpgradeConfig of type `%s`", name), defaultTimes, book)
	}
}

// jobRunbook returns the page of UpgradeJobs.
func jobRunbook() (string, error) {
	job := &v1beta1.UpgradeJob{Spec: v1beta1.UpgradeJobSpec{
		StartAfter: "2027-03-02T21:00:00Z", StartBefore: "2027-03-02T22:00:00Z", DesiredVersion: v1beta1.DesiredVersion{Version: "4.20.6"},
	}}
	acquire := func(context.Context, engine.Run) (engine.Result, error) { return engine.Result{}, nil }
	upgrader := runbooks.Job{Deps: runbooks.Deps{Config: config.Default()}}
	return runbooks.Page("UpgradeJob", "an `UpgradeJob`", defaultTimes, upgrader.Runbook(job, history.Record{}, acquire))
}

// fleetRunbook returns the page of ClusterUpgradeRuns. Their upgrades have no window.
func fleetRunbook() (string, error) {
	book := fleet.Upgrader{}.Runbook(&fleetv1alpha1.ClusterUpgradeRun{}, history.Record{}, time.Time{})
	page, err := runbooks.Page("ClusterUpgradeRun", "a `ClusterUpgradeRun`", "Times are the defaults of `upgradeStrategy`.", book)
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

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"context"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// ClusterUpgrader returns the runbook that upgrades a cluster. OSD, ARO, and Job implement it.
type ClusterUpgrader interface {
	// Runbook returns the table of the steps of an attempt. It makes no request and changes nothing. The table
	// has the same shape for every attempt, even the zero Attempt. The window, holds, and cancellations are not
	// part of the table.
	Runbook(attempt Attempt) engine.Runbook
}

// Attempt is one attempt at an upgrade.
type Attempt struct {
	// Config is the UpgradeConfig that requests the upgrade. A nil Config stands for an empty one.
	Config *upgradev1alpha1.UpgradeConfig
	// Job is the UpgradeJob that requests the upgrade. A nil Job stands for an empty one.
	Job *maintenancev1beta1.UpgradeJob
	// Record is the record of the attempt, or zero.
	Record history.Record
	// Acquire is done once the attempt has the lock of the cluster. A table with Commit.After has a step for
	// it; other tables acquire the lock before the first step. If nil, the lock is never acquired, and the
	// table is only read.
	Acquire engine.UpgradeStep
}

// AttemptAt returns the newest attempt at an UpgradeConfig.
func AttemptAt(cfg *upgradev1alpha1.UpgradeConfig) Attempt {
	attempt := Attempt{Config: cfg}
	if len(cfg.Status.History) > 0 {
		attempt.Record = cfg.Status.History[0]
	}
	return attempt
}

func (a Attempt) config() *upgradev1alpha1.UpgradeConfig {
	if a.Config == nil {
		return &upgradev1alpha1.UpgradeConfig{}
	}
	return a.Config
}

func (a Attempt) job() *maintenancev1beta1.UpgradeJob {
	if a.Job == nil {
		return &maintenancev1beta1.UpgradeJob{}
	}
	return a.Job
}

func (a Attempt) acquire() engine.UpgradeStep {
	if a.Acquire == nil {
		return func(context.Context, engine.Run) (engine.Result, error) {
			return engine.Wait("ClusterLocked", "the runbook is only read"), nil
		}
	}
	return a.Acquire
}

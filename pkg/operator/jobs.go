// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejob"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejobhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// newJobs sets what runs UpgradeJobs and their hooks.
func (p *operator) newJobs(o *manager.Options, watches []manager.Kind) error {
	hookMetrics, err := metrics.NewHooks(p.registry)
	if err != nil {
		return fmt.Errorf("registering the metrics of hooks: %w", err)
	}
	p.hooks = &hooks.Runner{
		Config:    func() config.Hooks { return p.snapshot().Config.Hooks },
		Publisher: p.notifier(), Metrics: hookMetrics,
	}
	p.hookKinds = &upgradejobhook.Reconciler{
		Clock: p.clock, WatchNamespaces: o.Watched(), Runner: p.hooks, ConfigChanged: p.changed(), Publisher: p.events, Metrics: hookMetrics,
	}
	p.jobs = &upgradejob.Reconciler{
		Clock: p.clock, Namespace: o.Namespace, WatchNamespaces: o.Watched(),
		Config: p.jobSnapshot, ConfigChanged: p.changed(), Holders: p.holders, Notifier: p.notifier(), Metrics: p.metrics,
		Watches: p.withHooks(o, watches, maintenance.JobOwners()),
	}
	return nil
}

// withHooks returns the watches, and those that the hooks of upgrades of a kind need.
func (p *operator) withHooks(o *manager.Options, watches []manager.Kind, kind maintenance.OwnerKind) []manager.Kind {
	if p.withoutMaintenance {
		return watches
	}
	return append(slices.Clone(watches), facts.HookJobs(o.Watched(), kind), facts.UpgradeJobHooks(o.Watched()))
}

// jobSnapshot returns the configuration in effect for UpgradeJobs.
func (p *operator) jobSnapshot() upgradejob.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return upgradejob.Snapshot{Upgrader: p.currentJob, Config: p.current.Config, ConfigError: p.current.ConfigError}
}

// jobRunbook returns the runbook of an attempt at an UpgradeJob. It is only read.
func (p *operator) jobRunbook(job *maintenancev1beta1.UpgradeJob, record history.Record) engine.Runbook {
	return p.jobSnapshot().Upgrader.Runbook(upgraders.Attempt{Job: job, Record: record})
}

// configProblem returns the reason for which the entries of pools of an UpgradeJob do not suit the cluster.
func (p *operator) configProblem(ctx context.Context, job *maintenancev1beta1.UpgradeJob, now time.Time) (reason, message string, err error) {
	return p.jobSnapshot().Upgrader.ConfigProblem(ctx, job, now)
}

// validateJob returns everything that is invalid in the runbook of UpgradeJobs.
func validateJob(job upgraders.Job) error {
	if err := job.Runbook(upgraders.Attempt{}).Validate(); err != nil {
		return fmt.Errorf("the runbook of UpgradeJobs: %w", err)
	}
	return nil
}

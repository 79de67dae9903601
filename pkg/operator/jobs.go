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

// newJobs sets up the controllers of UpgradeJobs and their hooks.
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

// withHooks returns the watches plus those needed for the hooks of a kind of upgrades.
func (p *operator) withHooks(o *manager.Options, watches []manager.Kind, kind maintenance.OwnerKind) []manager.Kind {
	if p.withoutMaintenance {
		return watches
	}
	return append(slices.Clone(watches), facts.HookJobs(o.Watched(), kind), facts.UpgradeJobHooks(o.Watched()))
}

// jobSnapshot returns the effective configuration for UpgradeJobs.
func (p *operator) jobSnapshot() upgradejob.ConfigSnapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return upgradejob.ConfigSnapshot{Upgrader: p.currentJob, Config: p.current.Config, ConfigError: p.current.ConfigError}
}

// jobRunbook returns the runbook of an attempt of an UpgradeJob. Callers must not run it.
func (p *operator) jobRunbook(job *maintenancev1beta1.UpgradeJob, record history.Record) engine.Runbook {
	return p.jobSnapshot().Upgrader.Runbook(upgraders.Attempt{Job: job, Record: record})
}

// configProblem returns the reason and message if the pool entries of an UpgradeJob do not match
// the cluster.
func (p *operator) configProblem(ctx context.Context, job *maintenancev1beta1.UpgradeJob, now time.Time) (reason, message string, err error) {
	return p.jobSnapshot().Upgrader.ConfigProblem(ctx, job, now)
}

// validateJob returns all errors in the runbook of UpgradeJobs.
func validateJob(job upgraders.Job) error {
	if err := job.Runbook(upgraders.Attempt{}).Validate(); err != nil {
		return fmt.Errorf("the runbook of UpgradeJobs: %w", err)
	}
	return nil
}

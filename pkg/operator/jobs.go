// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejob"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejobhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
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
		Watches: append(slices.Clone(watches), facts.HookJobs(o.Watched()), facts.UpgradeJobHooks(o.Watched())),
	}
	return nil
}

// jobSnapshot returns the configuration in effect for UpgradeJobs.
func (p *operator) jobSnapshot() upgradejob.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return upgradejob.Snapshot{Upgrader: p.currentJob, Config: p.current.Config, ConfigError: p.current.ConfigError}
}

// jobRunbook returns the runbook of an attempt at an UpgradeJob. It is only read.
func (p *operator) jobRunbook(job *v1beta1.UpgradeJob, record history.Record) engine.Runbook {
	return p.jobSnapshot().Upgrader.Runbook(job, record, neverAcquired)
}

// poolProblem returns why the entries of pools of an UpgradeJob do not suit the cluster.
func (p *operator) poolProblem(ctx context.Context, job *v1beta1.UpgradeJob) (string, error) {
	return p.jobSnapshot().Upgrader.PoolProblem(ctx, job)
}

// neverAcquired acquires the lock in a runbook that is only read.
func neverAcquired(context.Context, engine.Run) (engine.Result, error) {
	return engine.Wait(lifecycle.ReasonClusterLocked, "the runbook is only read"), nil
}

// validateJob returns everything that is invalid in the runbook of UpgradeJobs.
func validateJob(job runbooks.Job) error {
	book := job.Runbook(&v1beta1.UpgradeJob{}, history.Record{}, neverAcquired)
	book.AdoptAfter = job.LockStep()
	if err := book.Validate(); err != nil {
		return fmt.Errorf("the runbook of UpgradeJobs: %w", err)
	}
	return nil
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// A message alone is saved at most this often, because a maintenance takes hours.
const (
	minSaveInterval = 5 * time.Minute
	maxSaveInterval = 15 * time.Minute
)

// saveInterval returns how often a waiting step is saved if only its message, or nothing, has changed. The
// interval grows with the wait.
func saveInterval(record history.Record, now time.Time) time.Duration {
	if len(record.Conditions) == 0 {
		return minSaveInterval
	}
	step := record.Conditions[len(record.Conditions)-1]
	since := cmp.Or(step.ReasonTime, step.StartTime)
	if since == nil {
		return minSaveInterval
	}
	return min(max(now.Sub(since.Time)/3, minSaveInterval), maxSaveInterval)
}

// runbookType names the only runbook.
const runbookType = "UpgradeJob"

// kind describes UpgradeJobs to the lifecycle.
type kind struct{ *Reconciler }

// GroupVersionKind identifies UpgradeJobs.
func (kind) GroupVersionKind() schema.GroupVersionKind {
	return maintenancev1beta1.GroupVersion.WithKind("UpgradeJob")
}

// Finalizer returns the finalizer of an attempt in progress.
func (kind) Finalizer() string { return maintenancev1beta1.Finalizer }

// New returns an empty UpgradeJob.
func (kind) New() *maintenancev1beta1.UpgradeJob { return &maintenancev1beta1.UpgradeJob{} }

// HistoryKey returns ByAttempt, because an UpgradeJob that only runs hooks has no version.
func (kind) HistoryKey() lifecycle.HistoryKey { return lifecycle.ByAttempt }

// LockKey names the cluster's lock.
func (k kind) LockKey(*maintenancev1beta1.UpgradeJob) client.ObjectKey {
	return client.ObjectKey{Namespace: k.Namespace, Name: lock.Name}
}

// List returns all UpgradeJobs.
func (kind) List(ctx context.Context, r client.Reader) ([]*maintenancev1beta1.UpgradeJob, error) {
	var list maintenancev1beta1.UpgradeJobList
	if err := r.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the UpgradeJobs: %w", err)
	}
	all := make([]*maintenancev1beta1.UpgradeJob, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

// Status returns access to the status.
func (kind) Status(job *maintenancev1beta1.UpgradeJob) lifecycle.Status {
	return lifecycle.Status{
		Conditions: &job.Status.Conditions, ObservedGeneration: &job.Status.ObservedGeneration,
		NextTime: &job.Status.NextTime, History: &job.Status.History,
		KindConditions: []string{maintenancev1beta1.ConditionAcknowledged},
	}
}

// Request returns the first attempt, or the last one that a user has requested.
func (kind) Request(job *maintenancev1beta1.UpgradeJob) lifecycle.AttemptRequest {
	request := lifecycle.AttemptRequest{Version: job.Spec.DesiredVersion.Version, RunbookType: runbookType}
	start, _, err := maintenance.Window(job)
	if err != nil {
		request.InvalidTime = err.Error()
		return request
	}
	request.At = start
	if latest := maintenance.LatestAttempt(job); latest != nil && latest.Attempt > 1 && latest.UpgradeAt != nil {
		request.At = latest.UpgradeAt.Time
	}
	return request
}

// Plan returns how to carry out the attempt with the current configuration.
func (k kind) Plan(job *maintenancev1beta1.UpgradeJob, record history.Record, _ string, acquire engine.UpgradeStep) lifecycle.AttemptPlan {
	snapshot := k.Config()
	if job.Spec.DesiredVersion.Version == "" && record.Version != "" { // the UpgradeJob is gone: only the Lease names its version
		job = job.DeepCopy()
		job.Spec.DesiredVersion.Version = record.Version
	}
	plan := lifecycle.AttemptPlan{
		Known: true, Type: runbookType,
		Book:          snapshot.Upgrader.Runbook(upgraders.Attempt{Job: job, Record: record, Acquire: acquire}),
		CancelTimeout: snapshot.Config.Cancellation.Timeout.Duration,
		ConfigError:   snapshot.ConfigError,
		Observe:       facts.Observe(k.Client, ""),
		Retry:         "set the annotation " + maintenancev1beta1.RetryAnnotation + " to another value",
	}
	plan.MessageInterval = saveInterval(record, k.Clock.Now())
	plan.Heartbeat = plan.MessageInterval
	if observed, found := k.facts.get(job); found {
		plan.InvalidReason, plan.InvalidMessage = observed.reason, observed.problem
	}
	start, end, err := maintenance.Window(job)
	if err != nil {
		return plan
	}
	plan.Window = end.Sub(start)
	if snapshot.Config.PreChecks.LeadTime.Duration > 0 { // an UpgradeJob exists only since its version was pinned
		plan.PreCheckLead = max(time.Second, start.Sub(job.CreationTimestamp.Time))
	}
	return plan
}

// Hold returns why no upgrade may commence on the cluster, or an empty string.
func (k kind) Hold(ctx context.Context) (string, error) { return facts.Hold(ctx, k.Client) }

// CacheIsCurrent reports whether the cache holds the newest ClusterVersion.
func (k kind) CacheIsCurrent(ctx context.Context) (bool, error) {
	return facts.IsCurrent(ctx, k.Client, k.Live)
}

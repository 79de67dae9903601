// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// kind describes UpgradeConfigs to the lifecycle.
type kind struct{ *Reconciler }

// GroupVersionKind identifies UpgradeConfigs.
func (kind) GroupVersionKind() schema.GroupVersionKind {
	return upgradev1alpha1.GroupVersion.WithKind("UpgradeConfig")
}

// Finalizer returns the finalizer of an upgrade in progress.
func (kind) Finalizer() string { return upgradev1alpha1.Finalizer }

// New returns an empty UpgradeConfig.
func (kind) New() *upgradev1alpha1.UpgradeConfig { return &upgradev1alpha1.UpgradeConfig{} }

// HistoryKey returns ByVersion: the history has a record per version.
func (kind) HistoryKey() lifecycle.HistoryKey { return lifecycle.ByVersion }

// LockKey names the cluster's lock.
func (k kind) LockKey(*upgradev1alpha1.UpgradeConfig) client.ObjectKey {
	return client.ObjectKey{Namespace: k.Namespace, Name: lock.Name}
}

// List returns all UpgradeConfigs.
func (kind) List(ctx context.Context, r client.Reader) ([]*upgradev1alpha1.UpgradeConfig, error) {
	var list upgradev1alpha1.UpgradeConfigList
	if err := r.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the UpgradeConfigs: %w", err)
	}
	all := make([]*upgradev1alpha1.UpgradeConfig, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

// Status returns access to the status.
func (kind) Status(cfg *upgradev1alpha1.UpgradeConfig) lifecycle.Status {
	return lifecycle.Status{
		Conditions: &cfg.Status.Conditions, ObservedGeneration: &cfg.Status.ObservedGeneration,
		NextTime: &cfg.Status.NextTime, History: &cfg.Status.History, Replaced: &cfg.Status.ReplacedAttempts,
		KindConditions: []string{upgradev1alpha1.ConditionApproved},
	}
}

// Request returns the upgrade that the spec requests.
func (kind) Request(cfg *upgradev1alpha1.UpgradeConfig) lifecycle.AttemptRequest {
	request := lifecycle.AttemptRequest{Version: cfg.Spec.Desired.Version, RunbookType: cfg.Spec.Type}
	var err error
	if request.At, err = maintenance.UpgradeStart(cfg); err != nil {
		request.InvalidTime = fmt.Sprintf("spec.upgradeAt %q is not a valid RFC 3339 time, for example 2020-05-01T12:00:00Z", cfg.Spec.UpgradeAt)
	}
	request.Paused = maintenance.PausedBy(cfg)
	if len(maintenance.StartRequests(cfg)) > 0 { // or the status that answered it was lost
		request.StartRequested = true
		if record := inProgress(cfg); record != nil && record.UpgradeAt != nil && err == nil {
			request.At = record.UpgradeAt.Time
		}
	}
	return request
}

// Plan returns how to carry out the attempt with the current configuration.
func (k kind) Plan(cfg *upgradev1alpha1.UpgradeConfig, record history.Record, runbookType string, _ engine.UpgradeStep) lifecycle.AttemptPlan {
	snapshot := k.Config()
	plan := lifecycle.AttemptPlan{
		Type:          "unknown",
		Window:        snapshot.Config.UpgradeWindow.Duration,
		PreCheckLead:  snapshot.Config.PreChecks.LeadTime.Duration,
		CancelTimeout: snapshot.Config.Cancellation.Timeout.Duration,
		ConfigError:   snapshot.ConfigError,
		Observe:       facts.Observe(k.Client, cfg.Spec.Desired.Channel),
		Retry:         "set spec.upgradeAt to another time, or the annotation " + upgradev1alpha1.RetryAnnotation + " to another value",
	}
	attempt := upgraders.Attempt{Config: withVersion(cfg, record.Version), Record: record}
	upgrader := snapshot.Upgraders[runbookType]
	if upgrader == nil {
		known := slices.Sorted(maps.Keys(snapshot.Upgraders))
		plan.Unknown = fmt.Sprintf("spec.type %q is unknown; this operator knows %s", runbookType, strings.Join(known, ", "))
		plan.Book.Abandon = func(ctx context.Context) error { return k.abandonAs(ctx, known, snapshot.Upgraders, attempt) }
		return plan
	}
	plan.Known, plan.Type = true, runbookType
	plan.Book = upgrader.Runbook(attempt)
	plan.Book.Admission = upgraders.Admission(upgraders.Deps{Client: k.Client, Live: k.Live}, attempt, plan.Book.Admission)
	return plan
}

// abandonAs abandons an attempt of an unknown type by means of every known type, because the steps of all types
// leave the same kinds of things behind.
func (k kind) abandonAs(ctx context.Context, types []string, known map[string]upgraders.ClusterUpgrader, attempt upgraders.Attempt) error {
	run := engine.WithdrawalOf(attempt.Record, k.Clock.Now())
	var errs []error
	for _, name := range types {
		book := known[name].Runbook(attempt)
		errs = append(errs, book.Withdraw(ctx, run))
		if book.Abandon != nil {
			errs = append(errs, book.Abandon(ctx))
		}
	}
	return errors.Join(errs...)
}

// withVersion returns the UpgradeConfig for the runbook of an attempt at the version.
func withVersion(cfg *upgradev1alpha1.UpgradeConfig, version string) *upgradev1alpha1.UpgradeConfig {
	if cfg.Spec.Desired.Version == version {
		return cfg
	}
	cfg = cfg.DeepCopy()
	cfg.Spec.Desired.Version, cfg.Spec.Desired.Image, cfg.Spec.Desired.AcceptedRisks = version, "", nil // these belong to another version
	return cfg
}

// Hold returns why no upgrade may commence on the cluster, or an empty string.
func (k kind) Hold(ctx context.Context) (string, error) { return facts.Hold(ctx, k.Client) }

// CacheIsCurrent reports whether the cache holds the newest ClusterVersion.
func (k kind) CacheIsCurrent(ctx context.Context) (bool, error) {
	return facts.IsCurrent(ctx, k.Client, k.Live)
}

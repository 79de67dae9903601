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
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
)

// The reasons for which an UpgradeConfig can never succeed.
const (
	reasonInvalidVersion = "InvalidVersion"
	reasonDowngrade      = "Downgrade"
)

// maxHistory is the number of versions in the history.
const maxHistory = 16

// kind describes UpgradeConfigs to the lifecycle.
type kind struct{ *Reconciler }

// GroupVersionKind returns that of UpgradeConfigs.
func (kind) GroupVersionKind() schema.GroupVersionKind {
	return v1alpha1.GroupVersion.WithKind("UpgradeConfig")
}

// Finalizer returns the finalizer of an upgrade in progress.
func (kind) Finalizer() string { return v1alpha1.Finalizer }

// New returns an empty UpgradeConfig.
func (kind) New() *v1alpha1.UpgradeConfig { return &v1alpha1.UpgradeConfig{} }

// HistoryKey returns the version: the history has a record per version.
func (kind) HistoryKey() lifecycle.HistoryKey { return lifecycle.ByVersion }

// MaxHistory returns the number of versions in the history.
func (kind) MaxHistory() int { return maxHistory }

// LockNamespace returns the namespace of the cluster's lock.
func (k kind) LockNamespace(*v1alpha1.UpgradeConfig) string { return k.Namespace }

// List returns all UpgradeConfigs.
func (kind) List(ctx context.Context, r client.Reader) ([]*v1alpha1.UpgradeConfig, error) {
	var list v1alpha1.UpgradeConfigList
	if err := r.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the UpgradeConfigs: %w", err)
	}
	all := make([]*v1alpha1.UpgradeConfig, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

// Status returns access to the status.
func (kind) Status(cfg *v1alpha1.UpgradeConfig) lifecycle.Status {
	return lifecycle.Status{
		Conditions: &cfg.Status.Conditions, ObservedGeneration: &cfg.Status.ObservedGeneration,
		NextTime: &cfg.Status.NextTime, History: &cfg.Status.History,
		KindConditions: []string{v1alpha1.ConditionApproved},
	}
}

// Request returns the upgrade that the spec requests.
func (kind) Request(cfg *v1alpha1.UpgradeConfig) lifecycle.Request {
	request := lifecycle.Request{Version: cfg.Spec.Desired.Version, RunbookType: cfg.Spec.Type}
	var err error
	if request.At, err = time.Parse(time.RFC3339, cfg.Spec.UpgradeAt); err != nil {
		request.InvalidTime = fmt.Sprintf("spec.upgradeAt %q is not a valid RFC 3339 time, for example 2020-05-01T12:00:00Z", cfg.Spec.UpgradeAt)
	}
	if cfg.Spec.Paused != nil && *cfg.Spec.Paused {
		request.Paused = "paused by spec.paused"
	}
	return request
}

// Plan returns how the attempt is carried out by the present configuration.
func (k kind) Plan(cfg *v1alpha1.UpgradeConfig, record history.Record, runbookType string, _ engine.UpgradeStep) lifecycle.Plan {
	snapshot := k.Config()
	plan := lifecycle.Plan{
		Type:          "unknown",
		Window:        snapshot.Config.UpgradeWindow.Duration,
		PreCheckLead:  snapshot.Config.PreChecks.LeadTime.Duration,
		CancelTimeout: snapshot.Config.Cancellation.Timeout.Duration,
		ConfigError:   snapshot.ConfigError,
		Retry:         "set spec.upgradeAt to another time",
	}
	upgrader := snapshot.Upgraders[runbookType]
	if upgrader == nil {
		known := slices.Sorted(maps.Keys(snapshot.Upgraders))
		plan.Unknown = fmt.Sprintf("spec.type %q is unknown; this operator knows %s", runbookType, strings.Join(known, ", "))
		return plan
	}
	plan.Known, plan.Type = true, runbookType
	plan.Book = upgrader.Runbook(withRecord(cfg, record))
	return plan
}

// withRecord returns the UpgradeConfig for which the runbook is made: that of the attempt.
func withRecord(cfg *v1alpha1.UpgradeConfig, record history.Record) *v1alpha1.UpgradeConfig {
	cfg = cfg.DeepCopy()
	if cfg.Spec.Desired.Version != record.Version { // the rest belongs to another version
		cfg.Spec.Desired.Image, cfg.Spec.Desired.AcceptedRisks = "", nil
	}
	cfg.Spec.Desired.Version = record.Version
	rest := slices.DeleteFunc(cfg.Status.History, func(r history.Record) bool { return r.Version == record.Version })
	cfg.Status.History = append([]history.Record{record}, rest...)
	return cfg
}

// Hold returns why no upgrade may commence on the cluster; empty if nothing holds it.
func (k kind) Hold(ctx context.Context) (string, error) { return facts.Hold(ctx, k.Client) }

// Observe returns what decides whether the upgrade can start.
func (k kind) Observe(ctx context.Context, cfg *v1alpha1.UpgradeConfig, record history.Record) (lifecycle.Observation, error) {
	version, err := clusterstate.GetClusterVersion(ctx, k.Client)
	if err != nil {
		return lifecycle.Observation{}, err
	}
	if version.Installed == "" {
		return lifecycle.Observation{}, errors.New("the ClusterVersion names no installed version yet")
	}
	requested := cfg.Spec.Desired.Channel
	seen := lifecycle.Observation{Version: version.Installed, RequestedChannel: requested}
	if !slices.Contains(record.Channels, version.Channel) && (version.Channel != requested || record.PrecedingChannel == nil) {
		seen.Channel = &version.Channel
	}
	target := clusterstate.Target{Version: record.Version}
	if record.Version == cfg.Spec.Desired.Version {
		target.Image = cfg.Spec.Desired.Image
	}
	if err := clusterstate.ValidateVersion(record.Version); err != nil {
		seen.Reason, seen.Message = reasonInvalidVersion, fmt.Sprintf("spec.desired.version: %v", err)
		return seen, nil
	}
	change, err := version.ChangeTo(target)
	switch {
	case err != nil:
		return lifecycle.Observation{}, err
	case change == clusterstate.Downgrade:
		seen.Reason = reasonDowngrade
		seen.Message = fmt.Sprintf("spec.desired.version is %s, and %s is installed: an upgrade leads to a newer version", record.Version, version.Installed)
	case change == clusterstate.Same && version.Completed && version.Current.HasOtherImage(target.Image):
		seen.Reason = reasonInvalidVersion
		seen.Message = fmt.Sprintf("spec.desired.image is not the image of %s that is installed: an upgrade leads to a newer version", record.Version)
	case change == clusterstate.Same:
		seen.NothingToDo, err = checks.IsInstalled(ctx, k.Client, target) // if the cache is behind, the rest of the steps find out
		if err != nil {
			return lifecycle.Observation{}, err
		}
	}
	return seen, nil
}

// CacheIsCurrent reports whether the cache holds the newest ClusterVersion.
func (k kind) CacheIsCurrent(ctx context.Context) (bool, error) {
	return facts.IsCurrent(ctx, k.Client, k.Live)
}

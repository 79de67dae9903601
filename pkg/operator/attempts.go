// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/nodekeeper"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// UpgradeConfigSource returns a nodekeeper source for UpgradeConfigs. kind declares the reconciled
// objects. runbook returns the runbook of an upgrade, or an empty one if its type is unknown.
func UpgradeConfigSource(
	kind manager.Kind, clk clock.PassiveClock, runbook func(*upgradev1alpha1.UpgradeConfig) engine.Runbook,
) nodekeeper.AttemptSource {
	active := func(ctx context.Context, cache client.Reader) ([]nodekeeper.Attempt, error) {
		var list upgradev1alpha1.UpgradeConfigList
		if err := cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the UpgradeConfigs: %w", err)
		}
		var active []nodekeeper.Attempt
		for i := range list.Items {
			cfg := &list.Items[i]
			for _, record := range cfg.Status.History {
				if !record.InProgress() || !isCommitted(runbook(cfg), record, clk.Now()) {
					continue
				}
				active = append(active, nodekeeper.Attempt{
					Version: record.Version, StartTime: record.StartTime.Time,
					PDBTimeout: upgraders.PDBTimeout(cfg), PDBTimeoutField: "PDBForceDrainTimeout",
					Key: attemptKey(upgradev1alpha1.GroupVersion.Group, "UpgradeConfig", cfg.UID, record),
				})
			}
		}
		return active, nil
	}
	return nodekeeper.AttemptSource{Kind: kind, Active: active}
}

// UpgradeJobSource returns a nodekeeper source for UpgradeJobs that force drains. kind declares the
// reconciled objects. runbook returns the runbook of an attempt.
func UpgradeJobSource(
	kind manager.Kind, clk clock.PassiveClock, runbook func(*maintenancev1beta1.UpgradeJob, history.Record) engine.Runbook,
) nodekeeper.AttemptSource {
	active := func(ctx context.Context, cache client.Reader) ([]nodekeeper.Attempt, error) {
		var list maintenancev1beta1.UpgradeJobList
		if err := cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the UpgradeJobs: %w", err)
		}
		var active []nodekeeper.Attempt
		for i := range list.Items {
			job := &list.Items[i]
			after := upgraders.ForceDrainAfter(job)
			if after < 0 {
				continue
			}
			for _, record := range job.Status.History {
				if !record.InProgress() || !isCommitted(runbook(job, record), record, clk.Now()) {
					continue
				}
				active = append(active, nodekeeper.Attempt{
					Version: record.Version, StartTime: record.StartTime.Time,
					PDBTimeout: after, PDBTimeoutField: "config.forceDrainAfter",
					Key: attemptKey(maintenancev1beta1.GroupVersion.Group, "UpgradeJob", job.UID, record),
				})
			}
		}
		return active, nil
	}
	return nodekeeper.AttemptSource{Kind: kind, Active: active}
}

// isCommitted reports whether the attempt has passed the point of no return according to its
// record. Pods are never force-deleted for an upgrade that was not started by this operator.
func isCommitted(book engine.Runbook, record history.Record, now time.Time) bool {
	return engine.Summarize(book, record, now, engine.Constraints{}).Committed
}

// attemptKey returns a key that is unique across all attempts of all objects and kinds.
func attemptKey(group, kind string, uid types.UID, record history.Record) string {
	return strings.Join([]string{group, kind, string(uid), record.Version, engine.AttemptKey(record)}, "/")
}

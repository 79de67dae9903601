// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/nodekeeper"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// upgradeConfigAttempts lists the attempts of UpgradeConfigs for nodekeeper.
type upgradeConfigAttempts struct {
	client client.Reader // the cache
	clock  clock.PassiveClock
	// runbook returns the table of an upgrade; an empty one if its type is unknown.
	runbook func(*v1alpha1.UpgradeConfig) engine.Runbook
}

// NewAttempts returns the attempts of UpgradeConfigs as the operator lists them. The reader is the
// cache; runbook returns an empty table if the type of an upgrade is unknown.
func NewAttempts(r client.Reader, clk clock.PassiveClock, runbook func(*v1alpha1.UpgradeConfig) engine.Runbook) nodekeeper.Attempts {
	return &upgradeConfigAttempts{client: r, clock: clk, runbook: runbook}
}

// Active implements nodekeeper.Attempts.
func (a *upgradeConfigAttempts) Active(ctx context.Context) ([]nodekeeper.Attempt, error) {
	var list v1alpha1.UpgradeConfigList
	if err := a.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the UpgradeConfigs: %w", err)
	}
	var active []nodekeeper.Attempt
	for i := range list.Items {
		cfg := &list.Items[i]
		for j := range cfg.Status.History {
			record := cfg.Status.History[j]
			if record.StartTime == nil || record.CompleteTime != nil || !a.committed(cfg, record) {
				continue
			}
			active = append(active, nodekeeper.Attempt{
				Version: record.Version, Key: attemptKey(cfg, record), StartTime: record.StartTime.Time, PDBTimeout: pdbTimeout(cfg),
			})
		}
	}
	return active, nil
}

// committed reports whether the record holds that the point of no return is passed. Pods are never
// forced for an upgrade that commenced without this operator.
func (a *upgradeConfigAttempts) committed(cfg *v1alpha1.UpgradeConfig, record history.Record) bool {
	return engine.Summarize(a.runbook(cfg), record, a.clock.Now(), engine.Constraints{}).Committed
}

// attemptKey returns a key that is unique among the attempts of all objects.
func attemptKey(cfg *v1alpha1.UpgradeConfig, record history.Record) string {
	return strings.Join([]string{v1alpha1.GroupVersion.Group, "UpgradeConfig", string(cfg.UID), record.Version, engine.AttemptKey(record)}, "/")
}

func pdbTimeout(cfg *v1alpha1.UpgradeConfig) time.Duration {
	if cfg.Spec.PDBForceDrainTimeout == nil {
		return -1
	}
	return time.Duration(*cfg.Spec.PDBForceDrainTimeout) * time.Minute
}

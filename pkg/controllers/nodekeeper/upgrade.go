// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// upgrade is what bears on drains of the upgrade that is under way.
type upgrade struct {
	version   string
	attempt   int32
	startTime time.Time
	// pdbTimeout is for how long a pod may be held by a disruption budget;
	// negative: for ever.
	pdbTimeout time.Duration
}

// notificationID is that of what is told about an object in this attempt.
func (u *upgrade) notificationID(uid types.UID, key string) string {
	return engine.NotificationID(string(uid), u.attempt, u.version, key)
}

// activeUpgrade is the upgrade that has begun, has passed its point of no return and
// is not over; nil if there is none. Before that point nodes may well be
// drained, but not because of an upgrade.
func (r *Reconciler) activeUpgrade(ctx context.Context) (*upgrade, error) {
	var list v1alpha1.UpgradeConfigList
	if err := r.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the UpgradeConfigs: %w", err)
	}
	for i := range list.Items {
		cfg := &list.Items[i]
		for _, record := range cfg.Status.History {
			if record.StartTime != nil && record.CompleteTime == nil && r.committed(cfg, record) {
				return &upgrade{record.Version, record.Attempt, record.StartTime.Time, pdbTimeout(cfg)}, nil
			}
		}
	}
	return nil, nil
}

func (r *Reconciler) committed(cfg *v1alpha1.UpgradeConfig, record history.Record) bool {
	return engine.Summarize(r.Runbook(cfg), record, r.Clock.Now()).Committed
}

func pdbTimeout(cfg *v1alpha1.UpgradeConfig) time.Duration {
	if cfg.Spec.PDBForceDrainTimeout == nil {
		return -1
	}
	return time.Duration(*cfg.Spec.PDBForceDrainTimeout) * time.Minute
}

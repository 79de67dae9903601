// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

func runbookOf(snapshot upgradeconfig.ConfigSnapshot) func(*upgradev1alpha1.UpgradeConfig) engine.Runbook {
	return func(cfg *upgradev1alpha1.UpgradeConfig) engine.Runbook {
		if upgrader := snapshot.Upgraders[cfg.Spec.Type]; upgrader != nil {
			return upgrader.Runbook(upgraders.AttemptAt(cfg))
		}
		return engine.Runbook{}
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

func TestUpgradeJob_upgrades_the_cluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(newJob())
	w.untilEnded()
	if record := w.record(); record.Phase != history.PhaseUpgraded || w.commits != 1 {
		t.Errorf("%d requests; %s", w.commits, w.describe())
	}
}

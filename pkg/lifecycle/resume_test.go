// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// An earlier release did not record the requested time, and a record without it is finished as soon
// as its phase is Failed. The cleanup comes after that.
func TestResumedRecordOfAnEarlierReleaseGetsItsTime(t *testing.T) {
	t.Parallel()
	started := history.Record{Version: "4.4.6", Phase: history.PhaseUpgrading, StartTime: toMetaTime(noon)}
	got := currentRecord(Status{History: &[]history.Record{started}}, AttemptRequest{Version: "4.4.6", At: noon}, ByVersion)
	got.Phase = history.PhaseFailed
	if got.UpgradeAt == nil || got.Finished() {
		t.Errorf("upgradeAt is %v, finished: %t", got.UpgradeAt, got.Finished())
	}
}

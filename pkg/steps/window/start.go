// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"context"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// WaitUntilStart only waits for a point in time, so nothing is written until then.
func WaitUntilStart(start time.Time) engine.UpgradeStep {
	return func(_ context.Context, run engine.Run) (engine.Result, error) {
		if run.Now.Before(start) {
			return engine.WaitUntil(start, "Scheduled", "starts at %s", text.FormatTime(start)), nil
		}
		return engine.Done("the window opened at %s", text.FormatTime(start)), nil
	}
}

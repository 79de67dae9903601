// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"context"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// WaitUntilStart waits until a time and for nothing else, so that nothing is written meanwhile.
func WaitUntilStart(start time.Time) engine.UpgradeStep {
	return func(_ context.Context, run engine.Run) (engine.Result, error) {
		if run.Now.Before(start) {
			return engine.WaitUntil(start, "Scheduled", "starts at %s", formatTime(start)), nil
		}
		return engine.Done("the window opened at %s", formatTime(start)), nil
	}
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

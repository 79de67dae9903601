// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: hundreds of short upgrades leave much, and keep little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: a simulated year leaves much, and keeps little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}

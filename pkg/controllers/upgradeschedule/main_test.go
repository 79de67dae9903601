// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"runtime/debug"
	"testing"
)

// TestMain makes garbage collection less frequent: a simulated year allocates a lot and retains
// little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}

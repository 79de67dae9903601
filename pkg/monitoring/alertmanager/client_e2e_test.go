// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package alertmanager_test

import (
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/monitoring"
)

// The same checks pass with the simulated Alertmanager and with a real one.
func TestClient_with_a_real_Alertmanager(t *testing.T) {
	t.Parallel()
	running, err := monitoring.Start(t.Context(), monitoring.Options{Dir: t.TempDir(), OnExit: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	checkSilenceLifecycle(t, clientFor(t, running.AlertmanagerURL()), time.Now())
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package alertmanager_test

import (
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
)

// The same checks must pass with the simulated and a real Alertmanager.
func TestClient_with_a_real_Alertmanager(t *testing.T) {
	t.Parallel()
	running := devtest.StartMonitoring(t, alerting.Spec{})
	checkSilenceLifecycle(t, clientFor(t, running.AlertmanagerURL()), time.Now())
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/monitoring"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
)

func TestPrograms_that_are_missing_are_named_with_the_remedy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prometheus"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := monitoring.Start(t.Context(), monitoring.Options{BinDir: dir, Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), `no program there named alertmanager; "make bin/prometheus bin/alertmanager" builds it`) {
		t.Errorf("got %v", err)
	}
}

func TestStart_rejects_an_invalid_alert(t *testing.T) {
	t.Parallel()
	spec := alerting.Spec{Alerts: []alerting.Alert{{Name: "Smoke"}, {}}}
	_, err := monitoring.Start(t.Context(), monitoring.Options{BinDir: t.TempDir(), Dir: t.TempDir(), Spec: spec})
	if err == nil || !strings.Contains(err.Error(), "alerts[1].alert: Required value") {
		t.Errorf("got %v", err)
	}
}

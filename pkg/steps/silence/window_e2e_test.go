// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package silence_test

import (
	"testing"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
)

// TestWindow_with_a_real_Alertmanager opens, extends, shortens, and closes windows.
func TestWindow_with_a_real_Alertmanager(t *testing.T) {
	t.Parallel()
	running := devtest.StartMonitoring(t, alerting.Spec{})
	c, err := alertmanager.New(httpclient.Options{URL: running.AlertmanagerURL()})
	if err != nil {
		t.Fatal(err)
	}
	now := clock.RealClock{}.Now()
	call := func(step engine.UpgradeStep) engine.Result {
		t.Helper()
		result, err := step(t.Context(), engine.Run{Started: now, Since: now, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	mine := engine.AttemptRef{UID: "real-" + now.String(), Kind: "UpgradeConfig", Namespace: "ns", Name: "cluster", Key: "2026-03-01T12:00:00Z", Version: "4.4.6"}
	alive := func() []alertmanager.Silence {
		t.Helper()
		var alive []alertmanager.Silence
		found, _, err := c.Silences(t.Context(), alertmanager.NotEqual("managed_upgrade_uid", mine.UID))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found {
			if s.InEffect() {
				alive = append(alive, s)
			}
		}
		return alive
	}
	longer := settings
	longer.Lease *= 4
	for _, with := range []struct {
		scope    silence.Scope
		settings silence.Settings
		want     int
	}{{named, settings, 2}, {named, longer, 2}, {wide, settings, 1}} { // created, extended, shortened, and one ended
		operator := &silence.Silencer{Alertmanager: c}
		for _, step := range []engine.UpgradeStep{
			operator.Window(mine, "ControlPlane", with.scope, with.settings).Open(),
			operator.Window(mine, "ControlPlane", with.scope, with.settings).KeepAlive(),
		} {
			call(step)
			if got := alive(); len(got) != with.want || got[0].EndsAt.After(clock.RealClock{}.Now().Add(with.settings.Lease)) {
				t.Fatalf("%+v are in effect", got)
			}
		}
	}
	if result := call((&silence.Silencer{Alertmanager: c}).CloseAll(mine, settings)); result != engine.Done("silences ended: 1") {
		t.Errorf("ended: %+v", result)
	}
	if got := alive(); len(got) > 0 {
		t.Errorf("silences left: %+v", got)
	}
}

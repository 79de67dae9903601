// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// table is an upgrader with one runbook.
type table struct{ book engine.Runbook }

func (t table) Runbook(attempt upgraders.Attempt) engine.Runbook { return t.book }

// A table of another project cannot leave out that the installed version must be known.
func TestAdmissionGate_of_a_custom_table_waits_for_the_installed_version(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	steps := 0
	book := engine.Plain("Shop", func(context.Context) (bool, error) { steps++; return true, nil })
	book.Admission = []engine.Gate{{Name: "NoFreeze", Check: func(context.Context, engine.Run) (engine.Result, error) {
		return engine.Done("changes are allowed"), nil
	}}}
	w.snapshot.Upgraders = map[string]upgraders.ClusterUpgrader{"OSD": table{book}}
	w.cluster.ChangeVersion(func(version *configv1.ClusterVersion) { version.Status.History = nil })
	w.runTo(10 * time.Minute)
	if steps > 0 {
		t.Errorf("%d steps were called although no version is installed", steps)
	}
}

// A gate of the admission is shown ahead of time, holds the first step, and names itself when the window closes.
func TestAdmissionGate_of_a_custom_table(t *testing.T) {
	t.Parallel()
	for name, opens := range map[string]bool{"opens in the window": true, "stays closed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			frozen, steps := true, 0
			book := engine.Plain("Shop", func(context.Context) (bool, error) { steps++; return true, nil })
			book.Admission = []engine.Gate{{Name: "NoFreeze", Check: func(context.Context, engine.Run) (engine.Result, error) {
				if frozen {
					return engine.Wait("ChangeFreeze", "changes are frozen"), nil
				}
				return engine.Done("thawed"), nil
			}}}
			w.snapshot.Upgraders = map[string]upgraders.ClusterUpgrader{"OSD": table{book}}
			w.runTo(-time.Minute)
			if got := w.precheck(); !strings.Contains(got, "NoFreeze: changes are frozen") {
				t.Errorf("the pre-check shows %q", got)
			}
			w.runTo(10 * time.Minute)
			if r := w.record(); r.Phase != history.PhasePending || r.Reason != "ChangeFreeze" || steps > 0 {
				t.Errorf("%d steps were called in phase %s, %s", steps, r.Phase, r.Reason)
			}
			frozen = !opens
			w.runTo(31 * time.Minute)
			want := history.PhaseUpgraded
			if !opens {
				want = history.PhaseFailed
			}
			if r := w.record(); r.Phase != want || !opens && !strings.HasSuffix(r.Message, "changes are frozen; the window closes at 2026-03-01T12:40:00Z") {
				t.Errorf("got phase %s, %s: %s", r.Phase, r.Reason, r.Message)
			}
		})
	}
}

// A list of functions has the gates of every upgrade.
func TestAdmission_of_a_list_of_functions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.1" }))
	steps := 0
	w.snapshot.Upgraders = map[string]upgraders.ClusterUpgrader{"OSD": table{engine.Plain("Shop", func(context.Context) (bool, error) { steps++; return true, nil })}}
	w.runTo(31 * time.Minute)
	if r := w.record(); r.Phase != history.PhaseFailed || r.Reason != "Downgrade" || steps > 0 {
		t.Errorf("%d steps were called in phase %s, %s", steps, r.Phase, r.Reason)
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
)

// The settings of the operator narrow the checks of the other kind only.
func TestJobHealthChecks(t *testing.T) {
	t.Parallel()
	deps := Deps{Config: config.Default()}
	deps.Config.Alerts.IgnoreAlerts, deps.Config.Alerts.IgnoreNamespaces = []string{"*"}, []string{"*"}
	for name, tc := range map[string]struct {
		checks maintenancev1beta1.HealthChecks
		want   checks.GateOptions
	}{
		"without any key": {want: checks.GateOptions{
			Checks: []string{"pools", "alerts", "operators"}, PausedPoolsOnly: true, IgnoreDelayedPools: true, Timeout: 30 * time.Minute,
		}},
		"with every key": {
			checks: maintenancev1beta1.HealthChecks{
				Timeout: "1h30m", CheckCriticalAlerts: new(true), CheckDegradedOperators: new(true),
				ExcludeAlerts:     []maintenancev1beta1.AlertExclusion{{Alertname: "KubePodCrashLooping"}},
				ExcludeNamespaces: []string{"openshift-console"}, ExcludeOperators: []string{"openshift-monitoring"},
				CustomQueries: []maintenancev1beta1.CustomQuery{{Query: "up != 1"}},
				Objects:       []maintenancev1beta1.ObjectCheck{{APIVersion: "apps/v1", Kind: "Deployment"}},
			},
			want: checks.GateOptions{
				Checks: []string{"pools", "alerts", "operators", "queries", "objects"}, RequireAlerts: true, PausedPoolsOnly: true, IgnoreDelayedPools: true, Timeout: 90 * time.Minute,
				ExcludeAlerts: []string{"KubePodCrashLooping"}, ExcludeNamespaces: []string{"openshift-console"},
				ExcludeOperators: []string{"openshift-monitoring"}, Queries: []string{"up != 1"},
				Objects: []checks.ObjectCheck{{APIVersion: "apps/v1", Kind: "Deployment"}},
			},
		},
		"with all switches off": {
			checks: maintenancev1beta1.HealthChecks{CheckCriticalAlerts: new(false), CheckDegradedOperators: new(false)},
			want:   checks.GateOptions{Checks: []string{"pools"}, PausedPoolsOnly: true, IgnoreDelayedPools: true, Timeout: 30 * time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, deps.jobHealthChecks(tc.checks).Options); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			tc.want.PendingAlerts = true
			if diff := cmp.Diff(tc.want, deps.jobPostHealthChecks(tc.checks).Options); diff != "" {
				t.Errorf("after the upgrade (-want +got):\n%s", diff)
			}
		})
	}
}

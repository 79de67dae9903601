// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// Each step that depends on the plan keeps it analyzed and has the gate: without the gate, a
// finding whose acceptance is an hour old would block as if it had not been accepted.
func TestTables_check_the_plan_where_they_depend_on_it(t *testing.T) {
	t.Parallel()
	deps := Deps{Config: config.Default()}
	for name, tc := range map[string]struct {
		book engine.Runbook
		want []string
	}{
		"OSD":        {OSD{deps}.Runbook(Attempt{}), []string{"PreHealthCheck", "CommenceUpgrade"}},
		"ARO":        {ARO{deps}.Runbook(Attempt{}), []string{"PreHealthCheck", "CommenceUpgrade"}},
		"UpgradeJob": {Job{deps}.Runbook(Attempt{Job: jobTo("4.20.6")}), []string{"PreHealthCheck", "UpgradeCommenced"}},
	} {
		var gated, analyzed []string
		for _, step := range tc.book.Steps {
			for _, gate := range step.Gates {
				if gate.Name == "PreChecksAccepted" {
					gated = append(gated, step.Name)
				}
			}
			for _, keepAlive := range step.KeepAlive {
				if keepAlive.Name == "Analysis" {
					analyzed = append(analyzed, step.Name)
				}
			}
		}
		if diff := cmp.Diff(tc.want, gated); diff != "" {
			t.Errorf("%s: steps with the gate (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.want, analyzed); diff != "" {
			t.Errorf("%s: steps that keep the plan analyzed (-want +got):\n%s", name, diff)
		}
	}
}

func jobTo(version string) *maintenancev1beta1.UpgradeJob {
	return &maintenancev1beta1.UpgradeJob{Spec: maintenancev1beta1.UpgradeJobSpec{
		StartAfter: "2026-11-22T12:00:00Z", StartBefore: "2026-11-22T20:00:00Z",
		DesiredVersion: maintenancev1beta1.DesiredVersion{Version: version},
	}}
}

// PreHealthCheck names the outdated analysis, not the accepted finding. The step of an UpgradeJob still ends at
// the timeout of its checks.
func TestPreHealthCheck_acceptance_is_outdated(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	version.Status.Desired.Version = "4.20.5"
	version.Status.History = []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.20.5"}}
	plan := &updatev1beta1.UpdatePlan{
		ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name("4.20.6"), Generation: 1},
		Spec:       updatev1beta1.UpdatePlanSpec{TargetRelease: "4.20.6"},
		Status:     updatev1beta1.UpdatePlanStatus{FromRelease: "4.20.5", LastAnalysisTime: &metav1.Time{Time: noon}},
	}
	updateplan.Settle(plan, nil, updateplan.Analysis{Now: noon, Current: "4.20.5"})
	deps := Deps{Client: simulation.NewFakeClient(t, version, plan), Config: config.Default()}
	deps.Config.PreChecks.Mode = config.PreChecksRequire
	cfg := &upgradev1alpha1.UpgradeConfig{Spec: upgradev1alpha1.UpgradeConfigSpec{Desired: upgradev1alpha1.Update{Version: "4.20.6"}}}
	forConfig := NewStepSet(deps, Attempt{Config: cfg}).PreHealthCheck()
	forJob := newJobSteps(deps, jobTo("4.20.6"), history.Record{Version: "4.20.6"}).PreHealthCheck()
	for name, tc := range map[string]struct {
		step    engine.Step
		age     time.Duration
		waiting time.Duration
		reason  string
		message string
	}{
		"UpgradeConfig, recent":                  {step: forConfig, age: 59 * time.Minute, reason: engine.ReasonDone},
		"UpgradeConfig, outdated":                {step: forConfig, age: time.Hour, waiting: 45 * time.Minute, reason: "AnalysisInProgress", message: "is older than one hour"},
		"UpgradeJob, recent":                     {step: forJob, age: 59 * time.Minute, reason: engine.ReasonDone},
		"UpgradeJob, outdated":                   {step: forJob, age: time.Hour, waiting: 29 * time.Minute, reason: "AnalysisInProgress", message: "is older than one hour"},
		"UpgradeJob, outdated until the timeout": {step: forJob, age: time.Hour, waiting: 30 * time.Minute, reason: "ClusterUnhealthy", message: "not healthy within 30m0s: the accepted risks are unknown: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := noon.Add(tc.age)
			var got engine.Result
			for _, gate := range tc.step.Gates {
				if gate.Name == "PreChecksAccepted" {
					var err error
					if got, err = gate.Check(t.Context(), engine.Run{Now: now, Since: now.Add(-tc.waiting)}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got.Reason() != tc.reason || !strings.Contains(got.Message(), tc.message) {
				t.Errorf("%s: %s", got.Reason(), got.Message())
			}
		})
	}
}

// A Prometheus that restarts with the nodes starts the waiting time of each alert anew.
func TestPendingAlertsCountAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	s := NewStepSet(Deps{Config: config.Default()}, Attempt{})
	if before, after := s.healthChecks().Options.PendingAlerts, s.postHealthChecks().Options.PendingAlerts; before || !after {
		t.Errorf("pending alerts count before the upgrade: %t, after it: %t", before, after)
	}
}

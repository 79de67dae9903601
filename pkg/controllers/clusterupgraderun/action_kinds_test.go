// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
)

// migration is an action before the upgrade, of a kind without a rule of ours: a Deployment that is complete by
// its own rule.
func migration(u *fleetv1beta1.ManagedClustersUpgrade) {
	u.Spec.PreUpgradeAction = &fleetv1beta1.UpgradeAction{ManifestWork: workv1.ManifestWorkSpec{
		Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{
			raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"migration","namespace":"default"}}`),
			raw(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"migration","namespace":"default"}}`),
		}},
		ManifestConfigs: []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "default", Name: "migration"},
			ConditionRules: []workv1.ConditionRule{{
				Condition: workv1.ManifestComplete, Type: workv1.CelConditionExpressionsType, CelExpressions: []string{"object.status.readyReplicas == 1"},
			}},
		}},
	}}
}

// The conditions of each manifest decide about an action: its rule for Complete holds the upgrade, and one that
// is Degraded fails it, whatever the others are.
func TestRun_action_by_the_conditions_of_its_manifests(t *testing.T) {
	t.Parallel()
	const met, unmet = metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		then    map[string]map[string]metav1.ConditionStatus // what the agent reports after ten minutes
		state   fleetv1alpha1.ClusterUpgradeState
		reason  string
		message string
	}{
		"its rule is met": {
			then:  map[string]map[string]metav1.ConditionStatus{"Deployment migration": {workv1.ManifestComplete: met}},
			state: fleetv1alpha1.StateComplete, reason: "Upgraded",
		},
		"its rule is never met": {
			then:  map[string]map[string]metav1.ConditionStatus{"Deployment migration": {workv1.ManifestComplete: unmet}, "ConfigMap migration": {workv1.ManifestComplete: met}},
			state: fleetv1alpha1.StateFailed, reason: "PreActionDegraded", message: "Deployment migration does not meet its rule for Complete",
		},
		"another manifest is degraded": {
			then:  map[string]map[string]metav1.ConditionStatus{"Deployment migration": {workv1.ManifestComplete: met}, "ConfigMap migration": {workv1.ManifestDegraded: met}},
			state: fleetv1alpha1.StateFailed, reason: "PreActionDegraded", message: "ConfigMap migration is degraded: by its rule",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
				t.Helper()
				w := newWorld(t, migration, by)
				w.admit()
				w.RunFor(10 * time.Minute)
				w.expectUntouched()
				w.change(0, func() { w.spoke.Conditions = tc.then })
				w.settle(2 * time.Hour)
				w.expect(tc.state, tc.reason)
				if m := w.run().Status.Message; !strings.Contains(m, tc.message) {
					t.Errorf("message %q, want %q in it", m, tc.message)
				}
			})
		})
	}
}

// What the deleteOption of the user keeps stays on the cluster, and nothing else does.
func TestRun_action_with_a_deleteOption(t *testing.T) {
	t.Parallel()
	rule := workv1.OrphaningRule{Resource: "configmaps", Namespace: "default", Name: "backup"}
	for name, tc := range map[string]struct {
		option         *workv1.DeleteOption
		configMap, job bool // whether they stay
	}{
		"none":       {},
		"Foreground": {option: &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}},
		"Orphan":     {option: &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}, configMap: true, job: true},
		"SelectivelyOrphan": {option: &workv1.DeleteOption{
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan, SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{rule}},
		}, configMap: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
				t.Helper()
				w := newWorld(t, by, func(u *fleetv1beta1.ManagedClustersUpgrade) {
					u.Spec.PreUpgradeAction = action("backup")
					u.Spec.PreUpgradeAction.ManifestWork.DeleteOption = tc.option.DeepCopy()
				})
				w.jobs = map[string]string{"backup": "Complete"}
				w.admit()
				w.settle(5 * time.Hour)
				w.expect(fleetv1alpha1.StateComplete, "Upgraded")
				w.finishUpgrade()
				w.RunFor(time.Minute)
				w.expectNoWorks()
				if kept := w.spoke.Object("", "ConfigMap", "default", "backup") != nil; kept != tc.configMap {
					t.Errorf("the ConfigMap is left: %t, want %t", kept, tc.configMap)
				}
				if left := len(w.spoke.Objects("Job")) > 0; left != tc.job {
					t.Errorf("the Job is left: %t, want %t", left, tc.job)
				}
			})
		})
	}
}

// A Job that another upgrade has left on the cluster, or an earlier attempt, says nothing about this attempt. The
// agent adopts an object that exists, and keeps it for as long as another work contains it.
func TestRun_action_counts_only_its_own_Job(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		w := newWorld(t, by, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.PreUpgradeAction = action("backup") })
		february := &workv1.ManifestWork{Spec: *w.upgrade().Spec.PreUpgradeAction.ManifestWork.DeepCopy()}
		february.Name = "mcu-february-pre"
		w.spoke.Apply(february, w.Now())
		for _, job := range w.spoke.Objects("Job") {
			w.spoke.SetCondition(job, "Complete", "True", "CompletionsReached", "", w.Now())
		}
		w.admit()
		w.settle(2 * time.Hour)
		w.expect(fleetv1alpha1.StateFailed, "PreActionDegraded")
		w.expectUntouched()
		w.spoke.Delete(february)
		w.takes = 0
		w.jobs = map[string]string{"backup": "Complete"}
		w.retry()
		w.settle(5 * time.Hour)
		w.expect(fleetv1alpha1.StateFailed, "ClusterUpgradeTimedOut")
		w.retry()
		w.settle(5 * time.Hour)
		w.expect(fleetv1alpha1.StateFailed, "PreActionDegraded")
	})
}

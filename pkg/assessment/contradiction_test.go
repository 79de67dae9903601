// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// TestContradiction checks that contradictory data never looks like an idle or progressing cluster.
func TestContradiction(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		completed bool
		status    configv1.ConditionStatus
		age       time.Duration
		want      updatev1beta1.AssessmentState
	}{
		"completed, progressing":                     {true, configv1.ConditionTrue, time.Hour, unknown},
		"completed, progressing for 30s":             {true, configv1.ConditionTrue, 30 * time.Second, updatev1beta1.StateIdle},
		"completed, not progressing":                 {true, configv1.ConditionFalse, time.Hour, updatev1beta1.StateIdle},
		"partial, not progressing":                   {false, configv1.ConditionFalse, time.Hour, unknown},
		"partial, not progressing for half a minute": {false, configv1.ConditionFalse, 30 * time.Second, progressing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture("4.20.6")
			f.history[0].StartedTime = at(before(90 * time.Minute))
			if tc.completed {
				f.history[0].State, f.history[0].CompletionTime = configv1.CompletedUpdate, ago(80*time.Minute)
			} else {
				f.pendingOperators("machine-config", "dns")
				f.operators[0].Progressing.Since = before(2 * time.Minute)
			}
			f.conditions[1] = configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorProgressing, Status: tc.status, Message: "Working towards 4.20.7", LastTransitionTime: at(before(tc.age))}
			f.addNodes(master, 3, 3)
			f.addNodes(worker, 3, 3)
			got := f.computed(updatev1beta1.UpdateStatusStatus{}).Assessment
			if got.State != tc.want {
				t.Fatalf("%s, not %s: %s", got.State, tc.want, got.Summary)
			}
			if tc.want == unknown && (!strings.Contains(got.Summary, "Progressing is "+string(tc.status)) || !strings.Contains(got.Summary, "4.20.6")) {
				t.Errorf("the summary lacks the facts: %q", got.Summary)
			}
		})
	}
}

// TestRefused_request_during_an_update checks that a refused request does not stop the update and is shown
// with its remedy.
func TestRefused_request_during_an_update(t *testing.T) {
	t.Parallel()
	f := updatingOperators()
	f.requested = &configv1.Update{Version: "4.20.5"}
	f.conditions = append(f.conditions, configv1.ClusterOperatorStatusCondition{
		Type: "ReleaseAccepted", Status: configv1.ConditionFalse, Reason: "UnsupportedRollback", LastTransitionTime: at(before(5 * time.Minute)),
		Message: `Preconditions failed for payload loaded version="4.20.5" image="image-4.20.5": a rollback is not supported`,
	})
	got := f.computed(updatev1beta1.UpdateStatusStatus{}).Assessment
	if got.State != progressing {
		t.Errorf("%s: %s", got.State, got.Summary)
	}
	found := slices.ContainsFunc(got.Watch, func(w updatev1beta1.WatchedFact) bool {
		return strings.Contains(w.Message, "refuses") && strings.Contains(w.Detail, "4.20.5") && strings.Contains(w.Detail, "oc adm upgrade --clear")
	})
	if !found {
		t.Errorf("watch: %+v", got.Watch)
	}
}

// TestUpgrade_that_waits checks an upgrade that has started but is not updating the cluster yet.
func TestUpgrade_that_waits(t *testing.T) {
	t.Parallel()
	for reason, person := range map[string]bool{"ClusterUnhealthy": true, "AddingNodes": false} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			f := idleCluster()
			f.facts.Upgrades = []checks.Upgrade{{
				Resource: checks.Resource{Kind: "UpgradeJob", Namespace: "ops", Name: "weekly"}, APIVersion: "managedupgrade.appuio.io/v1beta1",
				To: "4.20.8", Phase: history.PhaseUpgrading, StartBefore: now.Add(2 * time.Hour),
				Record: &history.Record{Phase: history.PhaseUpgrading, StartTime: ago(time.Hour)},
				Step:   &history.StepCondition{Type: "ClusterHealthy", Status: metav1.ConditionFalse, Reason: reason, Message: "PodDisruptionBudget shop/api allows 0 disruptions"},
			}}
			got := f.computed(updatev1beta1.UpdateStatusStatus{}).Assessment
			if got.State != waiting || got.ActionRequired != person || got.FromRelease != "4.20.6" || got.Release != "4.20.8" {
				t.Errorf("%s, action required: %t, %s to %s", got.State, got.ActionRequired, got.FromRelease, got.Release)
			}
			for _, want := range []string{"UpgradeJob ops/weekly", "PodDisruptionBudget shop/api", "2026-11-22 14:00 UTC"} {
				if !strings.Contains(got.Summary, want) {
					t.Errorf("the summary lacks %q: %s", want, got.Summary)
				}
			}
		})
	}
}

// TestUnknown_says_what_is_known checks that an unknown verdict states its reason.
func TestUnknown_says_what_is_known(t *testing.T) {
	t.Parallel()
	f := nodeUnchanged("NodeRebooting", time.Minute)
	f.facts.MachinePools = []checks.MachinePool{{
		Resource: checks.Resource{Group: "cluster.x-k8s.io", Kind: "MachineDeployment", Namespace: "ops", Name: "more"}, APIVersion: "cluster.x-k8s.io/v1beta1",
		Version: "4.20.5", VersionManagement: map[string]any{"pausedUntil": "soon"},
	}}
	f.facts.VersionManagement = map[string]any{"pausedUntil": "soon"}
	got := f.computed(updatev1beta1.UpdateStatusStatus{}).Assessment
	if got.State != unknown || !strings.Contains(got.Summary, `spec.versionManagement.pausedUntil is "soon"`) {
		t.Errorf("%s: %s", got.State, got.Summary)
	}
	if got.Remedy == nil || got.Remedy.Text != "Correct spec.versionManagement.pausedUntil of ClusterVersion version." {
		t.Errorf("remedy: %+v", got.Remedy)
	}
	if len(got.Sections) < 2 || got.Sections[1].Updated != 2 {
		t.Errorf("sections: %+v", got.Sections)
	}
}

// TestRequired_pool_explains_machine_config checks that the pool that machine-config waits for is shown with
// its remedy.
func TestRequired_pool_explains_machine_config(t *testing.T) {
	t.Parallel()
	unpause := `oc patch machineconfigpool %s --type=merge -p '{"spec":{"paused":false}}'`
	for _, pool := range []string{master, "arbiter"} {
		for name, others := range map[string][]string{"only machine-config is left": nil, "another operator is left": {"dns"}} {
			t.Run(pool+", "+name, func(t *testing.T) {
				t.Parallel()
				f := newFixture("4.20.6")
				f.history[0].StartedTime = at(before(3 * time.Hour))
				f.pools = append(f.pools, "arbiter")
				f.required = []string{master, "arbiter"}
				f.pendingOperators(append([]string{"machine-config"}, others...)...)
				f.progressing("machine-config", before(2*time.Hour))
				f.addNodes(master, 3, 0)
				f.addNodes("arbiter", 1, 0)
				f.addNodes(worker, 3, 0)
				f.paused[pool] = true
				got := f.computed(updatev1beta1.UpdateStatusStatus{}).Assessment
				want := strings.Replace(unpause, "%s", pool, 1)
				if !got.ActionRequired || got.Remedy == nil || !slices.Contains(got.Remedy.Commands, want) {
					t.Errorf("%s: %s\n%+v\n%q", got.State, got.Summary, got.Remedy, chains(*got))
				}
			})
		}
	}
}

// TestCauses_keep_their_reason checks that a cause of several nodes shows what they have in common.
func TestCauses_keep_their_reason(t *testing.T) {
	t.Parallel()
	f := poolUnchanged(time.Hour)
	for _, name := range []string{"worker-3", "worker-4", "worker-5"} {
		node := f.node(name)
		node.Annotations["machineconfiguration.openshift.io/state"] = "Degraded"
		node.Annotations["machineconfiguration.openshift.io/reason"] = "failed to drain node: " + name + " after 1 hour"
	}
	got := f.computed(updatev1beta1.UpdateStatusStatus{Assessment: f.in.Previous}).Assessment
	want := "nodes worker-3, worker-4, worker-5 cannot be updated: failed to drain node"
	if all := chains(*got); got.State != stuck || len(all) == 0 || all[0][0] != want {
		t.Errorf("%s: %q", got.State, all)
	}
}

// TestOperator_with_several_reasons checks that there is a single chain that starts with the root cause.
func TestOperator_with_several_reasons(t *testing.T) {
	t.Parallel()
	f := operatorUnchanged("etcd", 2*time.Hour)
	o := f.operator("etcd")
	o.Degraded = clusterstate.Condition{Status: "True", Reason: "EtcdMembers", Message: "a member is down", Since: before(2 * time.Hour)}
	o.Available = clusterstate.Condition{Status: "False", Reason: "NoQuorum", Message: "no quorum", Since: before(time.Hour)}
	all := chains(*f.computed(updatev1beta1.UpdateStatusStatus{}).Assessment)
	if len(all) != 1 || len(all[0]) != 3 || !strings.Contains(all[0][0], "EtcdMembers") {
		t.Errorf("%q", all)
	}
}

// TestEffect_on_the_ClusterVersion checks that the chain describes only what the cluster version operator
// reports.
func TestEffect_on_the_ClusterVersion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failing configv1.ConditionStatus
		want    string
	}{
		"failing":                       {configv1.ConditionTrue, "ClusterVersion is failing"},
		"unknown whether it is failing": {configv1.ConditionUnknown, "it is unknown whether ClusterVersion is failing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := operatorUnchanged("etcd", 2*time.Hour)
			f.operator("etcd").Degraded = clusterstate.Condition{Status: "True", Reason: "EtcdMembers", Message: "a member is down", Since: before(2 * time.Hour)}
			f.conditions[0] = configv1.ClusterOperatorStatusCondition{Type: "Failing", Status: tc.failing, Reason: "SlowClusterOperator", Message: "waiting on etcd", LastTransitionTime: at(before(time.Hour))}
			all := chains(*f.computed(updatev1beta1.UpdateStatusStatus{}).Assessment)
			if len(all) != 1 || all[0][len(all[0])-1] != tc.want {
				t.Errorf("%q", all)
			}
		})
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// updatingOperators returns a cluster whose update has been running for an hour. The first operators are
// updated, the last of them two minutes ago, and the others are pending.
func updatingOperators() *fixture {
	f := newFixture("4.20.6")
	f.pendingOperators("machine-config", "dns", "insights")
	f.operators[0].Progressing = clusterstate.Condition{Status: "False", Since: before(2 * time.Minute)}
	f.addNodes(master, 3, 0)
	f.addNodes(worker, 6, 0)
	return f
}

func (f *fixture) operator(name string) *clusterstate.ClusterOperator {
	at := slices.IndexFunc(f.operators, func(o clusterstate.ClusterOperator) bool { return o.Name == name })
	return &f.operators[at]
}

func (f *fixture) change(apply func(*fixture)) *fixture {
	apply(f)
	return f
}

// computed returns the status as the controller computes it from the cluster.
func (f *fixture) computed(previous updatev1beta1.UpdateStatusStatus) updatev1beta1.UpdateStatusStatus {
	_, in := f.build()
	return updatestatus.Compute(updatestatus.Input{Facts: in.Facts, Previous: previous})
}

// watchedMessages returns the levels and messages of the watched facts.
func watchedMessages(a updatev1beta1.Assessment) (messages []string) {
	for _, fact := range a.Watch {
		messages = append(messages, string(fact.Level)+": "+fact.Message)
	}
	return messages
}

// TestStuck_is_lack_of_change judges clusters that look bad but make progress, and clusters that look fine
// but do not.
func TestStuck_is_lack_of_change(t *testing.T) {
	t.Parallel()
	degradedFor := func(age time.Duration) clusterstate.Condition {
		return clusterstate.Condition{Status: "True", Reason: "PeriodicGather", Message: "gathering fails", Since: before(age)}
	}
	failing := func(age time.Duration) func(*fixture) {
		return func(f *fixture) {
			f.conditions[0] = configv1.ClusterOperatorStatusCondition{
				Type: "Failing", Status: configv1.ConditionTrue, Reason: "UpdatePayloadFailed", Message: "could not update deployment a/b: forbidden",
				LastTransitionTime: at(before(age)),
			}
		}
	}
	for name, tc := range map[string]struct {
		cluster *fixture
		want    updatev1beta1.AssessmentState
		watch   string
	}{
		"an operator has been degraded since before the update": {
			updatingOperators().change(func(f *fixture) { f.operator("insights").Degraded = degradedFor(20 * 24 * time.Hour) }),
			progressing, "warning: operator insights has been degraded",
		},
		"an updated operator has been degraded for 50m of the update": {
			updatingOperators().change(func(f *fixture) { f.operators[1].Degraded = degradedFor(50 * time.Minute) }),
			progressing, "error: operator operator-01 is degraded",
		},
		"an operator has been progressing since before the update": {
			updatingOperators().change(func(f *fixture) { f.progressing("dns", before(30*time.Hour)) }), progressing, "",
		},
		"an operator that is named has not changed since the start, others have": {
			updatingOperators().change(func(f *fixture) {
				f.progressing("dns", before(30*time.Hour))
				f.conditions[1].Message = "Working towards 4.20.6: 30 of 33 done, waiting on dns"
			}), progressing, "",
		},
		"nothing has changed for an hour": {
			updatingOperators().change(func(f *fixture) { f.operators[0].Progressing.Since = time.Time{} }), stuck, "",
		},
		"the installation has not changed for 50m": {
			updatingOperators().change(func(f *fixture) {
				f.history = f.history[:1]
				f.history[0].StartedTime = at(before(50 * time.Minute))
				f.operators[0].Progressing.Since = time.Time{}
				for i := range f.operators {
					if f.operators[i].Version == "old" {
						f.operators[i] = clusterstate.ClusterOperator{Name: f.operators[i].Name, InRelease: true, Created: before(50 * time.Minute)}
					}
				}
			}), progressing, "",
		},
		"the payload cannot be applied for 25m": {
			updatingOperators().change(failing(25 * time.Minute)).change(func(f *fixture) { f.operators[0].Progressing.Since = before(26 * time.Minute) }),
			stuck, "",
		},
		"the cluster version operator has been failing for 5h, and updates operators": {
			updatingOperators().change(failing(5 * time.Hour)), progressing, "error: ClusterVersion has been failing",
		},
		"the cluster version operator has been failing for 5m": {
			updatingOperators().change(failing(5 * time.Minute)).change(func(f *fixture) { f.operators[0].Progressing.Since = before(20 * time.Minute) }),
			progressing, "warning: ClusterVersion has been failing",
		},
		"a node has been degraded for seconds": {
			nodeUnchanged("NodeRebooting", time.Minute).change(func(f *fixture) {
				f.node("worker-3").Annotations["machineconfiguration.openshift.io/state"] = "Degraded"
			}), progressing, "warning: node worker-3 cannot be updated",
		},
		"a node is not ready for an hour": {
			nodeUnchanged("NodeRebooting", time.Minute).change(func(f *fixture) {
				f.node("worker-3").Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: at(before(time.Hour))}
			}), progressing, "warning: node worker-3 is not ready",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := *tc.cluster.computed(updatev1beta1.UpdateStatusStatus{}).Assessment
			if got.State != tc.want {
				t.Errorf("%s, not %s: %s, last change %s", got.State, tc.want, got.Summary, got.LastChangeTime)
			}
			if messages := watchedMessages(got); tc.watch != "" && !slices.Contains(messages, tc.watch) {
				t.Errorf("watch lacks %q: %q", tc.watch, messages)
			}
		})
	}
}

// TestOperators_count_if_they_report_a_release checks that operators without the annotation are counted.
func TestOperators_count_if_they_report_a_release(t *testing.T) {
	t.Parallel()
	f := updatingOperators()
	for i := range f.operators {
		f.operators[i].InRelease = i < 7
		if f.operators[i].Version == "old" {
			f.operators[i].Version = "4.20.5"
		}
	}
	f.operators = append(f.operators, clusterstate.ClusterOperator{Name: "of-another-vendor", Version: "1.0.0"})
	if got := f.computed(updatev1beta1.UpdateStatusStatus{}).ControlPlane.Progress; got.Total != 33 || got.Updated != 30 {
		t.Errorf("progress: %+v", got)
	}
}

// TestMessages_are_changes follows an operator that changes only its message.
func TestMessages_are_changes(t *testing.T) {
	t.Parallel()
	f := updatingOperators()
	f.operators[0].Progressing.Since = time.Time{}
	f.history[0].StartedTime = at(before(25 * time.Minute))
	f.progressing("dns", before(25*time.Minute))
	f.operator("dns").Progressing.Message = "0 of 3 nodes are updated"
	status := f.computed(updatev1beta1.UpdateStatusStatus{})
	f.now = now.Add(10 * time.Minute)
	f.operator("dns").Progressing.Message = "2 of 3 nodes are updated"
	status = f.computed(status)
	if a := status.Assessment; a.State != progressing || !a.LastChangeTime.Time.Equal(f.now) {
		t.Errorf("%s, last change %s", a.State, a.LastChangeTime)
	}
	f.now = f.now.Add(31 * time.Minute)
	if a := f.computed(status).Assessment; a.State != stuck {
		t.Errorf("%s 31m later", a.State)
	}
}

// TestNode_uncordoned_in_its_drain checks that the remedy is shown immediately and that the node is stuck
// after an hour.
func TestNode_uncordoned_in_its_drain(t *testing.T) {
	t.Parallel()
	f := nodeUnchanged("NodeDraining", 5*time.Minute)
	node := f.node("worker-2")
	node.Spec.Unschedulable, node.Spec.Taints = false, nil
	status := f.computed(updatev1beta1.UpdateStatusStatus{})
	a := status.Assessment
	if want := "warning: node worker-2 can be scheduled although its drain is requested"; !slices.Contains(watchedMessages(*a), want) {
		t.Errorf("%s, watch lacks %q: %q", a.State, want, watchedMessages(*a))
	}
	if a.LastChangeTime != nil && a.LastChangeTime.Time.Equal(now) {
		t.Error("an unknown time counts as now")
	}
	for range 61 {
		f.now = f.now.Add(time.Minute)
		status = f.computed(status)
	}
	if a = status.Assessment; a.State != stuck || !strings.Contains(strings.Join(a.Remedy.Commands, ""), "oc adm cordon worker-2") {
		t.Errorf("%s after an hour: %+v", a.State, a.Remedy)
	}
}

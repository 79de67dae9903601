// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// notUpgradeable makes the cluster version operator report Upgradeable=False in addition to the
// available updates.
func (w *world) notUpgradeable(reason string) {
	w.changeVersion(func(version *configv1.ClusterVersion) {
		version.Status.Conditions = append(version.Status.Conditions, configv1.ClusterOperatorStatusCondition{
			Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: reason, Message: "not yet",
		})
	})
}

func createHook(edits ...func(*maintenancev1beta1.UpgradeJobHook)) *maintenancev1beta1.UpgradeJobHook {
	hook := &maintenancev1beta1.UpgradeJobHook{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "acknowledge"},
		Spec: maintenancev1beta1.UpgradeJobHookSpec{
			Events:   []maintenancev1beta1.HookEvent{maintenancev1beta1.EventCreate},
			Selector: &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"upgrade-config": "weekly"}},
			Template: maintenancev1beta1.HookJobTemplate{Spec: runtime.RawExtension{Raw: []byte(`{"template":{"spec":{"containers":[{"name":"a","image":"b"}]}}}`)}},
		},
	}
	for _, edit := range edits {
		edit(hook)
	}
	return hook
}

// A minor version is pinned if a hook of event Create can give its acknowledgments. Any other minor
// version waits, and the newest patch is pinned.
func TestPinWhileNotUpgradeable(t *testing.T) {
	t.Parallel()
	other := func(hook *maintenancev1beta1.UpgradeJobHook) {
		hook.Spec.Selector.MatchLabels["upgrade-config"] = "other"
	}
	late := func(hook *maintenancev1beta1.UpgradeJobHook) {
		hook.Spec.Events = []maintenancev1beta1.HookEvent{maintenancev1beta1.EventStart}
	}
	for name, tc := range map[string]struct {
		reason string
		hook   *maintenancev1beta1.UpgradeJobHook
		want   string
	}{
		"acknowledgment, with a hook":            {"AdminAckRequired", createHook(), "4.21.1"},
		"acknowledgment, without a hook":         {"AdminAckRequired", nil, "4.20.6"},
		"acknowledgment, hook of another config": {"AdminAckRequired", createHook(other), "4.20.6"},
		"acknowledgment, hook of another event":  {"AdminAckRequired", createHook(late), "4.20.6"},
		"something else, with a hook":            {"MultipleReasons", createHook(), "4.20.6"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, config(pinned("4h")))
			w.phase = ""
			if tc.hook != nil {
				w.Create(tc.hook)
			}
			w.offer("4.20.6", "4.21.1")
			w.notUpgradeable(tc.reason)
			w.RunTo(tuesday.Add(-time.Hour))
			if diff := cmp.Diff([]string{"03-02 21:00 " + tc.want}, w.starts); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
			waits := strings.Contains(w.get().Status.LastSlot.Message, "4.21.1 (it is another minor version, and Upgradeable=False: "+tc.reason+")")
			if waits != (tc.want == "4.20.6") {
				t.Errorf("the message of the slot is %q", w.get().Status.LastSlot.Message)
			}
		})
	}
}

// A minor version that lacks acknowledgments from hooks of event Create expires once, not at every
// start.
func TestPinAfterMissingAcknowledgment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config(pinned("4h")))
	w.phase, w.reason = maintenancev1beta1.PhaseSkipped, "Expired"
	w.Create(createHook())
	w.offer("4.20.6", "4.21.1")
	w.notUpgradeable("AdminAckRequired")
	w.RunTo(tuesday.Add(7*24*time.Hour + time.Minute))
	w.phase = ""
	w.RunTo(tuesday.Add(14 * 24 * time.Hour))
	w.changeVersion(func(version *configv1.ClusterVersion) {
		version.Status.Conditions = version.Status.Conditions[:len(version.Status.Conditions)-1]
	})
	w.RunTo(tuesday.Add(21 * 24 * time.Hour))
	if diff := cmp.Diff([]string{"03-02 21:00 4.21.1", "03-09 21:00 4.20.6", "03-16 21:00 4.20.6", "03-23 21:00 4.21.1"}, w.starts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A start that was decided on without an update is not announced.
func TestDecidedStartIsNotAnnounced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config(pinned("4h")))
	w.offer()
	w.RunTo(tuesday.Add(-time.Hour))
	if got := w.lastSlot(); got != "03-02 21:00 NoUpdate" {
		t.Fatalf("the last slot is %q", got)
	}
	if next := w.get().Status.NextPossibleSchedules[0].Time; !next.Time.Equal(tuesday.Add(week)) {
		t.Errorf("the next start is %s, want the one a week later", next)
	}
	if got := w.condition("Scheduled"); !strings.Contains(got, "the next upgrade starts at 2027-03-09T21:00:00Z") {
		t.Errorf("Scheduled is %q", got)
	}
	w.offer("4.20.6")
	w.RunTo(tuesday.Add(8 * 24 * time.Hour))
	if diff := cmp.Diff([]string{"03-09 21:00 4.20.6"}, w.starts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// With latePin: Allow, an update that becomes available between pin and start is pinned.
func TestLatePin(t *testing.T) {
	t.Parallel()
	allow := func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.LatePin = maintenancev1beta1.LatePinAllow }
	t.Run("available before the start", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(pinned("4h"), allow))
		w.phase = ""
		w.offer()
		w.RunTo(tuesday.Add(-time.Hour))
		if len(w.starts) > 0 || !strings.Contains(w.condition("Scheduled"), "will be pinned") {
			t.Fatalf("Scheduled is %q; %s", w.condition("Scheduled"), w.describe())
		}
		w.offer("4.20.6")
		w.RunFor(time.Minute)
		if diff := cmp.Diff([]string{"03-02 21:00 4.20.6"}, w.starts); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("not available", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, config(pinned("4h"), allow))
		w.offer()
		w.RunTo(tuesday.Add(time.Minute))
		w.offer("4.20.6")
		w.RunFor(time.Hour)
		if got := w.lastSlot(); got != "03-02 21:00 NoUpdate" || len(w.starts) > 0 {
			t.Errorf("the last slot is %q; %s", got, w.describe())
		}
	})
}

// A start whose UpgradeJob was deleted, or has failed already, is not announced. It gets no other
// UpgradeJob, even if the schedule changes.
func TestJobThatEndsBeforeItsStart(t *testing.T) {
	t.Parallel()
	remove := func(w *world) { w.Delete(w.job()) }
	edited := func(edit func(*maintenancev1beta1.UpgradeConfig)) func(*world) {
		return func(w *world) {
			remove(w)
			w.RunFor(time.Second)
			w.edit(edit)
		}
	}
	for name, change := range map[string]func(*world){
		"failed":                    func(w *world) { w.endJob(w.job().Name, history.PhaseFailed) },
		"deleted":                   remove,
		"deleted, a start is added": edited(func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Cron = "0 22 * * 2,4" }),
		"deleted, with another pin": edited(pinned("30m")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, config(pinned("4h")))
			w.phase = ""
			w.RunTo(tuesday.Add(-2 * time.Hour))
			change(w)
			w.RunTo(tuesday.Add(-20 * time.Minute))
			if next := w.get().Status.NextPossibleSchedules[0].Time; !next.After(tuesday) || strings.Contains(w.condition("Scheduled"), "2027-03-02") {
				t.Errorf("the next start is %s: %s", next, w.condition("Scheduled"))
			}
			w.RunTo(tuesday.Add(time.Hour))
			if len(w.starts) != 1 || w.lastSlot() != "03-02 21:00 JobCreated" {
				t.Errorf("the last slot is %q; %s", w.lastSlot(), w.describe())
			}
		})
	}
}

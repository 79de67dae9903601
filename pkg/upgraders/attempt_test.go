// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// recorder records notifications.
type recorder []string

func (t *recorder) Publish(_ context.Context, _ corev1.ObjectReference, n engine.Notification) error {
	*t = append(*t, n.Type+" "+n.Reason+": "+n.Message)
	return nil
}

func TestNotification_of_the_end_has_the_reason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failure *history.StepCondition
		want    string
	}{
		"failure": {
			failure: &history.StepCondition{Type: "PreHealthCheck", Reason: "WindowMissed", Message: "95% of the disk is full"},
			want:    "Warning UpgradeFailed: the upgrade to 4.4.6 has failed: PreHealthCheck: 95% of the disk is full",
		},
		"cancellation": {
			failure: &history.StepCondition{Type: "VersionPinned", Reason: engine.ReasonCancelled, Message: "it was deleted"},
			want:    "Normal UpgradeCancelled: the upgrade to 4.4.6 was cancelled: VersionPinned: it was deleted",
		},
		"reason unknown": {want: "Warning UpgradeFailed: the upgrade to 4.4.6 has failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got recorder
			cfg := &upgradev1alpha1.UpgradeConfig{}
			cfg.Spec.Desired.Version = "4.4.6"
			book := OSD{Deps{Notifier: &got}}.Runbook(AttemptAt(cfg))
			last := book.Cleanup[len(book.Cleanup)-1]
			result, err := last.Do(t.Context(), engine.Run{Failure: tc.failure})
			if err != nil || !result.Passed() {
				t.Fatalf("%s: got %v, %v", last.Name, result, err)
			}
			if diff := cmp.Diff(recorder{tc.want}, got); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

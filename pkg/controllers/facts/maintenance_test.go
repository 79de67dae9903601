// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

func TestStripMaintenance(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100<<10)
	job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "upgrades", Name: "job", UID: "uid", ResourceVersion: "7", Generation: 2,
		Labels:      map[string]string{"app": "upgrade", maintenancev1beta1.ConfigLabel: "uid", maintenancev1beta1.SlotLabel: "slot", "a": long},
		Annotations: map[string]string{"other": long, maintenancev1beta1.RetryAnnotation: long, maintenancev1beta1.AcknowledgedAnnotation: "monday"},
		Finalizers:  []string{"example.com/other", maintenancev1beta1.Finalizer},
		OwnerReferences: []metav1.OwnerReference{
			{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "controller", Controller: new(true)},
		},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}}
	token := maintenance.RequestToken(job, maintenancev1beta1.RetryAnnotation)
	for _, pass := range []string{"first", "second"} { // a transform may be applied again
		if _, err := StripMaintenance(job); err != nil {
			t.Fatal(err)
		}
		want := metav1.ObjectMeta{
			Namespace: "upgrades", Name: "job", UID: "uid", ResourceVersion: "7", Generation: 2,
			Labels:          map[string]string{maintenancev1beta1.ConfigLabel: "uid", maintenancev1beta1.SlotLabel: "slot", maintenance.LabelsTooLong: ""},
			Annotations:     map[string]string{maintenancev1beta1.RetryAnnotation: token, maintenancev1beta1.AcknowledgedAnnotation: "monday"},
			Finalizers:      []string{maintenancev1beta1.Finalizer},
			OwnerReferences: []metav1.OwnerReference{{Name: "controller", Controller: new(true)}, {Name: "a"}, {Name: "b"}, {Name: "c"}},
		}
		if diff := cmp.Diff(want, job.ObjectMeta); diff != "" {
			t.Errorf("metadata after the %s pass (-want +got):\n%s", pass, diff)
		}
	}
	if got := maintenance.RequestToken(job, maintenancev1beta1.RetryAnnotation); got != token || len(token) != 64 {
		t.Errorf("the token is %q after caching, want %q", got, token)
	}
}

// If the labels of an UpgradeJob are too long to be cached, every window that selects any
// UpgradeJob suspends it. Windows that select its UpgradeConfig work as usual.
func TestStripMaintenance_of_long_labels_fails_closed(t *testing.T) {
	t.Parallel()
	job := &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Name: "job", Labels: map[string]string{"a": strings.Repeat("x", 100<<10), "production": "", maintenancev1beta1.SlotLabel: "slot"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: maintenancev1beta1.GroupVersion.String(), Kind: "UpgradeConfig", Name: "weekly", UID: "config", Controller: new(true)}},
		},
		Spec: maintenancev1beta1.UpgradeJobSpec{StartAfter: "2027-03-02T21:00:00Z"},
	}
	if _, err := StripMaintenance(job); err != nil {
		t.Fatal(err)
	}
	start := time.Date(2027, 3, 2, 21, 0, 0, 0, time.UTC)
	window := maintenancev1beta1.UpgradeSuspensionWindow{ObjectMeta: metav1.ObjectMeta{Name: "holidays"}, Spec: maintenancev1beta1.UpgradeSuspensionWindowSpec{
		Start: "2027-03-01T00:00:00Z", End: "2027-03-05T00:00:00Z", JobSelector: &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"production": ""}},
	}}
	owner := &maintenancev1beta1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Name: "weekly", UID: "config"}, Spec: maintenancev1beta1.UpgradeConfigSpec{
		Schedule: maintenancev1beta1.UpgradeConfigSchedule{Cron: "0 21 * * 2", Location: "UTC", Suspend: new(true)},
	}}
	_, byWindow := maintenance.SuspendedJob(job, owner, []maintenancev1beta1.UpgradeSuspensionWindow{window}, start)
	window.Spec.JobSelector = nil
	_, byConfig := maintenance.SuspendedJob(job, owner, []maintenancev1beta1.UpgradeSuspensionWindow{window}, start)
	golden.Texts(t, "", byWindow, byConfig)
	if !strings.Contains(byWindow, "UpgradeSuspensionWindow holidays") || !strings.Contains(byConfig, "UpgradeConfig weekly") {
		t.Errorf("got %q and %q", byWindow, byConfig)
	}
}

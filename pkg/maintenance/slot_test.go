// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

func slotJob(slot string, edits ...func(*maintenancev1beta1.UpgradeJob)) *maintenancev1beta1.UpgradeJob {
	job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{maintenancev1beta1.SlotLabel: slot, "team": "a"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: maintenancev1beta1.GroupVersion.String(), Kind: "UpgradeConfig", Name: "weekly", UID: "1", Controller: new(true),
		}},
	}}
	job.Spec.StartAfter = "2027-03-02T22:00:00+01:00"
	for _, edit := range edits {
		edit(job)
	}
	return job
}

func slotOwner(schedule maintenancev1beta1.UpgradeConfigSchedule) *maintenancev1beta1.UpgradeConfig {
	return &maintenancev1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "weekly", UID: "1", Labels: map[string]string{"team": "b"}},
		Spec:       maintenancev1beta1.UpgradeConfigSpec{Schedule: schedule},
	}
}

func TestSuspendedJob(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 3, 2, 21, 0, 0, 0, time.UTC) // a Tuesday
	tuesdays := maintenancev1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2", Location: "Europe/Zurich"}
	suspended := maintenancev1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2", Location: "Europe/Zurich", Suspend: new(true)}
	wednesdays := maintenancev1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 3", Location: "Europe/Zurich"}
	ofB := &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}
	march := func(configs, jobs *maintenancev1beta1.LabelSelector) []maintenancev1beta1.UpgradeSuspensionWindow {
		return []maintenancev1beta1.UpgradeSuspensionWindow{window("march", "2027-03-01T00:00:00Z", "2027-04-01T00:00:00Z", configs, jobs)}
	}
	const slot = "1804021200"
	for name, tc := range map[string]struct {
		job     *maintenancev1beta1.UpgradeJob
		owner   *maintenancev1beta1.UpgradeConfig
		windows []maintenancev1beta1.UpgradeSuspensionWindow
		at      time.Time
		want    string
	}{
		"slot of the schedule":                   {job: slotJob(slot), owner: slotOwner(tuesdays), at: at},
		"without an owner":                       {job: slotJob(slot), at: at},
		"owner is suspended":                     {job: slotJob(slot), owner: slotOwner(suspended), at: at, want: "Suspended: suspended by schedule.suspend of UpgradeConfig weekly"},
		"owner has another schedule":             {job: slotJob(slot), owner: slotOwner(wednesdays), at: at, want: "Rescheduled: the schedule of UpgradeConfig weekly no longer selects 2027-03-02T21:00:00Z"},
		"owner has an invalid schedule":          {job: slotJob(slot), owner: slotOwner(maintenancev1beta1.UpgradeConfigSchedule{Cron: "x"}), at: at, want: "Rescheduled: the schedule of UpgradeConfig weekly no longer selects 2027-03-02T21:00:00Z"},
		"owner without cron":                     {job: slotJob("version-4.20.6"), owner: slotOwner(maintenancev1beta1.UpgradeConfigSchedule{}), at: at},
		"retry overrides the owner":              {job: slotJob(slot), owner: slotOwner(suspended), at: at.Add(time.Hour)},
		"requested upgrade overrides the owner":  {job: slotJob("run-now-1"), owner: slotOwner(suspended), at: at},
		"window of the job":                      {job: slotJob(slot), windows: march(nil, selectA), at: at, want: "Suspended: suspended by UpgradeSuspensionWindow march until 2027-04-01T00:00:00Z"},
		"window of the config":                   {job: slotJob(slot), owner: slotOwner(tuesdays), windows: march(ofB, nil), at: at, want: "Suspended: suspended by UpgradeSuspensionWindow march until 2027-04-01T00:00:00Z"},
		"window suspends a requested upgrade":    {job: slotJob("run-now-1"), owner: slotOwner(tuesdays), windows: march(ofB, nil), at: at, want: "Suspended: suspended by UpgradeSuspensionWindow march until 2027-04-01T00:00:00Z"},
		"window of other configs":                {job: slotJob(slot), owner: slotOwner(tuesdays), windows: march(selectA, ofB), at: at},
		"config that did not create the job":     {job: slotJob(slot, func(j *maintenancev1beta1.UpgradeJob) { j.OwnerReferences[0].UID = "2" }), owner: slotOwner(suspended), at: at},
		"job of a user with the label of a slot": {job: slotJob(slot, func(j *maintenancev1beta1.UpgradeJob) { j.OwnerReferences = nil }), owner: slotOwner(suspended), at: at},
		"job of a user with an owner reference":  {job: slotJob(slot, func(j *maintenancev1beta1.UpgradeJob) { j.Labels = nil }), owner: slotOwner(suspended), at: at},
		"job of an UpgradeConfig of another kind": {job: slotJob(slot, func(j *maintenancev1beta1.UpgradeJob) {
			j.OwnerReferences[0].APIVersion = "upgrade.managed.openshift.io/v1alpha1"
		}), owner: slotOwner(suspended), at: at},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reason, message := maintenance.SuspendedJob(tc.job, tc.owner, tc.windows, tc.at)
			got := ""
			if reason != "" {
				got = reason + ": " + message
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

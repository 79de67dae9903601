// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// newJob returns an UpgradeJob to the desired version.
func newJob(edits ...func(*maintenancev1beta1.UpgradeJob)) *maintenancev1beta1.UpgradeJob {
	job := &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"},
		Spec: maintenancev1beta1.UpgradeJobSpec{
			StartAfter: timestamp(startAfter), StartBefore: timestamp(startAfter.Add(time.Hour)),
			DesiredVersion: maintenancev1beta1.DesiredVersion{Version: desired},
			Config:         maintenancev1beta1.UpgradeJobConfig{UpgradeTimeout: "3h"},
		},
	}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

func timestamp(t time.Time) maintenancev1beta1.Timestamp {
	return maintenancev1beta1.Timestamp(t.UTC().Format(time.RFC3339))
}

// untilEnded runs the world until the attempt has ended, for a day at most.
func (w *world) untilEnded() {
	w.TB.Helper()
	w.Await(24*time.Hour, func() bool { return w.record().CompleteTime != nil })
	w.settle()
}

// settle runs the world for a minute: the lock and the finalizer go after the end.
func (w *world) settle() {
	w.TB.Helper()
	w.RunFor(time.Minute)
}

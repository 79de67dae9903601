// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// change edits an object as a user.
func change[T client.Object](w *world, object T, edit func(T)) {
	w.TB.Helper()
	if err := w.User.Get(w.TB.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		w.TB.Fatal(err)
	}
	before, _ := object.DeepCopyObject().(T)
	edit(object)
	if err := w.User.Patch(w.TB.Context(), object, client.MergeFrom(before)); err != nil {
		w.TB.Fatal(err)
	}
}

// untilEnded runs the world until the attempt has ended, for a day at most.
func (w *world) untilEnded() {
	w.TB.Helper()
	if err := w.RunUntil(24*time.Hour, func() bool { return w.record().CompleteTime != nil }); err != nil {
		w.TB.Fatal(err)
	}
	w.settle()
}

// settle runs the world for a minute: the lock and the finalizer go after the end.
func (w *world) settle() {
	w.TB.Helper()
	w.RunFor(time.Minute)
}

// report sets the conditions of a healthy ClusterVersion.
func (w *world) report() {
	w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) {
		v.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
			{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue},
			{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue},
		}
	})
}

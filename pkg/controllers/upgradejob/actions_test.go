// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

func (w *world) create(object client.Object) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

// newJob returns an UpgradeJob to the desired version.
func newJob(edits ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"},
		Spec: v1beta1.UpgradeJobSpec{
			StartAfter: timestamp(startAfter), StartBefore: timestamp(startAfter.Add(time.Hour)),
			DesiredVersion: v1beta1.DesiredVersion{Version: desired},
			Config:         v1beta1.UpgradeJobConfig{UpgradeTimeout: "3h"},
		},
	}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

func timestamp(t time.Time) v1beta1.Timestamp {
	return v1beta1.Timestamp(t.UTC().Format(time.RFC3339))
}

// change edits an object as a user.
func change[T client.Object](w *world, object T, edit func(T)) {
	w.t.Helper()
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		w.t.Fatal(err)
	}
	before, _ := object.DeepCopyObject().(T)
	edit(object)
	if err := w.client.Patch(w.t.Context(), object, client.MergeFrom(before)); err != nil {
		w.t.Fatal(err)
	}
}

// until runs the world until that time.
func (w *world) until(at time.Time) {
	w.t.Helper()
	if err := w.RunFor(at.Sub(w.Now())); err != nil {
		w.t.Fatal(err)
	}
}

// untilEnded runs the world until the attempt has ended, for a day at most.
func (w *world) untilEnded() {
	w.t.Helper()
	if err := w.RunUntil(24*time.Hour, func() bool { return w.record().CompleteTime != nil }); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

// settle runs the world for a minute: the lock and the finalizer go after the end.
func (w *world) settle() {
	w.t.Helper()
	if err := w.RunFor(time.Minute); err != nil {
		w.t.Fatal(err)
	}
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

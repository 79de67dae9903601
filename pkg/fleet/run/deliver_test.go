// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	fleetrun "github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
)

// writable is a hub that stores its only work, which may be nil, and records the last write.
type writable struct {
	hub
	wrote string
}

func (w *writable) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if _, is := object.(*workv1.ManifestWork); is && w.work == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "manifestworks"}, key.Name)
	}
	return w.hub.Get(ctx, key, object, opts...)
}

func (w *writable) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	return w.store("create", object)
}

func (w *writable) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return w.store("patch", object)
}

func (w *writable) store(verb string, object client.Object) error {
	w.wrote = verb
	w.work, _ = object.(*workv1.ManifestWork)
	return nil
}

func TestDeliver_writes_only_what_this_attempt_has_not_delivered(t *testing.T) {
	t.Parallel()
	newRun := func(attempt int32) *fleetv1alpha1.ClusterUpgradeRun {
		run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}
		run.Spec.Attempt, run.Spec.ClusterVersion = attempt, &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6"}
		run.Spec.ManagedClustersUpgrade.UID = "created-again"
		return run
	}
	build := func(attempt int32, form delivery.Form, changes ...func(*workv1.ManifestWork)) *workv1.ManifestWork {
		work, err := delivery.UpgradeWork(newRun(attempt), &fleetv1beta1.ManagedClustersUpgrade{}, form, time.Time{}, clusterstate.Release{})
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range changes {
			change(work)
		}
		return work
	}
	ofOther := func(w *workv1.ManifestWork) { w.Labels[fleetv1beta1.UpgradeLabel] = "other" }
	ofUser := func(w *workv1.ManifestWork) { w.Labels = nil }
	notDelivered := func(w *workv1.ManifestWork) { w.Annotations = nil }
	leaves := func(w *workv1.ManifestWork) { w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	for name, tc := range map[string]struct {
		existing *workv1.ManifestWork
		wrote    string
		reason   string
	}{
		"none":                         {nil, "create", fleetv1alpha1.ReasonDelivered},
		"same":                         {build(2, delivery.FormApply), "", fleetv1alpha1.ReasonDelivered},
		"other form":                   {build(2, delivery.FormReadOnly), "patch", fleetv1alpha1.ReasonDelivered},
		"earlier attempt":              {build(1, delivery.FormApply), "patch", fleetv1alpha1.ReasonDelivered},
		"other release of the hub":     {build(2, delivery.FormApply, func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs[0].FeedbackRules = nil }), "", fleetv1alpha1.ReasonDelivered},
		"no annotation":                {build(2, delivery.FormApply, notDelivered), "patch", fleetv1alpha1.ReasonDelivered},
		"other upgrade":                {build(2, delivery.FormApply, ofOther), "patch", fleetv1alpha1.ReasonDelivered},
		"other upgrade, leaves":        {build(2, delivery.FormApply, ofOther, leaves), "", "WorkDeleting"},
		"other upgrade, not delivered": {build(2, delivery.FormApply, ofOther, notDelivered), "", "ForeignWork"},
		"work of a user":               {build(2, delivery.FormApply, ofUser), "", "ForeignWork"},
		"being deleted":                {build(2, delivery.FormApply, leaves), "", "WorkDeleting"},
		"foreign, leaves":              {build(2, delivery.FormApply, ofUser, leaves), "", "ForeignWork"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &writable{hub: hub{work: tc.existing}}
			cluster := &fleetrun.Cluster{Client: w, Run: newRun(2)}
			answer, err := cluster.Deliver(t.Context(), engine.Run{})
			if err != nil || answer.Reason() != tc.reason || w.wrote != tc.wrote {
				t.Errorf("wrote %q, answer %s %s, error %v; want %q, %s", w.wrote, answer.Reason(), answer.Message(), err, tc.wrote, tc.reason)
			}
			if w.wrote == "" {
				return
			}
			w.wrote = ""
			if _, err := cluster.Deliver(t.Context(), engine.Run{}); err != nil || w.wrote != "" {
				t.Errorf("delivered again: %q, error %v", w.wrote, err)
			}
		})
	}
}

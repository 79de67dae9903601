// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"encoding/json"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	w.must(w.RunFor(d))
}

// raw returns a template with the fields.
func raw(t *testing.T, fields map[string]any) v1beta1.ClusterVersionTemplate {
	t.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return v1beta1.ClusterVersionTemplate{Spec: runtime.RawExtension{Raw: text}}
}

// create creates the ClusterVersion with a template.
func (w *world) create(template map[string]any, overlays ...v1beta1.ClusterVersionOverlay) {
	w.t.Helper()
	w.must(w.user.Create(w.t.Context(), &v1beta1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "version"},
		Spec:       v1beta1.ClusterVersionSpec{Template: raw(w.t, template), Overlays: overlays},
	}))
}

// overlay returns an overlay from a time after the start of the world.
func (w *world) overlay(after time.Duration, fields map[string]any) v1beta1.ClusterVersionOverlay {
	from := simulation.Start.Add(after).UTC().Format(time.RFC3339)
	return v1beta1.ClusterVersionOverlay{From: v1beta1.Timestamp(from), Overlay: raw(w.t, fields)}
}

// edit changes the ClusterVersion.
func (w *world) edit(template map[string]any) {
	w.t.Helper()
	object := w.object()
	object.Spec.Template = raw(w.t, template)
	w.must(w.user.Update(w.t.Context(), object))
}

// change changes the spec of OpenShift's object in the name of another client.
func (w *world) change(do func(*configv1.ClusterVersionSpec)) {
	w.t.Helper()
	version := w.openShift()
	do(&version.Spec)
	w.must(w.Client("kubectl").Update(w.t.Context(), version))
}

func setChannel(channel string) func(*configv1.ClusterVersionSpec) {
	return func(spec *configv1.ClusterVersionSpec) { spec.Channel = channel }
}

// setLock sets the holder of the upgrade lock; nil means none.
func (w *world) setLock(holder *string) {
	w.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: lock.Name}}
	key := client.ObjectKeyFromObject(lease)
	if err := w.user.Get(w.t.Context(), key, lease); err != nil {
		lease.Spec.HolderIdentity = holder
		w.must(w.user.Create(w.t.Context(), lease))
		return
	}
	lease.Spec.HolderIdentity = holder
	w.must(w.user.Update(w.t.Context(), lease))
}

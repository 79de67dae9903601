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

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// raw returns a template with these fields.
func raw(tb testing.TB, fields map[string]any) maintenancev1beta1.ClusterVersionTemplate {
	tb.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		tb.Fatal(err)
	}
	return maintenancev1beta1.ClusterVersionTemplate{Spec: runtime.RawExtension{Raw: text}}
}

// create creates the ClusterVersion with a template.
func (w *world) create(template map[string]any, overlays ...maintenancev1beta1.ClusterVersionOverlay) {
	w.TB.Helper()
	w.Must(w.User.Create(w.TB.Context(), &maintenancev1beta1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "version"},
		Spec:       maintenancev1beta1.ClusterVersionSpec{Template: raw(w.TB, template), Overlays: overlays},
	}))
}

// overlay returns an overlay that takes effect some time after the start of the simulation.
func (w *world) overlay(after time.Duration, fields map[string]any) maintenancev1beta1.ClusterVersionOverlay {
	from := simulation.Start.Add(after).UTC().Format(time.RFC3339)
	return maintenancev1beta1.ClusterVersionOverlay{From: maintenancev1beta1.Timestamp(from), Overlay: raw(w.TB, fields)}
}

// edit changes the ClusterVersion.
func (w *world) edit(template map[string]any) {
	w.TB.Helper()
	simulation.Edit(w.Harness, w.object(), func(object *maintenancev1beta1.ClusterVersion) { object.Spec.Template = raw(w.TB, template) })
}

// change changes the spec of OpenShift's object as another client.
func (w *world) change(do func(*configv1.ClusterVersionSpec)) {
	w.TB.Helper()
	version := w.openShift()
	do(&version.Spec)
	w.Must(w.Client("kubectl").Update(w.TB.Context(), version))
}

func setChannel(channel string) func(*configv1.ClusterVersionSpec) {
	return func(spec *configv1.ClusterVersionSpec) { spec.Channel = channel }
}

// setLock sets the holder of the upgrade lock. A nil holder releases the lock.
func (w *world) setLock(holder *string) {
	w.TB.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: lock.Name}}
	if simulation.Find(w.Harness, client.ObjectKeyFromObject(lease), &coordinationv1.Lease{}) == nil {
		w.Create(lease)
	}
	simulation.Edit(w.Harness, lease, func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = holder })
}

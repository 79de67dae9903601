// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/admission"
)

const image = "quay.io/release@sha256:0000000000000000000000000000000000000000000000000000000000000001"

func cluster(entries ...configv1.UpdateHistory) *configv1.ClusterVersion {
	return &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Status: configv1.ClusterVersionStatus{History: entries, Desired: configv1.Release{Version: entries[0].Version, Image: entries[0].Image}}}
}

func TestSpecValid(t *testing.T) {
	t.Parallel()
	done := func(version string) configv1.UpdateHistory {
		return configv1.UpdateHistory{Version: version, Image: image, State: configv1.CompletedUpdate}
	}
	partial := configv1.UpdateHistory{Version: "4.4.6", Image: image, State: configv1.PartialUpdate}
	for name, tc := range map[string]struct {
		history []configv1.UpdateHistory
		target  clusterstate.Target
		reason  string // empty if it passes
		fails   bool
	}{
		"an upgrade":                     {history: []configv1.UpdateHistory{done("4.4.5")}, target: clusterstate.Target{Version: "4.4.6"}},
		"an upgrade that has begun":      {history: []configv1.UpdateHistory{partial, done("4.4.5")}, target: clusterstate.Target{Version: "4.4.6"}},
		"the installed version":          {history: []configv1.UpdateHistory{done("4.4.6")}, target: clusterstate.Target{Version: "4.4.6", Image: image}},
		"another image of that":          {history: []configv1.UpdateHistory{done("4.4.6")}, target: clusterstate.Target{Version: "4.4.6", Image: image[:len(image)-1] + "2"}, reason: admission.ReasonInvalidVersion},
		"an earlier version":             {history: []configv1.UpdateHistory{done("4.4.6")}, target: clusterstate.Target{Version: "4.4.5"}, reason: admission.ReasonDowngrade},
		"no version":                     {history: []configv1.UpdateHistory{done("4.4.6")}, target: clusterstate.Target{Version: "latest"}, reason: admission.ReasonInvalidVersion},
		"nothing was ever installed yet": {history: []configv1.UpdateHistory{partial}, target: clusterstate.Target{Version: "4.4.6"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := admission.SpecValid(simulation.NewFakeClient(t, cluster(tc.history...)), tc.target)(t.Context(), engine.Run{})
			if (err != nil) != tc.fails || err == nil && (got.Passed() != (tc.reason == "") || got.Failed() && got.Reason() != tc.reason) {
				t.Errorf("got %s: %s, %v", got.Reason(), got.Message(), err)
			}
		})
	}
}

func TestNotThereYet(t *testing.T) {
	t.Parallel()
	older := cluster(configv1.UpdateHistory{Version: "4.4.5", Image: image, State: configv1.CompletedUpdate})
	target := clusterstate.Target{Version: "4.4.6"}
	if got, err := admission.NotThereYet(simulation.NewFakeClient(t, older), target)(t.Context(), engine.Run{}); err != nil || !got.Passed() {
		t.Errorf("an older version is installed: got %s, %v", got.Reason(), err)
	}
	if got, err := admission.NotThereYet(simulation.NewFakeClient(t), target)(t.Context(), engine.Run{}); err == nil {
		t.Errorf("there is no ClusterVersion: got %s", got.Reason())
	}
}

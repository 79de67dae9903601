// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// A change of the configuration causes a pass over each UpgradeConfig, finished ones included: each shows
// whether the configuration is invalid.
func TestConfigurationCausesPasses(t *testing.T) {
	t.Parallel()
	if channels := (&Reconciler{}).Controller().Channels; len(channels) != 0 {
		t.Errorf("%d channels without a configuration that changes", len(channels))
	}
	changed := make(chan event.GenericEvent)
	c := (&Reconciler{ConfigChanged: changed}).Controller()
	if len(c.Channels) != 1 {
		t.Fatalf("%d channels, want 1", len(c.Channels))
	}
	objects := []client.Object{upgradeConfig(upgrade), upgradeConfig(client.ObjectKey{Namespace: "team-b", Name: "other"})}
	all := fake.NewClientBuilder().WithScheme(simulation.NewScheme()).WithStatusSubresource(&upgradev1alpha1.UpgradeConfig{}).WithObjects(objects...).Build()
	if err := c.Bind(manager.Clients{Client: all, Live: all}); err != nil {
		t.Fatal(err)
	}
	if requests := c.Channels[0].Requests(t.Context(), nil); len(requests) != len(objects) {
		t.Errorf("requests %v, want one for each of %d objects", requests, len(objects))
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// An update may be replaced by the release before while any operator is being updated. In the end, no operator is.
func TestCluster_reverts_an_update(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"etcd", "network", cvo.MachineConfig} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			definitions, err := openshift.Definitions()
			if err != nil {
				t.Fatal(err)
			}
			w := simulation.New(simulation.WorldOptions{Definitions: definitions})
			c, err := openshift.New(w, openshiftsim.ClusterSpec{
				Version: "4.20.5", Channel: "stable-4.20", Masters: 1, Workers: 1,
				Operators: []cvo.OperatorSpec{{Name: "etcd"}, {Name: "network"}},
				Releases:  []updategraph.Release{{Version: "4.20.6", Channels: []string{"stable-4.20"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			request := func(version string) {
				requested := c.Version()
				release, _ := c.Catalog.Version(version)
				requested.Spec.DesiredUpdate = &configv1.Update{Version: version, Image: release.Image()}
				if err := c.Client.Update(t.Context(), requested); err != nil {
					t.Fatal(err)
				}
			}
			updating := func() (names []string) {
				var operators configv1.ClusterOperatorList
				if err := c.Client.List(t.Context(), &operators); err != nil {
					t.Fatal(err)
				}
				for i := range operators.Items {
					if cvo.IsUpdating(&operators.Items[i]) {
						names = append(names, operators.Items[i].Name)
					}
				}
				return names
			}
			cordon := func(cordoned bool) { // so that the control plane pool waits
				var node corev1.Node
				if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "master-0"}, &node); err != nil {
					t.Fatal(err)
				}
				node.Spec.Unschedulable = cordoned
				if err := c.Client.Update(t.Context(), &node); err != nil {
					t.Fatal(err)
				}
			}
			cordon(true)
			request("4.20.6")
			if err := w.RunUntil(3*time.Hour, func() bool { return slices.Equal(updating(), []string{name}) }); err != nil {
				t.Fatal(err)
			}
			request("4.20.5")
			runFor(t, w, 3*time.Hour)
			cordon(false)
			runFor(t, w, time.Hour)
			var config configv1.ClusterOperator
			if err := c.Client.Get(t.Context(), client.ObjectKey{Name: cvo.MachineConfig}, &config); err != nil {
				t.Fatal(err)
			}
			if names := updating(); !c.Settled() || c.Version().Status.History[0].Version != "4.20.5" || cvo.VersionOf(&config) != "4.20.5" || names != nil {
				t.Errorf("settled %t, %+v, machine-config at %s, %q still being updated", c.Settled(), c.Version().Status.History, cvo.VersionOf(&config), names)
			}
		})
	}
}

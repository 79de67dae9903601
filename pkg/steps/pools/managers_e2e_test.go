// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pools_test

import (
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

// The API server records the client that set spec.paused. A user's pause counts as such even if the
// operator's mark is still there.
func TestMark_with_a_real_API_server(t *testing.T) {
	t.Parallel()
	patch := func(patch string) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			t.Helper()
			server.RunKubectl(t, "", "patch", "machineconfigpool", name, "--type=merge", "--patch", patch)
		}
	}
	for name, tc := range map[string]struct {
		do      []func(t *testing.T, name string)
		paused  bool
		delayed bool // the operator will unpause it
	}{
		"no client":             {paused: true, delayed: true},
		"user pauses it, too":   {do: []func(*testing.T, string){patch(`{"spec":{"paused":true}}`)}, paused: true, delayed: true},
		"user unpauses it":      {do: []func(*testing.T, string){patch(`{"spec":{"paused":false}}`)}},
		"user removes the mark": {do: []func(*testing.T, string){patch(`{"metadata":{"annotations":{"managedupgrade.appuio.io/paused-by":null}}}`)}, paused: true},
		"user changes another field": {
			do: []func(*testing.T, string){patch(`{"spec":{"maxUnavailable":2}}`)}, paused: true, delayed: true,
		},
		"user unpauses and pauses it": {
			do: []func(*testing.T, string){patch(`{"spec":{"paused":false}}`), patch(`{"spec":{"paused":true}}`)}, paused: true,
		},
		"GitOps declares that it is paused": {
			do: []func(*testing.T, string){func(t *testing.T, name string) {
				t.Helper()
				server.RunKubectl(t, "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: "+name+"}\nspec: {paused: true}\n",
					"apply", "--server-side", "--field-manager=gitops", "--filename=-")
			}}, paused: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(name), " ", "-"), ",", "")}}
			object.Labels = map[string]string{"name": object.Name}
			object.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: object.Labels}
			if err := server.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			d := pools.Delayed{
				Client: server, Live: server, Owner: maintenance.Owner{UID: "uid", Attempt: 1}, StartAfter: time.Now(),
				Entries: []pools.Delay{{Selector: night(object.Name), Min: time.Hour, Max: 2 * time.Hour}},
			}
			for range 2 { // the first call requests the pause, the second observes it
				if result, err := d.Pause()(t.Context(), engine.Run{Now: time.Now()}); err != nil || result.Failed() {
					t.Fatal(result, err)
				}
			}
			for _, do := range tc.do {
				do(t, object.Name)
			}
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			live := clusterstate.NewPool(object)
			if _, err := clusterstate.StripPool(object); err != nil {
				t.Fatal(err)
			}
			for source, pool := range map[string]clusterstate.Pool{"API server": live, "cache": clusterstate.NewPool(object)} {
				if pool.Paused != tc.paused || pool.Delayed() != tc.delayed {
					t.Errorf("%s: paused %t, delayed %t, want %t, %t", source, pool.Paused, pool.Delayed(), tc.paused, tc.delayed)
				}
			}
			stale := live
			stale.ResourceVersion = "1"
			if applied, err := pools.Release(t.Context(), server, stale); err != nil || applied {
				t.Errorf("a pool that has changed: applied %t, %v", applied, err)
			}
			if applied, err := pools.Release(t.Context(), server, live); err != nil || !applied {
				t.Errorf("released: %t, %v", applied, err)
			}
			if got := server.RunKubectl(t, "", "get", "machineconfigpool", object.Name, "--output=jsonpath={.spec.paused} {.metadata.annotations}"); strings.TrimSpace(got) != "false" && strings.TrimSpace(got) != "false {}" {
				t.Errorf("the released pool is %q", got)
			}
		})
	}
}

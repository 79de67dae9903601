// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// ownersOf returns the field managers of the channel.
func ownersOf(version *configv1.ClusterVersion) []string {
	var names []string
	for _, entry := range version.ManagedFields {
		if strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:channel"`) {
			names = append(names, entry.Manager)
		}
	}
	slices.Sort(names)
	return names
}

// TestFieldManagers checks that a field is owned by the client that last changed it.
func TestFieldManagers(t *testing.T) {
	t.Parallel()
	w := simulation.New(simulation.WorldOptions{})
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{Channel: "stable-4.4"}}
	if err := w.Client("installer").Create(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	update := func(actor string, change func(*configv1.ClusterVersion)) func() error {
		return func() error {
			c := w.Client(actor)
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(version), version); err != nil {
				return err
			}
			change(version)
			return c.Update(t.Context(), version)
		}
	}
	setChannel := func(name string) func(*configv1.ClusterVersion) {
		return func(v *configv1.ClusterVersion) { v.Spec.Channel = name }
	}
	patch := func(name string, opts ...client.PatchOption) func() error {
		return func() error {
			before := version.DeepCopy()
			version.Spec.Channel = name
			return w.Client("operator").Patch(t.Context(), version, client.MergeFrom(before), opts...)
		}
	}
	for _, tc := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"created", func() error { return nil }, []string{"installer"}},
		{"updated by another client", update("user", setChannel("fast-4.4")), []string{"user"}},
		{"updated with the same value", update("gitops", setChannel("fast-4.4")), []string{"user"}},
		{"another field updated", update("gitops", func(v *configv1.ClusterVersion) { v.Spec.Upstream = "https://graph.example" }), []string{"user"}},
		{"patched without a field manager", patch("eus-4.4"), []string{"operator"}},
		{"patched with a field manager", patch("stable-4.4", client.FieldOwner("channel-setter")), []string{"channel-setter"}},
	} {
		if err := tc.do(); err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		var stored configv1.ClusterVersion
		if err := w.Client("test").Get(t.Context(), client.ObjectKeyFromObject(version), &stored); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, ownersOf(&stored)); diff != "" {
			t.Errorf("%s: field managers of the channel (-want +got):\n%s", tc.name, diff)
		}
	}
}

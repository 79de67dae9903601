// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
)

func TestUUID(t *testing.T) {
	t.Parallel()
	node := func(name string) updatev1beta1.ResourceReference {
		return updatev1beta1.ResourceReference{Kind: "Node", Name: name}
	}
	scope := func(refs ...updatev1beta1.ResourceReference) updatev1beta1.InsightScope {
		return updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane, Resources: refs}
	}
	uuid := func(informer, uid string, s updatev1beta1.InsightScope) string { return insight.UUID(informer, s, uid) }
	base := uuid("mco", "slow", scope(node("a"), node("b")))
	// Accepted risks refer to this value, so it must never change.
	if want := "9d16626e0e072eeb8c45d370efadc8f0"; base != want {
		t.Errorf("got %s, want %s", base, want)
	}
	same := map[string]string{
		"another order": uuid("mco", "slow", scope(node("b"), node("a"))),
		"twice":         uuid("mco", "slow", scope(node("b"), node("a"), node("a"))),
		"another version": uuid("mco", "slow", scope(
			updatev1beta1.ResourceReference{APIVersion: "v1", Kind: "Node", Name: "a"}, updatev1beta1.ResourceReference{APIVersion: "v2", Kind: "Node", Name: "b"})),
	}
	for name, got := range same {
		if got != base {
			t.Errorf("%s: got %s, want %s", name, got, base)
		}
	}
	other := map[string]string{
		"another informer":    uuid("mco2", "slow", scope(node("a"), node("b"))),
		"another uid":         uuid("mco", "slow2", scope(node("a"), node("b"))),
		"a part moved":        uuid("mcos", "low", scope(node("a"), node("b"))),
		"another object":      uuid("mco", "slow", scope(node("a"), node("c"))),
		"names joined":        uuid("mco", "slow", scope(node("ab"))),
		"another group":       uuid("mco", "slow", scope(updatev1beta1.ResourceReference{APIVersion: "x/v1", Kind: "Node", Name: "a"}, node("b"))),
		"another namespace":   uuid("mco", "slow", scope(updatev1beta1.ResourceReference{Kind: "Node", Namespace: "x", Name: "a"}, node("b"))),
		"another scope":       uuid("mco", "slow", updatev1beta1.InsightScope{Type: updatev1beta1.ScopeWorkerPool, Resources: []updatev1beta1.ResourceReference{node("a"), node("b")}}),
		"pools not resources": uuid("mco", "slow", updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane, WorkerPool: []updatev1beta1.ResourceReference{node("a"), node("b")}}),
		"one of each":         uuid("mco", "slow", updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane, WorkerPool: []updatev1beta1.ResourceReference{node("a")}, Resources: []updatev1beta1.ResourceReference{node("b")}}),
	}
	seen := []string{base}
	for name, got := range other {
		if slices.Contains(seen, got) {
			t.Errorf("%s: the UUID is not another one", name)
		}
		seen = append(seen, got)
	}
}

// TestUUID_Order checks that the order of references does not matter and that the arguments are not modified.
func TestUUID_Order(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		refs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) updatev1beta1.ResourceReference {
			return updatev1beta1.ResourceReference{
				APIVersion: rapid.SampledFrom([]string{"", "v1", "apps/v1"}).Draw(t, "apiVersion"), Kind: rapid.StringN(0, 3, -1).Draw(t, "kind"),
				Name: rapid.StringN(0, 3, -1).Draw(t, "name"),
			}
		}), 0, 5).Draw(t, "refs")
		shuffled := rapid.Permutation(refs).Draw(t, "shuffled")
		before := slices.Clone(shuffled)
		a := insight.UUID("i", updatev1beta1.InsightScope{Resources: refs}, "u")
		b := insight.UUID("i", updatev1beta1.InsightScope{Resources: shuffled}, "u")
		if a != b || !slices.Equal(before, shuffled) {
			t.Fatalf("got %s and %s", a, b)
		}
	})
}

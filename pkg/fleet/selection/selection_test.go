// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const home = "fleet"

// upgrade returns a ManagedClustersUpgrade with Placements of its namespace, or of another one, as
// namespace/name.
func upgrade(placements ...string) *fleetv1beta1.ManagedClustersUpgrade {
	mcu := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Name: "stores", Namespace: home, UID: "3f9c2abd-7a3c-4ae1"}}
	for _, name := range placements {
		reference := fleetv1beta1.PlacementReference{Name: name}
		if namespace, rest, found := strings.Cut(name, "/"); found {
			reference = fleetv1beta1.PlacementReference{Namespace: namespace, Name: rest}
		}
		mcu.Spec.Placement = append(mcu.Spec.Placement, reference)
	}
	return mcu
}

func canaries(mcu *fleetv1beta1.ManagedClustersUpgrade, selector fleetv1beta1.LabelSelector) *fleetv1beta1.ManagedClustersUpgrade {
	mcu.Spec.UpgradeStrategy.CanaryClusters = &fleetv1beta1.CanaryClusters{ClusterSelector: selector}
	return mcu
}

// placement returns a Placement that selects a number of clusters.
func placement(namespace, name string, selected int32) *ocmv1beta1.Placement {
	return &ocmv1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
		Status: ocmv1beta1.PlacementStatus{
			NumberOfSelectedClusters: selected,
			Conditions:               []metav1.Condition{{Type: ocmv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionTrue}},
		},
	}
}

var sequence = 0

// decision returns a PlacementDecision of a Placement, of the group index. The group may have a name.
func decision(p *ocmv1beta1.Placement, index int, group string, clusters ...string) *ocmv1beta1.PlacementDecision {
	sequence++
	d := &ocmv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Namespace, Name: fmt.Sprint(p.Name, "-decision-", sequence),
		Labels:          map[string]string{ocmv1beta1.PlacementLabel: p.Name, ocmv1beta1.DecisionGroupIndexLabel: strconv.Itoa(index)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p, schema.GroupVersionKind{Group: ocmv1beta1.GroupName, Version: "v1beta1", Kind: "Placement"})},
	}}
	if group != "" {
		d.Labels[ocmv1beta1.DecisionGroupNameLabel] = group
	}
	for _, name := range clusters {
		d.Status.Decisions = append(d.Status.Decisions, ocmv1beta1.ClusterDecision{ClusterName: name})
	}
	return d
}

func cluster(name string, labels ...string) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		c.Labels[key] = value
	}
	return c
}

func scheme(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.Install, ocmv1beta1.Install, fleetv1beta1.AddToScheme} {
		if err := add(s); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

func choose(t *testing.T, mcu *fleetv1beta1.ManagedClustersUpgrade, options selection.SelectOptions, objects ...client.Object) selection.Selection {
	t.Helper()
	reader := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects...).Build()
	clusters := map[string]*clusterv1.ManagedCluster{}
	for _, object := range objects {
		if cluster, is := object.(*clusterv1.ManagedCluster); is {
			clusters[cluster.Name] = cluster
		}
	}
	s, err := selection.Select(t.Context(), reader, mcu, clusters, options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func member(name string, group int) selection.SelectedCluster {
	return selection.SelectedCluster{Name: name, Group: group}
}

func TestSelect(t *testing.T) {
	eu, us, foreign := placement(home, "eu", 3), placement(home, "us", 2), placement("dev", "dev", 1)
	short, empty, unscheduled, unbound := placement(home, "short", 3), placement(home, "empty", 0), placement(home, "unscheduled", 0), placement(home, "unbound", 0)
	unscheduled.Status.Conditions = nil
	unbound.Status.Conditions = []metav1.Condition{{Type: ocmv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue, Message: "no ManagedClusterSetBindings in namespace fleet"}}
	earlier := placement(home, "eu", 1)
	earlier.UID = "earlier"
	byHand := decision(us, 0, "", "us1", "us2")
	byHand.OwnerReferences = nil
	deleting := cluster("eu2")
	now := metav1.NewTime(time.Unix(0, 0))
	deleting.DeletionTimestamp, deleting.Finalizers = &now, []string{"a/b"}
	claimed := cluster("eu1")
	claimed.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "local-cluster", Value: "true"}}
	clusters := []client.Object{cluster("eu1"), cluster("eu2", "region=eu"), cluster("eu3", "name=paris"), cluster("us1", "region=us"), cluster("us2"), cluster("dev1")}
	euDecisions := []client.Object{eu, decision(eu, 1, "late", "eu1"), decision(eu, 0, "early", "eu3"), decision(eu, 0, "early", "eu2")}
	euMembers := []selection.SelectedCluster{{Name: "eu2", Group: 0, GroupName: "early"}, {Name: "eu3", Group: 0, GroupName: "early"}, {Name: "eu1", Group: 1, GroupName: "late"}}
	mark := func(change func(*selection.SelectedCluster), names ...string) []selection.SelectedCluster {
		members := append([]selection.SelectedCluster{}, euMembers...)
		for i := range members {
			for _, name := range names {
				if members[i].Name == name {
					change(&members[i])
				}
			}
		}
		return members
	}
	asCanary, asHub := func(m *selection.SelectedCluster) { m.Canary = true }, func(m *selection.SelectedCluster) { m.Hub = true }
	in := func(key string, values ...string) fleetv1beta1.LabelSelector {
		return fleetv1beta1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}}}
	}
	replace := func(with *clusterv1.ManagedCluster) []client.Object {
		objects := []client.Object{with}
		for _, c := range clusters {
			if c.GetName() != with.Name {
				objects = append(objects, c)
			}
		}
		return objects
	}
	for name, tc := range map[string]struct {
		mcu      *fleetv1beta1.ManagedClustersUpgrade
		options  selection.SelectOptions
		objects  []client.Object
		clusters []client.Object
		want     selection.Selection
	}{
		"groups are in the order of their indexes": {
			mcu: upgrade("eu"), objects: euDecisions, want: selection.Selection{Members: euMembers},
		},
		"Placements are in the order of the spec": {
			mcu: upgrade("us", "eu"), objects: append([]client.Object{us, decision(us, 0, "", "us2", "us1")}, euDecisions...),
			want: selection.Selection{Members: []selection.SelectedCluster{member("us1", 0), member("us2", 0), {Name: "eu2", Group: 1, GroupName: "early"}, {Name: "eu3", Group: 1, GroupName: "early"}, {Name: "eu1", Group: 2, GroupName: "late"}}},
		},
		"a cluster of two Placements is in the first": {
			mcu: upgrade("eu", "us"), objects: append([]client.Object{us, decision(us, 0, "", "us2", "eu1")}, euDecisions...),
			want: selection.Selection{Members: append(append([]selection.SelectedCluster{}, euMembers...), member("us2", 2))},
		},
		"a Placement that is named twice counts once": {
			mcu: upgrade("eu", home+"/eu"), objects: euDecisions, want: selection.Selection{Members: euMembers},
		},
		"Placements of other namespaces": {
			mcu: upgrade("dev/dev"), objects: []client.Object{foreign, decision(foreign, 0, "", "dev1")}, want: selection.Selection{Members: []selection.SelectedCluster{member("dev1", 0)}},
		},
		"Placements of other namespaces are not allowed": {
			mcu: upgrade("dev/dev"), options: selection.SelectOptions{OwnNamespaceOnly: true}, objects: []client.Object{foreign, decision(foreign, 0, "", "dev1")},
			want: selection.Selection{Unstable: "any", Reason: "PlacementNotAllowed", Message: "Placement dev/dev is in another namespace, which the hub does not allow: use a Placement in namespace fleet"},
		},
		"the own namespace is allowed": {
			mcu: upgrade(home + "/eu"), options: selection.SelectOptions{OwnNamespaceOnly: true}, objects: euDecisions, want: selection.Selection{Members: euMembers},
		},
		"a missing Placement stops all": {
			mcu: upgrade("eu", "none"), objects: euDecisions, want: selection.Selection{Unstable: "any", Reason: "PlacementNotFound", Message: "Placement fleet/none does not exist"},
		},
		"a decision is missing": {
			mcu: upgrade("short"), objects: []client.Object{short, decision(short, 0, "", "eu1", "eu2")},
			want: selection.Selection{Members: []selection.SelectedCluster{member("eu1", 0), member("eu2", 0)}, Unstable: "any"},
		},
		"a decision too many": {
			mcu: upgrade("us"), objects: []client.Object{us, decision(us, 0, "", "us1", "us2"), decision(us, 0, "", "eu1")},
			want: selection.Selection{Members: []selection.SelectedCluster{member("eu1", 0), member("us1", 0), member("us2", 0)}, Unstable: "any"},
		},
		"decisions of an earlier Placement are ignored": {
			mcu: upgrade("eu"), objects: append([]client.Object{decision(earlier, 0, "", "us1")}, euDecisions...), want: selection.Selection{Members: euMembers},
		},
		"decisions that users write": {
			mcu: upgrade("us"), objects: []client.Object{us, byHand}, want: selection.Selection{Members: []selection.SelectedCluster{member("us1", 0), member("us2", 0)}},
		},
		"not scheduled yet": {mcu: upgrade("unscheduled"), objects: []client.Object{unscheduled}, want: selection.Selection{Unstable: "any"}},
		"no cluster": {
			mcu: upgrade("empty"), objects: []client.Object{empty}, want: selection.Selection{Reason: "NoClustersSelected", Message: "the Placements select no cluster that exists"},
		},
		"no cluster set is bound": {
			mcu: upgrade("unbound"), objects: []client.Object{unbound}, want: selection.Selection{Reason: "NoClustersSelected", Message: "Placement fleet/unbound: no ManagedClusterSetBindings in namespace fleet"},
		},
		"a detached cluster": {
			mcu: upgrade("eu"), objects: euDecisions, clusters: clusters[1:], want: selection.Selection{Members: euMembers[:2]},
		},
		"a cluster that is being deleted": {
			mcu: upgrade("eu"), objects: euDecisions, clusters: replace(deleting), want: selection.Selection{Members: euMembers[1:]},
		},
		"canaries by label": {
			mcu: canaries(upgrade("eu"), fleetv1beta1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}), objects: euDecisions, want: selection.Selection{Members: mark(asCanary, "eu2")},
		},
		"canaries by the label name, or by name": {
			mcu: canaries(upgrade("eu"), in("name", "paris", "eu1", "us1")), objects: euDecisions, want: selection.Selection{Members: mark(asCanary, "eu1", "eu3")},
		},
		"the label name hides the name": {
			mcu: canaries(upgrade("eu"), in("name", "eu3")), objects: euDecisions, want: selection.Selection{Members: euMembers},
		},
		"an invalid canary selector stops all": {
			mcu: canaries(upgrade("eu"), in("not a key", "a")), objects: euDecisions, want: selection.Selection{Unstable: "any", Reason: "NoClustersSelected", Message: "any"},
		},
		"the hub by its setting":           {mcu: upgrade("eu"), objects: euDecisions, options: selection.SelectOptions{LocalCluster: "eu2"}, want: selection.Selection{Members: mark(asHub, "eu2")}},
		"a cluster that is labeled as hub": {mcu: upgrade("eu"), objects: euDecisions, clusters: replace(cluster("eu2", "local-cluster=true")), want: selection.Selection{Members: euMembers}},
		"a cluster that claims to be hub":  {mcu: upgrade("eu"), objects: euDecisions, clusters: replace(claimed), want: selection.Selection{Members: euMembers}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.clusters == nil {
				tc.clusters = clusters
			}
			var objects []client.Object
			for _, object := range append(append([]client.Object{}, tc.objects...), tc.clusters...) {
				objects = append(objects, object.DeepCopyObject().(client.Object))
			}
			got := choose(t, tc.mcu, tc.options, objects...)
			if tc.want.Unstable == "any" && got.Unstable != "" {
				got.Unstable = "any"
			}
			if tc.want.Message == "any" && got.Message != "" {
				got.Message = "any"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("selection (-want +got):\n%s", diff)
			}
		})
	}
}

// The clusters of the own Placement come after the clusters of the other Placements.
func TestSelectUnitesPlacementsAndSelector(t *testing.T) {
	t.Parallel()
	mcu := upgrade("us")
	mcu.Spec.ClusterSelector = &fleetv1beta1.ClusterSelector{}
	us := placement(home, "us", 1)
	objects := []client.Object{us, decision(us, 0, "", "us1"), cluster("us1"), cluster("eu1")}
	if got := choose(t, mcu, selection.SelectOptions{}, objects...); got.Stable() {
		t.Error("the selection is stable before the own Placement exists")
	}
	own := selection.Placement(mcu)
	own.UID, own.Status = "own", placement("", "", 2).Status
	objects = append(objects, own, decision(own, 0, "", "us1", "eu1"))
	want := selection.Selection{Members: []selection.SelectedCluster{member("us1", 0), member("eu1", 1)}}
	if diff := cmp.Diff(want, choose(t, mcu, selection.SelectOptions{}, objects...)); diff != "" {
		t.Errorf("selection (-want +got):\n%s", diff)
	}
	mcu.Spec.ClusterSelector.MatchLabels = map[string]string{"region": "eu"}
	if got := choose(t, mcu, selection.SelectOptions{}, objects...); got.Stable() {
		t.Error("the selection is stable while the own Placement has another selector")
	}
}

func TestPlacement(t *testing.T) {
	t.Parallel()
	if p := selection.Placement(upgrade("eu")); p != nil {
		t.Errorf("without clusterSelector: %v", p)
	}
	mcu := upgrade()
	mcu.Spec.ClusterSelector = &fleetv1beta1.ClusterSelector{ClusterSets: []string{"dev"}, LabelSelector: fleetv1beta1.LabelSelector{
		MatchLabels: map[string]string{"region": "eu", "name": `d"1`},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: []string{"dev1", "dev2"}},
			{Key: "name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"dev3"}},
			{Key: "name", Operator: metav1.LabelSelectorOpExists},
			{Key: "name", Operator: metav1.LabelSelectorOpDoesNotExist},
			{Key: "tier", Operator: metav1.LabelSelectorOpExists},
		},
	}}
	got := selection.Placement(mcu)
	const value = `(has(managedCluster.metadata.labels) && "name" in managedCluster.metadata.labels ? managedCluster.metadata.labels["name"] : managedCluster.metadata.name)`
	want := ocmv1beta1.ClusterSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}},
		CelSelector:   ocmv1beta1.ClusterCelSelector{CelExpressions: []string{value + ` in ["d\"1"]`, value + ` in ["dev1", "dev2"]`, "!(" + value + ` in ["dev3"])`, "true", "false"}},
	}
	if diff := cmp.Diff(want, got.Spec.Predicates[0].RequiredClusterSelector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	if owner := metav1.GetControllerOf(got); got.Name != "mcu-3f9c2abd" || got.Namespace != home || owner == nil || owner.UID != mcu.UID || got.Labels[fleetv1beta1.UpgradeLabel] != string(mcu.UID) {
		t.Errorf("metadata: %+v", got.ObjectMeta)
	}
	if diff := cmp.Diff([]string{"dev"}, got.Spec.ClusterSets); diff != "" || len(got.Spec.Tolerations) != 2 {
		t.Errorf("cluster sets (-want +got):\n%s, and tolerations %v", diff, got.Spec.Tolerations)
	}
	defaulted := got.DeepCopy()
	defaulted.Spec.SortBy, defaulted.Spec.ScoreRateLimit = "ClusterName", "1m"
	if selection.NeedsUpdate(defaulted, got) {
		t.Error("a Placement with the defaults of its API needs an update")
	}
	changed := got.DeepCopy()
	changed.Spec.Tolerations = nil
	if !selection.NeedsUpdate(changed, got) {
		t.Error("a Placement without tolerations needs no update")
	}
	mcu.Spec.ClusterSelector.LabelSelector = fleetv1beta1.LabelSelector{}
	if all := selection.Placement(mcu); all.Spec.Predicates != nil {
		t.Errorf("an empty selector has predicates %v", all.Spec.Predicates)
	}
}

func TestEnsurePlacement(t *testing.T) {
	t.Parallel()
	mcu := upgrade()
	mcu.Spec.ClusterSelector = &fleetv1beta1.ClusterSelector{ClusterSets: []string{"dev"}}
	desired := selection.Placement(mcu)
	foreign, other := desired.DeepCopy(), desired.DeepCopy()
	foreign.OwnerReferences, foreign.Spec.Tolerations = nil, nil
	other.Spec.ClusterSets = []string{"prod"}
	without := upgrade("eu")
	for name, tc := range map[string]struct {
		mcu      *fleetv1beta1.ManagedClustersUpgrade
		existing *ocmv1beta1.Placement
		want     *ocmv1beta1.PlacementSpec
		writes   int
		fails    bool
	}{
		"is created":                         {mcu: mcu, want: &desired.Spec, writes: 1},
		"is changed":                         {mcu: mcu, existing: other, want: &desired.Spec, writes: 1},
		"stays":                              {mcu: mcu, existing: desired, want: &desired.Spec},
		"of another owner stays":             {mcu: mcu, existing: foreign, want: &foreign.Spec, fails: true},
		"is deleted with the selector":       {mcu: without, existing: desired, writes: 1},
		"of another owner is not deleted":    {mcu: without, existing: foreign, want: &foreign.Spec},
		"is not needed":                      {mcu: without},
		"is not created while being deleted": {mcu: deleted(mcu)},
		"is not changed while being deleted": {mcu: deleted(mcu), existing: other, want: &other.Spec},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			builder := fake.NewClientBuilder().WithScheme(scheme(t))
			if tc.existing != nil {
				builder = builder.WithObjects(tc.existing.DeepCopy())
			}
			writes := 0
			count := func() { writes++ }
			c := interceptor.NewClient(builder.Build(), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
					count()
					return c.Create(ctx, object, options...)
				},
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					count()
					return c.Patch(ctx, object, patch, options...)
				},
				Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
					count()
					return c.Delete(ctx, object, options...)
				},
			})
			if err := selection.EnsurePlacement(t.Context(), c, tc.mcu, time.Date(2027, time.March, 2, 21, 0, 0, 0, time.UTC)); (err != nil) != tc.fails {
				t.Errorf("error %v, want one: %t", err, tc.fails)
			}
			var list ocmv1beta1.PlacementList
			if err := c.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			var got *ocmv1beta1.PlacementSpec
			if len(list.Items) > 0 {
				got = &list.Items[0].Spec
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" || writes != tc.writes {
				t.Errorf("%d writes, want %d; spec (-want +got):\n%s", writes, tc.writes, diff)
			}
		})
	}
}

func deleted(mcu *fleetv1beta1.ManagedClustersUpgrade) *fleetv1beta1.ManagedClustersUpgrade {
	deleted := mcu.DeepCopy()
	now := metav1.NewTime(time.Unix(0, 0))
	deleted.DeletionTimestamp = &now
	return deleted
}

// maxCompute limits the processor time of the selection for 3,500 clusters.
const maxCompute = 5 * time.Millisecond

// BenchmarkCompute selects 3,500 clusters in 35 decisions and 10 groups.
func BenchmarkCompute(b *testing.B) {
	mcu := canaries(upgrade("all"), fleetv1beta1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: []string{"store-0000", "store-0001"}}}})
	source := selection.PlacementSource{Namespace: home, Name: "all", Placement: placement(home, "all", 3500)}
	clusters := map[string]*clusterv1.ManagedCluster{}
	for i := range 35 {
		var members []string
		for j := range 100 {
			name := fmt.Sprintf("store-%04d", i*100+j)
			clusters[name] = cluster(name, "region=eu")
			members = append(members, name)
		}
		source.Decisions = append(source.Decisions, *decision(source.Placement, i/4, "", members...))
	}
	pass := func() {
		if s := selection.Compute(mcu, []selection.PlacementSource{source}, clusters, ""); len(s.Members) != 3500 || !s.Stable() {
			b.Fatal(len(s.Members), s.Unstable)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		pass()
	}
	fastest := simulation.FastestPass(b, 20, pass)
	b.ReportMetric(float64(fastest.Microseconds())/1000, "best-ms")
	if fastest > maxCompute {
		b.Errorf("the selection takes %s of processor time, limit %s", fastest, maxCompute)
	}
}

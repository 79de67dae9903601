// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

func TestVersion_available_update(t *testing.T) {
	t.Parallel()
	release := configv1.Release{Version: "4.4.6", Image: image446}
	risk := configv1.ConditionalUpdateRisk{Name: "SlowBoot", Message: "nodes boot slowly", URL: "https://example.com/slow"}
	cases := map[string]struct {
		status configv1.ClusterVersionStatus
		image  string
		want   clusterstate.AvailableUpdate
	}{
		"two releases of one version are offered, and none of them is named": {
			status: configv1.ClusterVersionStatus{AvailableUpdates: []configv1.Release{{Version: "4.4.6", Image: image446}, {Version: "4.4.6", Image: image445}}},
			want:   clusterstate.AvailableUpdate{Available: true, Listed: true, Ambiguous: true, Image: image446},
		},
		"two releases of one version are offered, and the second one is named": {
			status: configv1.ClusterVersionStatus{AvailableUpdates: []configv1.Release{{Version: "4.4.6", Image: image446}, {Version: "4.4.6", Image: image445}}},
			image:  "mirror.example.com/ocp@sha256:445",
			want:   clusterstate.AvailableUpdate{Available: true, Listed: true, Ambiguous: true, Image: image445},
		},
		"a recommended release does not lift the risks of another one of its version": {
			status: configv1.ClusterVersionStatus{
				AvailableUpdates:   []configv1.Release{{Version: "4.4.6", Image: image445}},
				ConditionalUpdates: []configv1.ConditionalUpdate{{Release: release, Risks: []configv1.ConditionalUpdateRisk{{Name: "SlowBoot"}}}},
			},
			image: image446,
			want:  clusterstate.AvailableUpdate{Available: true, Ambiguous: true, Conditional: true, RisksUnknown: true, Image: image446, Risks: []clusterstate.Risk{{Name: "SlowBoot"}}},
		},
		"nothing is offered": {},
		"another version is offered": {
			status: configv1.ClusterVersionStatus{AvailableUpdates: []configv1.Release{{Version: "4.4.7"}}},
		},
		"a release without metadata is offered": {
			status: configv1.ClusterVersionStatus{AvailableUpdates: []configv1.Release{release}},
			want:   clusterstate.AvailableUpdate{Available: true, Listed: true, Image: image446},
		},
		"a conditional release is offered with its risks": {
			status: configv1.ClusterVersionStatus{ConditionalUpdates: []configv1.ConditionalUpdate{{Release: release, Risks: []configv1.ConditionalUpdateRisk{risk}}}},
			want: clusterstate.AvailableUpdate{Available: true, Conditional: true, RisksUnknown: true, Image: image446, Risks: []clusterstate.Risk{
				{Name: "SlowBoot", Message: "nodes boot slowly", URL: "https://example.com/slow"},
			}},
		},
		"a release that is in both lists is recommended": {
			status: configv1.ClusterVersionStatus{
				AvailableUpdates:   []configv1.Release{release},
				ConditionalUpdates: []configv1.ConditionalUpdate{{Release: release, Risks: []configv1.ConditionalUpdateRisk{risk}}},
			},
			want: clusterstate.AvailableUpdate{Available: true, Listed: true, Image: image446},
		},
		"a conditional release that is recommended has no risks": {
			status: configv1.ClusterVersionStatus{ConditionalUpdates: []configv1.ConditionalUpdate{{
				Release: release, Risks: []configv1.ConditionalUpdateRisk{risk},
				Conditions: []metav1.Condition{{Type: "Recommended", Status: metav1.ConditionTrue}},
			}}},
			want: clusterstate.AvailableUpdate{Available: true, Image: image446},
		},
		"a risk that is known not to apply is none": {
			status: configv1.ClusterVersionStatus{ConditionalUpdates: []configv1.ConditionalUpdate{{
				Release: release,
				Risks: []configv1.ConditionalUpdateRisk{
					{Name: "Elsewhere", Conditions: []metav1.Condition{{Type: "Applies", Status: metav1.ConditionFalse}}},
					{Name: "Here", Conditions: []metav1.Condition{{Type: "Applies", Status: metav1.ConditionTrue}}},
					{Name: "Perhaps", Conditions: []metav1.Condition{{Type: "Applies", Status: metav1.ConditionUnknown}}},
				},
			}}},
			want: clusterstate.AvailableUpdate{Available: true, Conditional: true, RisksUnknown: true, Image: image446, Risks: []clusterstate.Risk{{Name: "Here"}, {Name: "Perhaps"}}},
		},
		"a release says in which channels it is": {
			status: configv1.ClusterVersionStatus{AvailableUpdates: []configv1.Release{
				{Version: release.Version, Image: release.Image, Channels: []string{"fast-4.4", "stable-4.4"}},
			}},
			want: clusterstate.AvailableUpdate{Available: true, Listed: true, Image: image446, Channels: []string{"fast-4.4", "stable-4.4"}},
		},
		"the risk that is the reason for not recommending a release is the only one": {
			status: configv1.ClusterVersionStatus{ConditionalUpdates: []configv1.ConditionalUpdate{{
				Release: release, Risks: []configv1.ConditionalUpdateRisk{{Name: "Elsewhere"}, {Name: "Here"}},
				Conditions: []metav1.Condition{{Type: "Recommended", Status: metav1.ConditionFalse, Reason: "Here"}},
			}}},
			want: clusterstate.AvailableUpdate{Available: true, Conditional: true, Image: image446, Risks: []clusterstate.Risk{{Name: "Here"}}},
		},
		"when several things are the reason for not recommending a release, any risk may be among them": {
			status: configv1.ClusterVersionStatus{ConditionalUpdates: []configv1.ConditionalUpdate{{
				Release: release, Risks: []configv1.ConditionalUpdateRisk{{Name: "Elsewhere"}, {Name: "Here"}},
				Conditions: []metav1.Condition{{Type: "Recommended", Status: metav1.ConditionFalse, Reason: "MultipleReasons"}},
			}}},
			want: clusterstate.AvailableUpdate{Available: true, Conditional: true, Image: image446, Risks: []clusterstate.Risk{{Name: "Elsewhere"}, {Name: "Here"}}},
		},
		"a conditional release that names no risks cannot be accepted": {
			status: configv1.ClusterVersionStatus{ConditionalUpdates: []configv1.ConditionalUpdate{{Release: release}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clusterstate.VersionOf(&configv1.ClusterVersion{Status: tc.status}).AvailableUpdate(clusterstate.Target{Version: "4.4.6", Image: tc.image})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOffer_unaccepted_risks(t *testing.T) {
	t.Parallel()
	offer := clusterstate.AvailableUpdate{Risks: []clusterstate.Risk{{Name: "A"}, {Name: "B"}, {Name: "C"}}}
	got := offer.UnacceptedRisks(clusterstate.Target{AcceptedRisks: []string{"B", "b", "D"}})
	if diff := cmp.Diff([]clusterstate.Risk{{Name: "A"}, {Name: "C"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfferedVersions(t *testing.T) {
	t.Parallel()
	version := clusterstate.VersionOf(&configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{
		AvailableUpdates:   []configv1.Release{{Version: "4.4.9"}, {Version: "4.4.10"}, {Version: "4.4.10", Image: image446}},
		ConditionalUpdates: []configv1.ConditionalUpdate{{Release: configv1.Release{Version: "4.5.0-rc.1"}, Risks: []configv1.ConditionalUpdateRisk{{Name: "A"}}}},
	}})
	if diff := cmp.Diff([]string{"4.5.0-rc.1", "4.4.10", "4.4.9"}, version.OfferedVersions()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNewestUpdate(t *testing.T) {
	t.Parallel()
	offers := func(versions ...string) []configv1.Release {
		var all []configv1.Release
		for _, v := range versions {
			all = append(all, configv1.Release{Version: v, Image: "quay.io/release@sha256:" + v})
		}
		return all
	}
	risky := func(version string) []configv1.ConditionalUpdate {
		return []configv1.ConditionalUpdate{{
			Release: configv1.Release{Version: version, Image: "quay.io/release@sha256:" + version}, Risks: []configv1.ConditionalUpdateRisk{{Name: "Risk"}},
			Conditions: []metav1.Condition{{Type: "Recommended", Status: metav1.ConditionFalse, Reason: "Risk"}},
		}}
	}
	unevaluated := func(version string) []configv1.ConditionalUpdate {
		updates := risky(version)
		updates[0].Conditions[0].Status, updates[0].Conditions[0].Reason = metav1.ConditionUnknown, "EvaluationFailed"
		return updates
	}
	notUpgradeable := []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse}}
	for name, tc := range map[string]struct {
		status    configv1.ClusterVersionStatus
		patchOnly bool
		want      string
		excluded  []Exclusion
		unknown   string
	}{
		"none": {},
		"the highest, not the first": {
			status: configv1.ClusterVersionStatus{AvailableUpdates: offers("4.20.9", "4.21.2", "4.20.10")}, want: "4.21.2",
		},
		"patches only": {
			status: configv1.ClusterVersionStatus{AvailableUpdates: offers("4.20.9", "4.21.2", "4.20.10")}, patchOnly: true, want: "4.20.10",
			excluded: []Exclusion{{"4.21.2", "it is another minor version", false}},
		},
		"not upgradeable": {
			status: configv1.ClusterVersionStatus{AvailableUpdates: offers("4.20.9", "4.21.2"), Conditions: notUpgradeable}, want: "4.20.9",
			excluded: []Exclusion{{"4.21.2", "it is another minor version, and Upgradeable=False", false}},
		},
		"conditional": {
			status:   configv1.ClusterVersionStatus{AvailableUpdates: offers("4.20.9"), ConditionalUpdates: risky("4.20.10")},
			want:     "4.20.9",
			excluded: []Exclusion{{"4.20.10", "it has known risks", false}},
		},
		"available and conditional": {
			status:   configv1.ClusterVersionStatus{AvailableUpdates: offers("4.20.9", "4.20.10"), ConditionalUpdates: risky("4.20.10")},
			want:     "4.20.9",
			excluded: []Exclusion{{"4.20.10", "it has known risks", false}},
		},
		"not evaluated yet": {
			status:   configv1.ClusterVersionStatus{AvailableUpdates: offers("4.20.9"), ConditionalUpdates: unevaluated("4.20.10")},
			want:     "4.20.9",
			excluded: []Exclusion{{"4.20.10", "it is not known yet whether its risks apply", true}},
		},
		"nothing but one not evaluated yet": {
			status:   configv1.ClusterVersionStatus{ConditionalUpdates: unevaluated("4.20.10")},
			excluded: []Exclusion{{"4.20.10", "it is not known yet whether its risks apply", true}},
			unknown:  "4.20.10 (it is not known yet whether its risks apply)",
		},
		"another minor version, not evaluated yet": {
			status: configv1.ClusterVersionStatus{ConditionalUpdates: unevaluated("4.21.2")}, patchOnly: true,
			excluded: []Exclusion{{"4.21.2", "it is another minor version", false}},
		},
		"unknown whether it is upgradeable": {
			status: configv1.ClusterVersionStatus{AvailableUpdates: offers("4.21.2"), Conditions: []configv1.ClusterOperatorStatusCondition{
				{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionUnknown, Reason: "Timeout"},
			}},
			excluded: []Exclusion{{"4.21.2", "it is another minor version, and Upgradeable=Unknown: Timeout", true}},
			unknown:  "4.21.2 (it is another minor version, and Upgradeable=Unknown: Timeout)",
		},
		"two images": {
			status:   configv1.ClusterVersionStatus{AvailableUpdates: append(offers("4.20.9"), configv1.Release{Version: "4.20.9", Image: "quay.io/release@sha256:other"})},
			excluded: []Exclusion{{"4.20.9", "several images are offered", false}},
		},
		"installed, earlier, and malformed": {status: configv1.ClusterVersionStatus{AvailableUpdates: offers("4.20.5", "4.20.4", "latest")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.status.History = []configv1.UpdateHistory{{Version: "4.20.5", State: configv1.CompletedUpdate}}
			got := VersionOf(&configv1.ClusterVersion{Status: tc.status}).NewestUpdate(tc.patchOnly)
			want := Newest{Excluded: tc.excluded}
			if tc.want != "" {
				want.Release = Release{Version: tc.want, Image: "quay.io/release@sha256:" + tc.want}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := got.Unknown(); got != tc.unknown {
				t.Errorf("unknown because %q, want %q", got, tc.unknown)
			}
		})
	}
}

func TestNewestUpdate_during_an_update(t *testing.T) {
	t.Parallel()
	version := &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{
		History: []configv1.UpdateHistory{
			{Version: "4.21.0", State: configv1.PartialUpdate}, {Version: "4.20.5", State: configv1.CompletedUpdate},
		},
		AvailableUpdates: []configv1.Release{{Version: "4.20.9"}, {Version: "4.21.1"}},
	}}
	if got := VersionOf(version).NewestUpdate(true).Release.Version; got != "4.21.1" {
		t.Errorf("got %q: the update follows the release that is being installed", got)
	}
}

func TestNewestOnceAcknowledged(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{"AdminAckRequired": "4.21.1", "MultipleReasons": "4.20.9"} {
		version := VersionOf(&configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{
			History:          []configv1.UpdateHistory{{Version: "4.20.5", State: configv1.CompletedUpdate}},
			AvailableUpdates: []configv1.Release{{Version: "4.20.9"}, {Version: "4.21.1"}},
			Conditions:       []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorUpgradeable, Status: configv1.ConditionFalse, Reason: reason}},
		}})
		if got := version.NewestOnceAcknowledged().Release.Version; got != want {
			t.Errorf("%s: got %q, want %q", reason, got, want)
		}
		if got := version.NewestUpdate(false).Release.Version; got != "4.20.9" {
			t.Errorf("%s: without acknowledgments, got %q", reason, got)
		}
	}
}

func TestUpdatesUnknown(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Condition{
		"": {Status: "True"},
		"the cluster version operator has not reported them yet": {},
		"RemoteFailed: unreachable":                              {Status: "False", Reason: "RemoteFailed", Message: "unreachable"},
	} {
		if got := (Version{RetrievedUpdates: c}).UpdatesUnknown(); got != want {
			t.Errorf("%+v: got %q, want %q", c, got, want)
		}
	}
	if got := (Version{RetrievedUpdates: Condition{Status: "False", Reason: "NoChannel"}}).UpdatesUnknown(); got != "" {
		t.Errorf("without a channel: got %q", got)
	}
}

func TestIsLater(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]bool{
		{"4.20.10", "4.20.9"}: true, {"4.20.9", "4.20.10"}: false, {"4.20.9", "4.20.9"}: false, {"x", "4.20.9"}: false, {"4.20.9", "x"}: false,
	} {
		if got := IsLater(pair[0], pair[1]); got != want {
			t.Errorf("%s after %s: %t", pair[0], pair[1], got)
		}
	}
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const (
	image445 = "quay.io/openshift-release-dev/ocp-release@sha256:445"
	image446 = "quay.io/openshift-release-dev/ocp-release@sha256:446"
)

func entry(version, image string, state configv1.UpdateState) configv1.UpdateHistory {
	return configv1.UpdateHistory{Version: version, Image: image, State: state}
}

func TestVersionOf(t *testing.T) {
	t.Parallel()
	request := func(version, image string) *clusterstate.UpdateRequest {
		return &clusterstate.UpdateRequest{Release: clusterstate.Release{Version: version, Image: image}}
	}
	cases := map[string]struct {
		version configv1.ClusterVersion
		want    clusterstate.Version
	}{
		"empty object": {
			want: clusterstate.Version{Observed: true},
		},
		"what is installed is the newest completed entry, not the newest one": {
			version: configv1.ClusterVersion{
				Spec: configv1.ClusterVersionSpec{Channel: "fast-4.4", DesiredUpdate: &configv1.Update{Version: "4.4.6"}},
				Status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{
					entry("4.4.6", image446, configv1.PartialUpdate),
					entry("4.4.5", image445, configv1.CompletedUpdate),
					entry("4.4.4", "", configv1.CompletedUpdate),
				}},
			},
			want: clusterstate.Version{
				Installed: "4.4.5", Current: clusterstate.Release{Version: "4.4.6", Image: image446},
				Requested: request("4.4.6", ""), Channel: "fast-4.4", Observed: true,
			},
		},
		"history without states": {
			version: configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "4.4.6"}}}},
			want:    clusterstate.Version{Current: clusterstate.Release{Version: "4.4.6"}, Observed: true},
		},
		"a spec that is newer than the status is not observed": {
			version: configv1.ClusterVersion{
				ObjectMeta: metav1.ObjectMeta{Generation: 3},
				Status:     configv1.ClusterVersionStatus{ObservedGeneration: 2},
			},
		},
		"the channels of the current release are kept": {
			version: configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{Desired: configv1.Release{Channels: []string{"fast-4.4", "stable-4.4"}}}},
			want:    clusterstate.Version{Observed: true, CurrentChannels: []string{"fast-4.4", "stable-4.4"}},
		},
		"an empty request is none": {
			version: configv1.ClusterVersion{Spec: configv1.ClusterVersionSpec{DesiredUpdate: &configv1.Update{}}},
			want:    clusterstate.Version{Observed: true},
		},
		"a request for a check alone is none": {
			version: configv1.ClusterVersion{Spec: configv1.ClusterVersionSpec{
				DesiredUpdate: &configv1.Update{Version: "4.4.6", Mode: configv1.UpdateModePreflight},
			}},
			want: clusterstate.Version{Observed: true},
		},
		"the conditions that the cluster version operator sets are kept, and no others": {
			version: configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{Conditions: []configv1.ClusterOperatorStatusCondition{
				{Type: "Upgradeable", Status: "False", Reason: "U"},
				{Type: "Failing", Status: "True", Reason: "F", Message: "f"},
				{Type: "ReleaseAccepted", Status: "Unknown"},
				{Type: "Progressing", Status: "True", Message: "p"},
				{Type: "RetrievedUpdates", Status: "False", Message: "r"},
				{Type: "Invalid", Status: "True", Message: "i"},
				{Type: "Degraded", Status: "True", Message: "a ClusterVersion has no such condition"},
			}}},
			want: clusterstate.Version{
				Observed:         true,
				Upgradeable:      clusterstate.Condition{Status: "False", Reason: "U"},
				Failing:          clusterstate.Condition{Status: "True", Reason: "F", Message: "f"},
				ReleaseAccepted:  clusterstate.Condition{Status: "Unknown"},
				Progressing:      clusterstate.Condition{Status: "True", Message: "p"},
				RetrievedUpdates: clusterstate.Condition{Status: "False", Message: "r"},
				Invalid:          clusterstate.Condition{Status: "True", Message: "i"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := tc.version.DeepCopy()
			got := clusterstate.VersionOf(&tc.version)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(clusterstate.Version{}, clusterstate.UpdateRequest{}), cmpopts.IgnoreFields(clusterstate.Version{}, "Updates")); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, &tc.version); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}

func TestVersion_target_and_requests(t *testing.T) {
	t.Parallel()
	target := clusterstate.Target{Version: "4.4.6"}
	type answer struct {
		MovingTo, Awaits, TakenOver string
		Returned                    bool
	}
	cases := map[string]struct {
		history []configv1.UpdateHistory
		desired *configv1.Update
		want    answer
	}{
		"empty status": {},
		"at the target": {
			history: []configv1.UpdateHistory{entry("4.4.6", image446, configv1.CompletedUpdate)},
		},
		"at the target with an old request": {
			history: []configv1.UpdateHistory{entry("4.4.6", image446, configv1.CompletedUpdate)},
			desired: &configv1.Update{Version: "4.4.6"},
		},
		"to the target": {
			history: []configv1.UpdateHistory{entry("4.4.6", image446, configv1.PartialUpdate)},
			desired: &configv1.Update{Version: "4.4.6"},
			want:    answer{MovingTo: "4.4.6"},
		},
		"to the target, although the request is gone": {
			history: []configv1.UpdateHistory{entry("4.4.6", image446, configv1.PartialUpdate)},
			want:    answer{MovingTo: "4.4.6"},
		},
		"to another release": {
			history: []configv1.UpdateHistory{entry("4.4.7", "", configv1.PartialUpdate), entry("4.4.6", image446, configv1.PartialUpdate)},
			desired: &configv1.Update{Version: "4.4.7"},
			want:    answer{MovingTo: "4.4.7", TakenOver: "4.4.7"},
		},
		"to the target, with a request for another release": {
			history: []configv1.UpdateHistory{entry("4.4.6", image446, configv1.PartialUpdate)},
			desired: &configv1.Update{Version: "4.4.7", Image: "x@sha256:447"},
			want:    answer{MovingTo: "4.4.6", Awaits: "4.4.7"},
		},
		"to the target, requested by its image in a mirror": {
			history: []configv1.UpdateHistory{entry("4.4.6", image446, configv1.PartialUpdate)},
			desired: &configv1.Update{Image: "mirror.example.com/ocp@sha256:446"},
			want:    answer{MovingTo: "4.4.6"},
		},
		"to the target, with a request for another image": {
			history: []configv1.UpdateHistory{entry("4.4.6", image446, configv1.PartialUpdate)},
			desired: &configv1.Update{Image: image445},
			want:    answer{MovingTo: "4.4.6", Awaits: image445},
		},
		"back from the target": {
			history: []configv1.UpdateHistory{
				entry("4.4.5", image445, configv1.PartialUpdate), entry("4.4.6", image446, configv1.PartialUpdate), entry("4.4.5", image445, configv1.CompletedUpdate),
			},
			desired: &configv1.Update{Version: "4.4.5", Image: image445},
			want:    answer{MovingTo: "4.4.5", TakenOver: "4.4.5", Returned: true},
		},
		"before the target": {
			history: []configv1.UpdateHistory{entry("4.4.5", image445, configv1.CompletedUpdate), entry("4.4.4", "", configv1.CompletedUpdate)},
			want:    answer{TakenOver: "4.4.5"},
		},
		"target requested": {
			history: []configv1.UpdateHistory{entry("4.4.5", image445, configv1.CompletedUpdate)},
			desired: &configv1.Update{Version: "4.4.6", Image: image446},
			want:    answer{Awaits: "4.4.6", TakenOver: "4.4.5"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := clusterstate.VersionOf(&configv1.ClusterVersion{
				Spec:   configv1.ClusterVersionSpec{DesiredUpdate: tc.desired},
				Status: configv1.ClusterVersionStatus{History: tc.history},
			})
			format := func(release clusterstate.Release, ok bool) string {
				if !ok {
					return ""
				}
				return release.String()
			}
			got := answer{
				MovingTo: format(facts.UpdatingTo()),
				Awaits:   format(facts.PendingRequest()),
			}
			other, returned, superseded := facts.SupersededBy(target)
			got.TakenOver, got.Returned = format(other, superseded), returned
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestVersion_pending_architecture(t *testing.T) {
	t.Parallel()
	multi := &configv1.Update{Version: "4.4.6", Architecture: configv1.ClusterVersionArchitectureMulti}
	for name, tc := range map[string]struct {
		desired  *configv1.Update
		current  configv1.ClusterVersionArchitecture
		observed int64
		refused  bool
		want     string
	}{
		"no architecture is requested":                   {desired: &configv1.Update{Version: "4.4.6"}, observed: 1},
		"another architecture is requested":              {desired: multi, want: "4.4.6 for architecture Multi"},
		"another architecture is requested and rejected": {desired: multi, observed: 2, refused: true, want: "4.4.6 for architecture Multi"},
		"the cluster has the requested architecture":     {desired: multi, current: configv1.ClusterVersionArchitectureMulti},
		"an old operator has accepted the request":       {desired: multi, observed: 2},
		"the architecture of another version is next":    {desired: &configv1.Update{Version: "4.4.7", Architecture: configv1.ClusterVersionArchitectureMulti}, want: "4.4.7 for architecture Multi"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			version.Spec.DesiredUpdate = tc.desired
			version.Status.ObservedGeneration = tc.observed
			version.Status.Desired = configv1.Release{Version: "4.4.6", Architecture: tc.current}
			version.Status.History = []configv1.UpdateHistory{entry("4.4.6", image446, configv1.CompletedUpdate)}
			if tc.refused {
				version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: "ReleaseAccepted", Status: "False"}}
			}
			facts := clusterstate.VersionOf(version)
			got, pending := facts.PendingRequest()
			if pending != (tc.want != "") || pending && got.String() != tc.want {
				t.Errorf("got %q, %t, want %q", got, pending, tc.want)
			}
		})
	}
}

func TestVersion_refusal(t *testing.T) {
	t.Parallel()
	notAccepted := func(message string) configv1.ClusterOperatorStatusCondition {
		return configv1.ClusterOperatorStatusCondition{Type: "ReleaseAccepted", Status: "False", Reason: "RetrievePayload", Message: message}
	}
	cases := map[string]struct {
		condition  configv1.ClusterOperatorStatusCondition
		unobserved bool
		want       string
	}{
		"no reason and no message":    {},
		"the release is loaded":       {condition: configv1.ClusterOperatorStatusCondition{Type: "ReleaseAccepted", Status: "True"}},
		"acceptance unknown":          {condition: configv1.ClusterOperatorStatusCondition{Type: "ReleaseAccepted", Status: "Unknown", Message: `Retrieving version="4.4.6"`}},
		"the target is rejected":      {condition: notAccepted(`Retrieving payload failed version="4.4.6" image="x"`), want: `Retrieving payload failed version="4.4.6" image="x"`},
		"another release is rejected": {condition: notAccepted(`Retrieving payload failed version="4.4.5" image="x"`)},
		"the target is rejected, with an outdated status": {
			condition: notAccepted(`Retrieving payload failed version="4.4.6"`), unobserved: true,
			want: `Retrieving payload failed version="4.4.6"`,
		},
		"a version with the target as its prefix is rejected": {condition: notAccepted(`failed version="4.4.60"`)},
		"unnamed release is rejected, request observed": {
			condition: notAccepted("it is not signed"), want: "it is not signed",
		},
		"unnamed release is rejected, request not observed": {
			condition: notAccepted("it is not signed"), unobserved: true,
		},
		"rejection without a message": {condition: notAccepted(""), want: "RetrievePayload"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version := configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			version.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.6"}
			version.Status.ObservedGeneration = 2
			if tc.unobserved {
				version.Status.ObservedGeneration = 1
			}
			if tc.condition.Type != "" {
				version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{tc.condition}
			}
			got, rejected := clusterstate.VersionOf(&version).Refusal()
			if rejected != (tc.want != "") || rejected && got != tc.want {
				t.Errorf("got %q, refused: %t, want %q", got, rejected, tc.want)
			}
		})
	}
}

func TestRelease_matches_target(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		release clusterstate.Release
		target  clusterstate.Target
		want    bool
	}{
		"by its version":                      {clusterstate.Release{Version: "4.4.6"}, clusterstate.Target{Version: "4.4.6"}, true},
		"not by another version":              {clusterstate.Release{Version: "4.4.60"}, clusterstate.Target{Version: "4.4.6"}, false},
		"not by no version at all":            {clusterstate.Release{}, clusterstate.Target{}, false},
		"by its version if no image is known": {clusterstate.Release{Version: "4.4.6"}, clusterstate.Target{Version: "4.4.6", Image: image446}, true},
		"by the digest, wherever it comes from": {
			clusterstate.Release{Version: "4.4.6", Image: "mirror.example.com/ocp@sha256:446"}, clusterstate.Target{Version: "4.4.6", Image: image446}, true,
		},
		"not with another digest": {clusterstate.Release{Version: "4.4.6", Image: image445}, clusterstate.Target{Version: "4.4.6", Image: image446}, false},
		"not with another tag":    {clusterstate.Release{Version: "4.4.6", Image: "a:1"}, clusterstate.Target{Version: "4.4.6", Image: "a:2"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.release.Matches(tc.target); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestReads_name_what_failed(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection was refused")
	r := simulation.WithReadErrors(simulation.NewFakeClient(t), broken, func(any) bool { return true })
	for name, read := range map[string]func(context.Context) error{
		"getting the cluster version": func(ctx context.Context) error { _, err := clusterstate.GetClusterVersion(ctx, r); return err },
		"listing the cluster operators": func(ctx context.Context) error {
			_, err := clusterstate.ListClusterOperators(ctx, r)
			return err
		},
		"listing the machine config pools": func(ctx context.Context) error { _, err := clusterstate.ListPools(ctx, r); return err },
		"listing the nodes":                func(ctx context.Context) error { _, err := clusterstate.ListNodes(ctx, r); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := read(t.Context())
			if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), name+": ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

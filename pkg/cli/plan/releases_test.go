// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// runOnVersion runs a command on a cluster that only has a ClusterVersion. It returns the output, the
// ClusterVersion after the command, and the error.
func runOnVersion(t *testing.T, change func(*configv1.ClusterVersion), args ...string) (string, *configv1.ClusterVersion, error) {
	t.Helper()
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version", Generation: 2}}
	version.Spec.Channel = "stable-4.20"
	version.Status = configv1.ClusterVersionStatus{
		ObservedGeneration: 2, Desired: configv1.Release{Version: "4.20.6", Image: "image-6", Channels: []string{"fast-4.20", "stable-4.20"}},
		History:    []configv1.UpdateHistory{{State: configv1.CompletedUpdate, Version: "4.20.6", Image: "image-6", StartedTime: metav1.NewTime(clitest.Now), CompletionTime: new(metav1.NewTime(clitest.Now))}},
		Conditions: []configv1.ClusterOperatorStatusCondition{{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue}},
	}
	for _, release := range []string{"4.20.7", "4.20.8", "4.20.9", "4.21.1"} {
		version.Status.AvailableUpdates = append(version.Status.AvailableUpdates, configv1.Release{Version: release, Image: "image-" + release})
	}
	version.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{
		Release:    configv1.Release{Version: "4.21.2", Image: "image-4.21.2"},
		Risks:      []configv1.ConditionalUpdateRisk{{Name: "SlowDisks", Message: "disks are slow", URL: "https://example.com"}},
		Conditions: []metav1.Condition{{Type: "Recommended", Status: metav1.ConditionFalse, Reason: "SlowDisks"}},
	}}
	change(version)
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(version).Build()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	p := session.New(session.Environment{Program: "/usr/bin/oc-update", Clock: clocktesting.NewFakeClock(clitest.Now), Streams: streams, Terminal: &screen.Terminal{}})
	p.Cluster = &session.Cluster{Reader: c, Client: c, Clock: session.FixedClock(clitest.Now)}
	root := session.NewRoot(p, NewReleasesCommand(p), NewChannelCommand(p), NewClearCommand(p))
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	after := &configv1.ClusterVersion{}
	if err := c.Get(t.Context(), clusterstate.VersionKey, after); err != nil {
		t.Fatal(err)
	}
	return out.String(), after, err
}

func TestReleases(t *testing.T) {
	t.Parallel()
	unchanged := func(*configv1.ClusterVersion) {}
	for name, tc := range map[string]struct {
		args   string
		change func(*configv1.ClusterVersion)
		want   []string
		not    string
	}{
		"two newest of each minor version": {"releases", unchanged, []string{
			"Installed: 4.20.6. Channel: stable-4.20.", "4.21.2 conditional SlowDisks", "4.21.1 recommended -", "4.20.9 recommended -", "4.20.8 recommended -",
			"1 older release is not listed: oc update releases --all",
		}, "4.20.7"},
		"all": {"releases --all", unchanged, []string{"4.20.7 recommended -"}, "not listed"},
		"none": {"releases", func(v *configv1.ClusterVersion) {
			v.Status.AvailableUpdates, v.Status.ConditionalUpdates = nil, nil
		}, []string{"No release is offered. Select another channel with: oc update channel NAME"}, "RELEASE"},
		"unknown": {"releases", func(v *configv1.ClusterVersion) {
			v.Status.Conditions[0].Status, v.Status.Conditions[0].Message = configv1.ConditionFalse, "the update service does not answer"
		}, []string{"It is unknown which releases are offered:", "the update service does not answer"}, "RELEASE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := runOnVersion(t, tc.change, strings.Fields(tc.args)...)
			if err != nil {
				t.Fatal(err)
			}
			words := strings.Join(strings.Fields(out), " ")
			for _, want := range tc.want {
				if !strings.Contains(words, want) {
					t.Errorf("printed:\n%s\nwant %q", out, want)
				}
			}
			if strings.Contains(out, tc.not) {
				t.Errorf("printed:\n%s\nwant no %q", out, tc.not)
			}
		})
	}
}

func TestClear(t *testing.T) {
	t.Parallel()
	request := func(v *configv1.ClusterVersion) { v.Spec.DesiredUpdate = &configv1.Update{Version: "4.20.8"} }
	for name, tc := range map[string]struct {
		change func(*configv1.ClusterVersion)
		prints string
		err    string
	}{
		"not observed yet": {func(v *configv1.ClusterVersion) { request(v); v.Generation = 3 }, "The request for 4.20.8 was withdrawn\n", ""},
		"refused": {func(v *configv1.ClusterVersion) {
			request(v)
			v.Status.Conditions = append(v.Status.Conditions, configv1.ClusterOperatorStatusCondition{
				Type: "ReleaseAccepted", Status: configv1.ConditionFalse, Message: "Preconditions failed for payload loaded version=\"4.20.8\"",
			})
		}, "The request for 4.20.8 was withdrawn\n", ""},
		"none": {func(*configv1.ClusterVersion) {}, "No update is requested.\n", ""},
		"begun": {func(v *configv1.ClusterVersion) {
			request(v)
			v.Status.Desired = configv1.Release{Version: "4.20.8", Image: "image-4.20.8"}
			v.Status.History = append([]configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: "4.20.8", Image: "image-4.20.8", StartedTime: metav1.NewTime(clitest.Now)}}, v.Status.History...)
		}, "", "not withdrawn: the update to 4.20.8 has begun, and cannot be stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, after, err := runOnVersion(t, tc.change, "clear", "-y")
			if out != tc.prints || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("printed %q, error %v; want %q, %q", out, err, tc.prints, tc.err)
			}
			if stands := after.Spec.DesiredUpdate != nil; stands != (tc.err != "") {
				t.Errorf("the request stands: %t", stands)
			}
		})
	}
}

func TestChannel(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"channel":                "Channel: stable-4.20. Channels with 4.20.6: fast-4.20, stable-4.20.\n",
		"channel -y fast-4.20":   "channel fast-4.20 was selected\n",
		"channel -y stable-4.20": "channel stable-4.20 is selected already\n",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			out, after, err := runOnVersion(t, func(*configv1.ClusterVersion) {}, strings.Fields(args)...)
			if err != nil || out != want {
				t.Errorf("printed %q, error %v, want %q", out, err, want)
			}
			if fast := strings.Contains(args, "fast"); fast != (after.Spec.Channel == "fast-4.20") {
				t.Errorf("channel %s", after.Spec.Channel)
			}
		})
	}
}

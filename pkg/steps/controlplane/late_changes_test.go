// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
)

// requested are the channels of an attempt whose spec requested stable-4.4 before.
var requested = []string{"stable-4.4", "fast-4.4"}

func releaseInChannels(channels ...string) change {
	return func(v *configv1.ClusterVersion) { v.Status.Desired.Channels = channels }
}

func TestKeepChannel(t *testing.T) {
	t.Parallel()
	nothing := stepResult{Outcome: "done", Reason: "Done", Message: "there is no channel to set"}
	runCases(t, map[string]testCase{
		"channel of the spec":                           {version: at(), want: nothing},
		"channel of another client":                     {version: at(channel("candidate-4.4")), want: nothing},
		"earlier channel of the spec, target commenced": {version: at(channel("stable-4.4"), updating("4.4.6")), want: nothing},
		"earlier channel of the spec, new one without the current release": {
			version: at(channel("stable-4.4"), releaseInChannels("stable-4.4")), want: nothing,
		},
		"earlier channel of the spec": {version: at(channel("stable-4.4")), want: stepResult{
			Outcome: "waiting", Reason: "ChannelSet", Message: "set the channel to fast-4.4; waiting for the cluster version operator to observe it",
			Patch: `{"spec":{"channel":"fast-4.4"}}`,
		}},
	}, func(c client.Client, to clusterstate.Target) engine.UpgradeStep {
		return controlplane.KeepChannel(c, to, requested)
	})
}

func TestUpdateAvailable_in_another_channel(t *testing.T) {
	t.Parallel()
	available := stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel fast-4.4"}
	runCases(t, map[string]testCase{
		"new channel":                         {version: at(), want: available},
		"new channel, observed by its offers": {version: at(unobserved, inChannels("fast-4.4")), want: available},
		"new channel, not observed": {version: at(unobserved), want: stepResult{
			Outcome: "waiting", Reason: "ChannelSet", Message: "waiting for the cluster version operator to observe channel fast-4.4",
		}},
		"earlier channel": {version: at(channel("stable-4.4")), want: stepResult{
			Outcome: "waiting", Reason: "ChannelSet", Message: "spec.desired.channel has changed; the channel is being set to fast-4.4",
		}},
		"earlier channel, new one without the current release": {
			version: at(channel("stable-4.4"), releaseInChannels("stable-4.4")),
			want: stepResult{
				Outcome: "waiting", Reason: "VersionNotInChannel",
				Message: "channel fast-4.4 offers no update from the current release 4.4.5, which is in stable-4.4",
			},
		},
		"channel of another client": {version: at(channel("candidate-4.4"), noUpdates), want: stepResult{
			Outcome: "waiting", Reason: "VersionNotOffered",
			Message: "another client has changed the channel from fast-4.4; 4.4.6 is not offered in channel candidate-4.4, which offers no update",
		}},
	}, func(c client.Client, to clusterstate.Target) engine.UpgradeStep {
		return controlplane.UpdateAvailable(c, to, requested)
	})
}

// channelManager adds a field manager that owns the channel.
func channelManager(name string) change {
	return func(v *configv1.ClusterVersion) {
		v.ManagedFields = append(v.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: name, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: configv1.GroupVersion.String(),
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:channel":{}}}`)},
		})
	}
}

func TestRestoreChannel_requested_channels(t *testing.T) {
	t.Parallel()
	restored := stepResult{Outcome: "done", Reason: "Done", Message: "restored channel eus-4.4", Patch: `{"spec":{"channel":"eus-4.4"}}`}
	runCases(t, map[string]testCase{
		"earlier channel of the spec":              {version: at(channel("stable-4.4")), want: restored},
		"channel of the spec":                      {version: at(), want: restored},
		"channel of the spec, set by the operator": {version: at(channelManager(clusterstate.FieldManager)), want: restored},
		"channel of the spec, set by another client": {version: at(channelManager("kubectl-patch")), want: stepResult{
			Outcome: "skipped", Reason: "NothingToRestore", Message: "the channel is fast-4.4, which this upgrade has not set",
		}},
		"channel of the spec, set by the operator and applied by another client": {version: at(channelManager(clusterstate.FieldManager), channelManager("gitops")), want: stepResult{
			Outcome: "skipped", Reason: "NothingToRestore", Message: "the channel is fast-4.4, which this upgrade has not set",
		}},
		"channel of another client": {version: at(channel("candidate-4.4")), want: stepResult{
			Outcome: "skipped", Reason: "NothingToRestore", Message: "the channel is candidate-4.4, which this upgrade has not set",
		}},
	}, func(c client.Client, to clusterstate.Target) engine.UpgradeStep {
		return controlplane.RestoreChannel(c, c, to, new("eus-4.4"), requested...)
	})
}

// asRequested is the step in an upgrade that has made a request.
func asRequested(step engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		run.Requested = true
		return step(ctx, run)
	}
}

func TestWithdrawOutdatedRequest(t *testing.T) {
	t.Parallel()
	nothing := stepResult{Outcome: "done", Reason: "Done", Message: "there is no outdated request"}
	withdrawn := func(patch string) stepResult {
		return stepResult{Outcome: "done", Reason: "Done", Message: "withdrew 4.4.6, which the cluster version operator had not begun to install", Patch: patch}
	}
	all := `{"spec":{"desiredUpdate":null}}`
	runCases(t, map[string]testCase{
		"no request":                 {version: at(), want: nothing},
		"request as in the spec":     {version: at(desired("4.4.6")), want: nothing},
		"request of another version": {version: at(desired("4.4.7")), want: nothing},
		"request of another image":   {version: at(desiredImage(other446)), target: &clusterstate.Target{Version: "4.4.6", Image: image446}, want: withdrawn(all)},
		"request without an image, another one in the spec": {
			version: at(desired("4.4.6")), target: &clusterstate.Target{Version: "4.4.6", Image: other446}, want: withdrawn(all),
		},
		"request of another image that is being installed": {
			version: at(desiredImage(other446), updating("4.4.6")), target: &clusterstate.Target{Version: "4.4.6", Image: image446}, want: nothing,
		},
		"request whose risk is accepted": {
			version: at(desiredImage(image446), updateWithRisks("SlowBoot")), target: &clusterstate.Target{Version: "4.4.6", AcceptedRisks: []string{"SlowBoot"}}, want: nothing,
		},
		"request whose risk is not accepted": {version: at(desiredImage(image446), updateWithRisks("SlowBoot")), want: withdrawn(all)},
	}, func(c client.Client, to clusterstate.Target) engine.UpgradeStep {
		return asRequested(controlplane.WithdrawOutdatedRequest(c, to))
	})
}

// TestWithdrawOutdatedRequest_of_another_client checks that a request stays that this upgrade has not
// made.
func TestWithdrawOutdatedRequest_of_another_client(t *testing.T) {
	t.Parallel()
	r := testCluster(t, nil, at(desiredImage(other446)))
	got, err := callStep(t, r, controlplane.WithdrawOutdatedRequest(r, clusterstate.Target{Version: "4.4.6", Image: image446}))
	if err != nil || got.Patch != "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNoOtherUpdate_messages(t *testing.T) {
	t.Parallel()
	runCases(t, map[string]testCase{
		"request of the version with another image": {
			version: at(desiredImage(other446)), target: &clusterstate.Target{Version: "4.4.6", Image: image446},
			want: stepResult{
				Outcome: "waiting", Reason: "AnotherUpdateInProgress",
				Message: "spec.desiredUpdate of the ClusterVersion requests 4.4.6 with image " + other446 + ", and it is not installed yet",
			},
		},
		"request of the installed version for another architecture": {
			version: at(func(v *configv1.ClusterVersion) {
				v.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.5", Architecture: configv1.ClusterVersionArchitectureMulti}
				v.Generation = 4
			}),
			want: stepResult{
				Outcome: "waiting", Reason: "AnotherUpdateInProgress",
				Message: "another client has requested 4.4.5 for architecture Multi in spec.desiredUpdate of the ClusterVersion, and it is not installed yet",
			},
		},
	}, withReader(controlplane.NoOtherUpdate))
}

func TestNotRequestedByOther(t *testing.T) {
	t.Parallel()
	none := stepResult{Outcome: "done", Reason: "Done", Message: "no other client has requested 4.4.6"}
	runCases(t, map[string]testCase{
		"no request":                    {version: at(), want: none},
		"request of another version":    {version: at(desired("4.4.7")), want: none},
		"the target is being installed": {version: at(desired("4.4.6"), updating("4.4.6")), want: none},
		"request of the target": {
			version: at(desired("4.4.6")),
			want: stepResult{
				Outcome: "waiting", Reason: "AnotherUpdateInProgress",
				Message: "another client has requested 4.4.6 in spec.desiredUpdate of the ClusterVersion, and it is not installed yet",
			},
		},
		"request of the target, which is refused": {
			version: at(desired("4.4.6"), unobserved, condition("ReleaseAccepted", "False", "RetrievePayload", `version="4.4.6" is not signed`)),
			want: stepResult{
				Outcome: "waiting", Reason: "AnotherUpdateInProgress",
				Message: `another client has requested 4.4.6 in spec.desiredUpdate of the ClusterVersion, and the cluster version operator refuses it: version="4.4.6" is not signed`,
			},
		},
	}, withReader(controlplane.NotRequestedByOther))
}

// TestNotRequestedByOther_own_request checks that a request of this attempt is not that of another
// client.
func TestNotRequestedByOther_own_request(t *testing.T) {
	t.Parallel()
	r := testCluster(t, nil, at(desired("4.4.6")))
	result, err := controlplane.NotRequestedByOther(r, target)(t.Context(), engine.Run{Requested: true})
	if err != nil || !result.Passed() {
		t.Errorf("%s: %s, %v; want that it passes", result.Reason(), result.Message(), err)
	}
}

// TestNoOtherUpdate_malformed_installed_version checks that the message blames the ClusterVersion.
func TestNoOtherUpdate_malformed_installed_version(t *testing.T) {
	t.Parallel()
	r := testCluster(t, nil, at(func(v *configv1.ClusterVersion) { v.Status.History[0].Version = "four" }))
	_, err := callStep(t, r, controlplane.NoOtherUpdate(r, target))
	if err == nil || !strings.Contains(err.Error(), `the installed version "four" in the history of the ClusterVersion is malformed`) {
		t.Errorf("got %v", err)
	}
}

func TestKeepChannel_while_the_step_may_not_act(t *testing.T) {
	t.Parallel()
	want := stepResult{Outcome: "done", Reason: "Done", Message: "the channel is left alone while the step may not act"}
	runCases(t, map[string]testCase{"earlier channel of the spec": {version: at(channel("stable-4.4")), want: want}},
		func(c client.Client, to clusterstate.Target) engine.UpgradeStep {
			return func(ctx context.Context, run engine.Run) (engine.Result, error) {
				run.Blocked = true
				return controlplane.KeepChannel(c, to, requested)(ctx, run)
			}
		})
}

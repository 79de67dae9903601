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

// requested lists the channels of an attempt whose spec requested stable-4.4 before.
var requested = []string{"stable-4.4", "fast-4.4"}

func releaseInChannels(channels ...string) change {
	return func(v *configv1.ClusterVersion) { v.Status.Desired.Channels = channels }
}

func TestKeepChannel(t *testing.T) {
	t.Parallel()
	runCases(t, map[string]testCase{
		"channel of the spec":                           {version: at(), want: done},
		"channel of another client":                     {version: at(channel("candidate-4.4")), want: done},
		"earlier channel of the spec, target commenced": {version: at(channel("stable-4.4"), updating("4.4.6")), want: done},
		"earlier channel of the spec, new one without the current release": {
			version: at(channel("stable-4.4"), releaseInChannels("stable-4.4")), want: done,
		},
		"earlier channel of the spec": {version: at(channel("stable-4.4")), want: stepResult{Outcome: "waiting", Reason: "ChannelSet", Patch: `{"spec":{"channel":"fast-4.4"}}`}},
	}, func(c client.Client, to clusterstate.Target) engine.UpgradeStep {
		return controlplane.KeepChannel(c, to, requested)
	})
}

func TestUpdateAvailable_in_another_channel(t *testing.T) {
	t.Parallel()
	runCases(t, map[string]testCase{
		"new channel":                                          {version: at(), want: done},
		"new channel, observed by its offers":                  {version: at(unobserved, inChannels("fast-4.4")), want: done},
		"new channel, not observed":                            {version: at(unobserved), want: stepResult{Outcome: "waiting", Reason: "ChannelSet"}},
		"earlier channel":                                      {version: at(channel("stable-4.4")), want: stepResult{Outcome: "waiting", Reason: "ChannelSet"}},
		"earlier channel, new one without the current release": {version: at(channel("stable-4.4"), releaseInChannels("stable-4.4")), want: stepResult{Outcome: "waiting", Reason: "VersionNotInChannel"}},
		"channel of another client":                            {version: at(channel("candidate-4.4"), noUpdates), want: stepResult{Outcome: "waiting", Reason: "VersionNotOffered"}},
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
	restored := stepResult{Outcome: "done", Reason: "Done", Patch: `{"spec":{"channel":"eus-4.4"}}`}
	runCases(t, map[string]testCase{
		"earlier channel of the spec":                                            {version: at(channel("stable-4.4")), want: restored},
		"channel of the spec":                                                    {version: at(), want: restored},
		"channel of the spec, set by the operator":                               {version: at(channelManager(clusterstate.FieldManager)), want: restored},
		"channel of the spec, set by another client":                             {version: at(channelManager("kubectl-patch")), want: stepResult{Outcome: "skipped", Reason: "NothingToRestore"}},
		"channel of the spec, set by the operator and applied by another client": {version: at(channelManager(clusterstate.FieldManager), channelManager("gitops")), want: stepResult{Outcome: "skipped", Reason: "NothingToRestore"}},
		"channel of another client":                                              {version: at(channel("candidate-4.4")), want: stepResult{Outcome: "skipped", Reason: "NothingToRestore"}},
	}, func(c client.Client, to clusterstate.Target) engine.UpgradeStep {
		return controlplane.RestoreChannel(c, c, to, new("eus-4.4"), requested...)
	})
}

// asRequested returns the step in an upgrade that has made a request.
func asRequested(step engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		run.Requested = true
		return step(ctx, run)
	}
}

func TestWithdrawOutdatedRequest(t *testing.T) {
	t.Parallel()
	withdrawn := func(patch string) stepResult {
		return stepResult{Outcome: "done", Reason: "Done", Patch: patch}
	}
	all := `{"spec":{"desiredUpdate":null}}`
	runCases(t, map[string]testCase{
		"no request":                 {version: at(), want: done},
		"request as in the spec":     {version: at(desired("4.4.6")), want: done},
		"request of another version": {version: at(desired("4.4.7")), want: done},
		"request of another image":   {version: at(desiredImage(other446)), target: &clusterstate.Target{Version: "4.4.6", Image: image446}, want: withdrawn(all)},
		"request without an image, another one in the spec": {
			version: at(desired("4.4.6")), target: &clusterstate.Target{Version: "4.4.6", Image: other446}, want: withdrawn(all),
		},
		"request of another image that is being installed": {
			version: at(desiredImage(other446), updating("4.4.6")), target: &clusterstate.Target{Version: "4.4.6", Image: image446}, want: done,
		},
		"request whose risk is accepted": {
			version: at(desiredImage(image446), updateWithRisks("SlowBoot")), target: &clusterstate.Target{Version: "4.4.6", AcceptedRisks: []string{"SlowBoot"}}, want: done,
		},
		"request whose risk is not accepted": {version: at(desiredImage(image446), updateWithRisks("SlowBoot")), want: withdrawn(all)},
	}, func(c client.Client, to clusterstate.Target) engine.UpgradeStep {
		return asRequested(controlplane.WithdrawOutdatedRequest(c, c, to))
	})
}

// TestWithdrawOutdatedRequest_of_another_client checks that a request of another client is kept.
func TestWithdrawOutdatedRequest_of_another_client(t *testing.T) {
	t.Parallel()
	r := testCluster(t, nil, at(desiredImage(other446)))
	got, _, err := callStep(t, r, controlplane.WithdrawOutdatedRequest(r, r, clusterstate.Target{Version: "4.4.6", Image: image446}))
	if err != nil || got.Patch != "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNoOtherUpdate_messages(t *testing.T) {
	t.Parallel()
	runCases(t, map[string]testCase{
		"request of the version with another image": {
			version: at(desiredImage(other446)), target: &clusterstate.Target{Version: "4.4.6", Image: image446},
			want: stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress"},
		},
		"request of the installed version for another architecture": {
			version: at(func(v *configv1.ClusterVersion) {
				v.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.5", Architecture: configv1.ClusterVersionArchitectureMulti}
				v.Generation = 4
			}),
			want: stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress"},
		},
	}, withReader(controlplane.NoOtherUpdate))
}

func TestNotRequestedByOther(t *testing.T) {
	t.Parallel()
	runCases(t, map[string]testCase{
		"no request":                    {version: at(), want: done},
		"request of another version":    {version: at(desired("4.4.7")), want: done},
		"the target is being installed": {version: at(desired("4.4.6"), updating("4.4.6")), want: done},
		"request of the target":         {version: at(desired("4.4.6")), want: stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress"}},
		"request of the target, which is refused": {
			version: at(desired("4.4.6"), unobserved, condition("ReleaseAccepted", "False", "RetrievePayload", `version="4.4.6" is not signed`)),
			want:    stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress"},
		},
		"request of the target, which is ignored": {version: at(desired("4.4.6"), noUpdates), want: done},
		"request of the target by force": {
			version: at(func(v *configv1.ClusterVersion) {
				v.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.6", Image: image446, Force: true}
			}),
			want: stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress"},
		},
	}, withReader(controlplane.NotRequestedByOther))
}

// TestNotRequestedByOther_own_request checks that this attempt's own request is not attributed to
// another client.
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
	_, _, err := callStep(t, r, controlplane.NoOtherUpdate(r, target))
	if err == nil || !strings.Contains(err.Error(), `the installed version "four" in the history of the ClusterVersion is malformed`) {
		t.Errorf("got %v", err)
	}
}

func TestKeepChannel_while_the_step_may_not_act(t *testing.T) {
	t.Parallel()
	runCases(t, map[string]testCase{"earlier channel of the spec": {version: at(channel("stable-4.4")), want: done}},
		func(c client.Client, to clusterstate.Target) engine.UpgradeStep {
			return func(ctx context.Context, run engine.Run) (engine.Result, error) {
				run.Blocked = true
				return controlplane.KeepChannel(c, to, requested)(ctx, run)
			}
		})
}

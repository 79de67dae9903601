// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"maps"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
)

// availableCases are shared by the gate and the step that sets the channel.
var availableCases = map[string]testCase{
	"it is offered": {
		version: at(),
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel fast-4.4"},
	},
	"it is not offered": {
		version: at(noUpdates),
		want:    stepResult{Outcome: "waiting", Reason: "VersionNotOffered", Message: "4.4.6 is not offered in channel fast-4.4, which offers no update"},
	},
	"no update available": {
		version: at(noUpdates, condition("RetrievedUpdates", "False", "RemoteFailed", "no route to host")),
		want: stepResult{
			Outcome: "waiting", Reason: "VersionNotOffered",
			Message: "4.4.6 is not offered in channel fast-4.4; the available updates cannot be retrieved: no route to host",
		},
	},
	"it was offered, although the updates cannot be retrieved any more": {
		version: at(condition("RetrievedUpdates", "False", "RemoteFailed", "no route to host")),
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel fast-4.4"},
	},
	"risks not accepted": {
		version: at(updateWithRisks("SlowBoot", "LostLogs")),
		want: stepResult{Outcome: "waiting", Reason: "RisksNotAccepted", Message: "4.4.6 is not recommended because of " +
			"LostLogs (it is slow https://example.com/LostLogs), SlowBoot (it is slow https://example.com/SlowBoot); " +
			"to accept them, add to spec.desired.acceptedRisks: SlowBoot, LostLogs"},
	},
	"one risk not accepted": {
		version: at(updateWithRisks("SlowBoot", "LostLogs")),
		target:  &clusterstate.Target{Version: "4.4.6", AcceptedRisks: []string{"LostLogs"}},
		want: stepResult{Outcome: "waiting", Reason: "RisksNotAccepted", Message: "4.4.6 is not recommended because of " +
			"SlowBoot (it is slow https://example.com/SlowBoot); to accept them, add to spec.desired.acceptedRisks: SlowBoot"},
	},
	"all its risks are accepted": {
		version: at(updateWithRisks("SlowBoot", "LostLogs")),
		target:  &clusterstate.Target{Version: "4.4.6", AcceptedRisks: []string{"LostLogs", "SlowBoot", "Another"}},
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered conditionally in channel fast-4.4, and its risks are accepted"},
	},
	"another image is offered": {
		version: at(),
		target:  &clusterstate.Target{Version: "4.4.6", Image: other446},
		want:    stepResult{Outcome: "waiting", Reason: "ImageMismatch", Message: "4.4.6 is offered with image " + image446 + ", but " + other446 + " is requested"},
	},
	"its image is offered, from elsewhere": {
		version: at(),
		target:  &clusterstate.Target{Version: "4.4.6", Image: mirror446},
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel fast-4.4"},
	},
	"it is no longer offered, for it is being installed": {
		version: at(noUpdates, updating("4.4.6")),
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "the cluster is at 4.4.6 or being updated to it"},
	},
	"it is being installed, from elsewhere": {
		version: at(noUpdates, updating("4.4.6")),
		target:  &clusterstate.Target{Version: "4.4.6", Image: mirror446},
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "the cluster is at 4.4.6 or being updated to it"},
	},
	"another image of it is being installed": {
		version: at(noUpdates, updating("4.4.6")),
		target:  &clusterstate.Target{Version: "4.4.6", Image: other446},
		want:    stepResult{Outcome: "waiting", Reason: "VersionNotOffered", Message: "4.4.6 is not offered in channel fast-4.4, which offers no update"},
	},
}

func TestOffered(t *testing.T) {
	t.Parallel()
	runCases(t, availableCases, withReader(updateAvailable))
}

// channelCases are shared by the pre-check and the step that sets the channel: nothing is to be
// set.
var channelCases = map[string]testCase{
	"the channel is set, and what is offered is still of the one before": {
		version: at(unobserved),
		want:    stepResult{Outcome: "waiting", Reason: "ChannelSet", Message: "waiting for the cluster version operator to observe channel fast-4.4"},
	},
	"channel set, updates not retrieved yet": {
		version: at(emptyStatus),
		want:    stepResult{Outcome: "waiting", Reason: "ChannelSet", Message: "waiting for the cluster version operator to observe channel fast-4.4"},
	},
	"the spec is not observed, because a release is refused": {
		version: at(unobserved, condition("ReleaseAccepted", "False", "", "")),
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel fast-4.4"},
	},
	"the spec is not observed, and the target is offered as one of the channel": {
		version: at(unobserved, inChannels("stable-4.4", "fast-4.4")),
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel fast-4.4"},
	},
	"the spec is not observed, and the target is offered as one of other channels": {
		version: at(unobserved, inChannels("stable-4.4", "eus-4.4")),
		want:    stepResult{Outcome: "waiting", Reason: "ChannelSet", Message: "waiting for the cluster version operator to observe channel fast-4.4"},
	},
	"channel kept during the update": {
		version: at(channel("stable-4.4"), updating("4.4.6"), unobserved),
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "the cluster is at 4.4.6 or being updated to it"},
	},
	"no channel is requested": {
		version: at(channel("stable-4.4")),
		target:  &clusterstate.Target{Version: "4.4.6"},
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel stable-4.4"},
	},
}

func TestPinned(t *testing.T) {
	t.Parallel()
	cases := maps.Clone(availableCases)
	maps.Copy(cases, channelCases)
	maps.Copy(cases, map[string]testCase{
		"the channel is another one": {
			version: at(channel("stable-4.4")),
			want: stepResult{
				Outcome: "waiting", Reason: "ChannelSet", Patch: `{"spec":{"channel":"fast-4.4"}}`,
				Message: "set the channel to fast-4.4; waiting for the cluster version operator to observe it",
			},
		},
		"no channel": {
			version: at(channel("")),
			want: stepResult{
				Outcome: "waiting", Reason: "ChannelSet", Patch: `{"spec":{"channel":"fast-4.4"}}`,
				Message: "set the channel to fast-4.4; waiting for the cluster version operator to observe it",
			},
		},
	})
	runCases(t, cases, controlplane.SetChannel)
}

func TestOfferable(t *testing.T) {
	t.Parallel()
	cases := maps.Clone(availableCases)
	maps.Copy(cases, channelCases)
	maps.Copy(cases, map[string]testCase{
		"the channel is another one, whatever is offered in it": {
			version: at(channel("stable-4.4"), noUpdates),
			want: stepResult{
				Outcome: "skipped", Reason: "ChannelWillBeSet",
				Message: `the channel is "stable-4.4"; the upgrade sets it to fast-4.4 when it begins, and only then it is known whether 4.4.6 is offered in it`,
			},
		},
		"no channel": {
			version: at(channel("")),
			want: stepResult{
				Outcome: "skipped", Reason: "ChannelWillBeSet",
				Message: `the channel is ""; the upgrade sets it to fast-4.4 when it begins, and only then it is known whether 4.4.6 is offered in it`,
			},
		},
	})
	runCases(t, cases, withReader(controlplane.PreCheckUpdateAvailable))
}

// notUpgradeable makes the cluster not upgradeable.
var notUpgradeable = condition("Upgradeable", "False", "AdminAckRequired", "an administrator has to agree")

// otherUpdateCases are about updates of other clients.
var otherUpdateCases = map[string]testCase{
	"not blocked": {
		version: at(),
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is a patch update from 4.4.5"},
	},
	"a patch update passes a cluster that is not upgradeable": {
		version: at(notUpgradeable),
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is a patch update from 4.4.5"},
	},
	"another update is being installed": {
		version: at(updating("4.4.7"), desired("4.4.7")),
		want:    stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress", Message: "the cluster is being updated to 4.4.7"},
	},
	"another update is requested": {
		version: at(desired("4.4.7")),
		want: stepResult{
			Outcome: "waiting", Reason: "AnotherUpdateInProgress",
			Message: "another client has requested 4.4.7 in spec.desiredUpdate of the ClusterVersion, and it is not installed yet",
		},
	},
	"another image is requested": {
		version: at(func(v *configv1.ClusterVersion) { v.Spec.DesiredUpdate = &configv1.Update{Image: "x@sha256:1"} }),
		want: stepResult{
			Outcome: "waiting", Reason: "AnotherUpdateInProgress",
			Message: "another client has requested x@sha256:1 in spec.desiredUpdate of the ClusterVersion, and it is not installed yet",
		},
	},
	"old request is installed": {
		version: at(desired("4.4.5")),
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is a patch update from 4.4.5"},
	},
	"the target itself is requested": {
		version: at(desired("4.4.6")),
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is a patch update from 4.4.5"},
	},
	"the target itself is being installed": {
		version: at(updating("4.4.6"), notUpgradeable),
		want:    stepResult{Outcome: "done", Reason: "Done", Message: "the cluster is at 4.4.6 or being updated to it"},
	},
	"later version installed": {
		version: at(installed("4.4.7")),
		want:    stepResult{Outcome: "waiting", Reason: "Downgrade", Message: "4.4.6 is older than the installed version 4.4.7"},
	},
}

func TestUndisturbed(t *testing.T) {
	t.Parallel()
	cases := maps.Clone(otherUpdateCases)
	cases["whether the cluster is upgradeable is not asked"] = testCase{
		version: at(notUpgradeable), target: &clusterstate.Target{Version: "4.5.0"},
		want: stepResult{Outcome: "done", Reason: "Done", Message: "4.5.0 is a minor update from 4.4.5"},
	}
	runCases(t, cases, withReader(controlplane.NoOtherUpdate))
}

func TestUpgradeable(t *testing.T) {
	t.Parallel()
	minor := clusterstate.Target{Version: "4.5.0"}
	cases := maps.Clone(otherUpdateCases)
	maps.Copy(cases, map[string]testCase{
		"minor update blocked": {
			version: at(notUpgradeable), target: &minor,
			want: stepResult{
				Outcome: "waiting", Reason: "NotUpgradeable",
				Message: "4.5.0 is a minor update from 4.4.5, and the cluster is not upgradeable: AdminAckRequired: an administrator has to agree",
			},
		},
		"major update blocked": {
			version: at(notUpgradeable), target: &clusterstate.Target{Version: "5.0.0"},
			want: stepResult{
				Outcome: "waiting", Reason: "NotUpgradeable",
				Message: "5.0.0 is a major update from 4.4.5, and the cluster is not upgradeable: AdminAckRequired: an administrator has to agree",
			},
		},
		"minor update without condition Upgradeable": {
			version: at(), target: &minor,
			want: stepResult{Outcome: "done", Reason: "Done", Message: "4.5.0 is a minor update from 4.4.5"},
		},
		"minor update blocked by another update": {
			version: at(updating("4.4.7"), notUpgradeable), target: &minor,
			want: stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress", Message: "the cluster is being updated to 4.4.7"},
		},
	})
	runCases(t, cases, withReader(controlplane.Upgradeable))
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"maps"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
)

// offers are the scenes that the gate and the step that pins have in common.
var offers = map[string]scene{
	"it is offered": {
		version: at(),
		want:    answer{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel fast-4.4"},
	},
	"it is not offered": {
		version: at(offersNothing),
		want:    answer{Outcome: "waiting", Reason: "VersionNotOffered", Message: "4.4.6 is not offered in channel fast-4.4"},
	},
	"it is not offered because nothing is": {
		version: at(offersNothing, condition("RetrievedUpdates", "False", "RemoteFailed", "no route to host")),
		want: answer{
			Outcome: "waiting", Reason: "VersionNotOffered",
			Message: "4.4.6 is not offered in channel fast-4.4; the available updates cannot be retrieved: no route to host",
		},
	},
	"it was offered, although the updates cannot be retrieved any more": {
		version: at(condition("RetrievedUpdates", "False", "RemoteFailed", "no route to host")),
		want:    answer{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel fast-4.4"},
	},
	"it has risks that nobody has accepted": {
		version: at(offersWithRisks("SlowBoot", "LostLogs")),
		want: answer{Outcome: "waiting", Reason: "RisksNotAccepted", Message: "4.4.6 is not recommended because of " +
			"LostLogs (it is slow https://example.com/LostLogs), SlowBoot (it is slow https://example.com/SlowBoot); " +
			"to take it nevertheless, add to spec.desired.acceptedRisks: SlowBoot, LostLogs"},
	},
	"one of its risks is not accepted": {
		version: at(offersWithRisks("SlowBoot", "LostLogs")),
		target:  &cluster.Target{Version: "4.4.6", AcceptedRisks: []string{"LostLogs"}},
		want: answer{Outcome: "waiting", Reason: "RisksNotAccepted", Message: "4.4.6 is not recommended because of " +
			"SlowBoot (it is slow https://example.com/SlowBoot); to take it nevertheless, add to spec.desired.acceptedRisks: SlowBoot"},
	},
	"all its risks are accepted": {
		version: at(offersWithRisks("SlowBoot", "LostLogs")),
		target:  &cluster.Target{Version: "4.4.6", AcceptedRisks: []string{"LostLogs", "SlowBoot", "Another"}},
		want:    answer{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered conditionally in channel fast-4.4, and its risks are accepted"},
	},
	"another image is offered": {
		version: at(),
		target:  &cluster.Target{Version: "4.4.6", Image: other446},
		want:    answer{Outcome: "waiting", Reason: "ImageMismatch", Message: "4.4.6 is offered with image " + image446 + ", but " + other446 + " is asked for"},
	},
	"its image is offered, from elsewhere": {
		version: at(),
		target:  &cluster.Target{Version: "4.4.6", Image: mirror446},
		want:    answer{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel fast-4.4"},
	},
	"it is no longer offered, for it is being installed": {
		version: at(offersNothing, moving("4.4.6")),
		want:    answer{Outcome: "done", Reason: "Done", Message: "the cluster is at 4.4.6 or on its way to it"},
	},
	"it is being installed, from elsewhere": {
		version: at(offersNothing, moving("4.4.6")),
		target:  &cluster.Target{Version: "4.4.6", Image: mirror446},
		want:    answer{Outcome: "done", Reason: "Done", Message: "the cluster is at 4.4.6 or on its way to it"},
	},
	"another image of it is being installed": {
		version: at(offersNothing, moving("4.4.6")),
		target:  &cluster.Target{Version: "4.4.6", Image: other446},
		want:    answer{Outcome: "waiting", Reason: "VersionNotOffered", Message: "4.4.6 is not offered in channel fast-4.4"},
	},
}

func TestOffered(t *testing.T) {
	t.Parallel()
	play(t, offers, reading(controlplane.Offered))
}

// channels are the scenes that looking ahead and the step that pins have in
// common beside offers: nothing is to be set.
var channels = map[string]scene{
	"the channel is set, and what is offered is still of the one before": {
		version: at(unobserved),
		want:    answer{Outcome: "waiting", Reason: "ChannelSet", Message: "waiting for the cluster version operator to look at channel fast-4.4"},
	},
	"the channel is set, and nothing is said yet": {
		version: at(saysNothing),
		want:    answer{Outcome: "waiting", Reason: "ChannelSet", Message: "waiting for the cluster version operator to look at channel fast-4.4"},
	},
	"the spec is not observed, because a release is refused": {
		version: at(unobserved, condition("ReleaseAccepted", "False", "", "")),
		want:    answer{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel fast-4.4"},
	},
	"the spec is not observed, and the target is offered as one of the channel": {
		version: at(unobserved, offeredIn("stable-4.4", "fast-4.4")),
		want:    answer{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel fast-4.4"},
	},
	"the spec is not observed, and the target is offered as one of other channels": {
		version: at(unobserved, offeredIn("stable-4.4", "eus-4.4")),
		want:    answer{Outcome: "waiting", Reason: "ChannelSet", Message: "waiting for the cluster version operator to look at channel fast-4.4"},
	},
	"the channel of a cluster on its way is left alone": {
		version: at(channel("stable-4.4"), moving("4.4.6"), unobserved),
		want:    answer{Outcome: "done", Reason: "Done", Message: "the cluster is at 4.4.6 or on its way to it"},
	},
	"no channel is asked for": {
		version: at(channel("stable-4.4")),
		target:  &cluster.Target{Version: "4.4.6"},
		want:    answer{Outcome: "done", Reason: "Done", Message: "4.4.6 is offered in channel stable-4.4"},
	},
}

func TestPinned(t *testing.T) {
	t.Parallel()
	scenes := maps.Clone(offers)
	maps.Copy(scenes, channels)
	maps.Copy(scenes, map[string]scene{
		"the channel is another one": {
			version: at(channel("stable-4.4")),
			want: answer{
				Outcome: "waiting", Reason: "ChannelSet", Patch: `{"spec":{"channel":"fast-4.4"}}`,
				Message: "set the channel to fast-4.4; waiting for the cluster version operator to look at it",
			},
		},
		"there is no channel": {
			version: at(channel("")),
			want: answer{
				Outcome: "waiting", Reason: "ChannelSet", Patch: `{"spec":{"channel":"fast-4.4"}}`,
				Message: "set the channel to fast-4.4; waiting for the cluster version operator to look at it",
			},
		},
	})
	play(t, scenes, controlplane.Pinned)
}

func TestOfferable(t *testing.T) {
	t.Parallel()
	scenes := maps.Clone(offers)
	maps.Copy(scenes, channels)
	maps.Copy(scenes, map[string]scene{
		"the channel is another one, whatever is offered in it": {
			version: at(channel("stable-4.4"), offersNothing),
			want: answer{
				Outcome: "skipped", Reason: "ChannelWillBeSet",
				Message: `the channel is "stable-4.4"; the upgrade sets it to fast-4.4 when it begins, and only then will it be known whether 4.4.6 is offered in it`,
			},
		},
		"there is no channel": {
			version: at(channel("")),
			want: answer{
				Outcome: "skipped", Reason: "ChannelWillBeSet",
				Message: `the channel is ""; the upgrade sets it to fast-4.4 when it begins, and only then will it be known whether 4.4.6 is offered in it`,
			},
		},
	})
	play(t, scenes, reading(controlplane.Offerable))
}

// blocked is a cluster that says that it is not upgradeable.
var blocked = condition("Upgradeable", "False", "AdminAckRequired", "an administrator has to agree")

// others are the scenes about other updates.
var others = map[string]scene{
	"nothing is in the way": {
		version: at(),
		want:    answer{Outcome: "done", Reason: "Done", Message: "4.4.6 is a patch update from 4.4.5"},
	},
	"a patch update passes a cluster that is not upgradeable": {
		version: at(blocked),
		want:    answer{Outcome: "done", Reason: "Done", Message: "4.4.6 is a patch update from 4.4.5"},
	},
	"another update is being installed": {
		version: at(moving("4.4.7"), asked("4.4.7")),
		want:    answer{Outcome: "waiting", Reason: "AnotherUpdateInProgress", Message: "the cluster is being updated to 4.4.7"},
	},
	"another update is asked for": {
		version: at(asked("4.4.7")),
		want: answer{
			Outcome: "waiting", Reason: "AnotherUpdateInProgress",
			Message: "somebody has asked for 4.4.7 in spec.desiredUpdate of the cluster version, and it is not at it yet",
		},
	},
	"another image is asked for": {
		version: at(func(v *configv1.ClusterVersion) { v.Spec.DesiredUpdate = &configv1.Update{Image: "x@sha256:1"} }),
		want: answer{
			Outcome: "waiting", Reason: "AnotherUpdateInProgress",
			Message: "somebody has asked for x@sha256:1 in spec.desiredUpdate of the cluster version, and it is not at it yet",
		},
	},
	"what was asked for long ago is installed": {
		version: at(asked("4.4.5")),
		want:    answer{Outcome: "done", Reason: "Done", Message: "4.4.6 is a patch update from 4.4.5"},
	},
	"the target itself is asked for": {
		version: at(asked("4.4.6")),
		want:    answer{Outcome: "done", Reason: "Done", Message: "4.4.6 is a patch update from 4.4.5"},
	},
	"the target itself is being installed": {
		version: at(moving("4.4.6"), blocked),
		want:    answer{Outcome: "done", Reason: "Done", Message: "the cluster is at 4.4.6 or on its way to it"},
	},
	"a later version was installed meanwhile": {
		version: at(installed("4.4.7")),
		want:    answer{Outcome: "waiting", Reason: "Downgrade", Message: "4.4.6 is older than 4.4.7, which is installed"},
	},
}

func TestUndisturbed(t *testing.T) {
	t.Parallel()
	scenes := maps.Clone(others)
	scenes["whether the cluster is upgradeable is not asked"] = scene{
		version: at(blocked), target: &cluster.Target{Version: "4.5.0"},
		want: answer{Outcome: "done", Reason: "Done", Message: "4.5.0 is a minor update from 4.4.5"},
	}
	play(t, scenes, reading(controlplane.Undisturbed))
}

func TestUpgradeable(t *testing.T) {
	t.Parallel()
	minor := cluster.Target{Version: "4.5.0"}
	scenes := maps.Clone(others)
	maps.Copy(scenes, map[string]scene{
		"a minor update does not": {
			version: at(blocked), target: &minor,
			want: answer{
				Outcome: "waiting", Reason: "NotUpgradeable",
				Message: "4.5.0 is a minor update from 4.4.5, and the cluster is not upgradeable: AdminAckRequired: an administrator has to agree",
			},
		},
		"a major update does not": {
			version: at(blocked), target: &cluster.Target{Version: "5.0.0"},
			want: answer{
				Outcome: "waiting", Reason: "NotUpgradeable",
				Message: "5.0.0 is a major update from 4.4.5, and the cluster is not upgradeable: AdminAckRequired: an administrator has to agree",
			},
		},
		"a minor update passes a cluster that says nothing about it": {
			version: at(), target: &minor,
			want: answer{Outcome: "done", Reason: "Done", Message: "4.5.0 is a minor update from 4.4.5"},
		},
		"another update is in the way of a minor update": {
			version: at(moving("4.4.7"), blocked), target: &minor,
			want: answer{Outcome: "waiting", Reason: "AnotherUpdateInProgress", Message: "the cluster is being updated to 4.4.7"},
		},
	})
	play(t, scenes, reading(controlplane.Upgradeable))
}

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
	"it is offered":     {version: at(), want: done},
	"it is not offered": {version: at(noUpdates), want: stepResult{Outcome: "waiting", Reason: "VersionNotOffered"}},
	"no update available": {
		version: at(noUpdates, condition("RetrievedUpdates", "False", "RemoteFailed", "no route to host")),
		want:    stepResult{Outcome: "waiting", Reason: "VersionNotOffered"},
	},
	"it was offered, although the updates cannot be retrieved any more": {version: at(condition("RetrievedUpdates", "False", "RemoteFailed", "no route to host")), want: done},
	"risks not accepted":  {version: at(updateWithRisks("SlowBoot", "LostLogs")), want: stepResult{Outcome: "waiting", Reason: "RisksNotAccepted"}},
	"risks not evaluated": {version: at(updateWithRisks("SlowBoot", "LostLogs"), risksUnknown), want: stepResult{Outcome: "waiting", Reason: "RisksUnknown"}},
	"one risk not accepted": {
		version: at(updateWithRisks("SlowBoot", "LostLogs")),
		target:  &clusterstate.Target{Version: "4.4.6", AcceptedRisks: []string{"LostLogs"}},
		want:    stepResult{Outcome: "waiting", Reason: "RisksNotAccepted"},
	},
	"all its risks are accepted": {
		version: at(updateWithRisks("SlowBoot", "LostLogs")),
		target:  &clusterstate.Target{Version: "4.4.6", AcceptedRisks: []string{"LostLogs", "SlowBoot", "Another"}},
		want:    done,
	},
	"another image is offered":                           {version: at(), target: &clusterstate.Target{Version: "4.4.6", Image: other446}, want: stepResult{Outcome: "waiting", Reason: "ImageMismatch"}},
	"its image is offered, from elsewhere":               {version: at(), target: &clusterstate.Target{Version: "4.4.6", Image: mirror446}, want: done},
	"it is no longer offered, for it is being installed": {version: at(noUpdates, updating("4.4.6")), want: done},
	"it is being installed, from elsewhere": {
		version: at(noUpdates, updating("4.4.6")),
		target:  &clusterstate.Target{Version: "4.4.6", Image: mirror446},
		want:    done,
	},
	"another image of it is being installed": {
		version: at(noUpdates, updating("4.4.6")),
		target:  &clusterstate.Target{Version: "4.4.6", Image: other446},
		want:    stepResult{Outcome: "waiting", Reason: "VersionNotOffered"},
	},
}

func TestUpdateAvailable(t *testing.T) {
	t.Parallel()
	runCases(t, availableCases, withReader(updateAvailable))
}

// channelCases are shared by the pre-check and the step that sets the channel. There is no channel
// to set.
var channelCases = map[string]testCase{
	"the channel is set, and what is offered is still of the one before":           {version: at(unobserved), want: stepResult{Outcome: "waiting", Reason: "ChannelSet"}},
	"channel set, updates not retrieved yet":                                       {version: at(emptyStatus), want: stepResult{Outcome: "waiting", Reason: "ChannelSet"}},
	"the spec is not observed, because a release is refused":                       {version: at(unobserved, condition("ReleaseAccepted", "False", "", "")), want: done},
	"the spec is not observed, and the target is offered as one of the channel":    {version: at(unobserved, inChannels("stable-4.4", "fast-4.4")), want: done},
	"the spec is not observed, and the target is offered as one of other channels": {version: at(unobserved, inChannels("stable-4.4", "eus-4.4")), want: stepResult{Outcome: "waiting", Reason: "ChannelSet"}},
	"channel kept during the update":                                               {version: at(channel("stable-4.4"), updating("4.4.6"), unobserved), want: done},
	"no channel is requested":                                                      {version: at(channel("stable-4.4")), target: &clusterstate.Target{Version: "4.4.6"}, want: done},
}

func TestSetChannel(t *testing.T) {
	t.Parallel()
	cases := maps.Clone(availableCases)
	maps.Copy(cases, channelCases)
	maps.Copy(cases, map[string]testCase{
		"the channel is another one": {version: at(channel("stable-4.4")), want: stepResult{Outcome: "waiting", Reason: "ChannelSet", Patch: `{"spec":{"channel":"fast-4.4"}}`}},
		"no channel":                 {version: at(channel("")), want: stepResult{Outcome: "waiting", Reason: "ChannelSet", Patch: `{"spec":{"channel":"fast-4.4"}}`}},
	})
	runCases(t, cases, controlplane.SetChannel)
}

func TestPreCheckUpdateAvailable(t *testing.T) {
	t.Parallel()
	cases := maps.Clone(availableCases)
	maps.Copy(cases, channelCases)
	maps.Copy(cases, map[string]testCase{
		"the channel is another one, whatever is offered in it": {version: at(channel("stable-4.4"), noUpdates), want: stepResult{Outcome: "skipped", Reason: "ChannelWillBeSet"}},
		"no channel": {version: at(channel("")), want: stepResult{Outcome: "skipped", Reason: "ChannelWillBeSet"}},
	})
	runCases(t, cases, withReader(controlplane.PreCheckUpdateAvailable))
}

// notUpgradeable makes the cluster not upgradeable.
var notUpgradeable = condition("Upgradeable", "False", "AdminAckRequired", "an administrator has to agree")

// otherUpdateCases cover updates by other clients.
var otherUpdateCases = map[string]testCase{
	"not blocked": {version: at(), want: done},
	"a patch update passes a cluster that is not upgradeable": {version: at(notUpgradeable), want: done},
	"another update is being installed":                       {version: at(updating("4.4.7"), desired("4.4.7")), want: stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress"}},
	"another update is requested":                             {version: at(otherRequest), want: stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress"}},
	"another image is requested": {
		version: at(func(v *configv1.ClusterVersion) { v.Spec.DesiredUpdate = &configv1.Update{Image: "x@sha256:1"} }),
		want:    stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress"},
	},
	"old request is installed":             {version: at(desired("4.4.5")), want: done},
	"the target itself is requested":       {version: at(desired("4.4.6")), want: done},
	"the target itself is being installed": {version: at(updating("4.4.6"), notUpgradeable), want: done},
	"later version installed":              {version: at(installed("4.4.7")), want: stepResult{Outcome: "waiting", Reason: "Downgrade"}},
}

func TestNoOtherUpdate(t *testing.T) {
	t.Parallel()
	cases := maps.Clone(otherUpdateCases)
	cases["whether the cluster is upgradeable is not asked"] = testCase{
		version: at(notUpgradeable), target: &clusterstate.Target{Version: "4.5.0"},
		want: done,
	}
	runCases(t, cases, withReader(controlplane.NoOtherUpdate))
}

func TestUpgradeable(t *testing.T) {
	t.Parallel()
	minor := clusterstate.Target{Version: "4.5.0"}
	cases := maps.Clone(otherUpdateCases)
	maps.Copy(cases, map[string]testCase{
		"minor update blocked":                       {version: at(notUpgradeable), target: &minor, want: stepResult{Outcome: "waiting", Reason: "NotUpgradeable"}},
		"major update blocked":                       {version: at(notUpgradeable), target: &clusterstate.Target{Version: "5.0.0"}, want: stepResult{Outcome: "waiting", Reason: "NotUpgradeable"}},
		"minor update without condition Upgradeable": {version: at(), target: &minor, want: done},
		"minor update blocked by another update":     {version: at(updating("4.4.7"), notUpgradeable), target: &minor, want: stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress"}},
	})
	runCases(t, cases, withReader(controlplane.Upgradeable))
}

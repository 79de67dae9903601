// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// UpdateAvailable waits until the target is available; see Available. The spec may request another
// channel by now. requested lists all channels that this attempt has requested; nil if the channel
// cannot change. The step waits until KeepChannel has set the last one and the cluster version
// operator has observed it.
func UpdateAvailable(r client.Reader, target clusterstate.Target, requested []string) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		switch {
		case err != nil:
			return engine.Result{}, err
		case ownsOtherChannel(version, target, requested):
			if message := channelMismatch(version, target); message != "" {
				return engine.Wait("VersionNotInChannel", "%s", message), nil
			}
			return engine.Wait("ChannelSet", "spec.desired.channel has changed; the channel is being set to %s", channelName(target.Channel)), nil
		case len(requested) > 1:
			return availableInChannel(version, target)
		}
		return checkAll(version, target, []Precondition{Available})
	}
}

// Available passes if the target is available with its image, and is either recommended or has only
// accepted risks.
func Available(version clusterstate.Version, target clusterstate.Target) (engine.Result, error) {
	update := version.AvailableUpdate(target)
	if !update.Available {
		return engine.Wait("VersionNotOffered", "%s", notAvailableMessage(version, target)), nil
	}
	if (clusterstate.Release{Image: update.Image}).HasOtherImage(target.Image) {
		return engine.Wait("ImageMismatch", "%s is offered with image %s, but %s is requested", target.Version, text.Excerpt(update.Image), target.Image), nil
	}
	switch risks := update.UnacceptedRisks(target); {
	case len(risks) > 0 && update.RisksUnknown:
		return engine.Wait(reasonRisksUnknown, "%s; %s", risksUnknownMessage(target, risks), howToAccept(risks)), nil
	case len(risks) > 0:
		return engine.Wait("RisksNotAccepted", "%s is not recommended because of %s; %s", target.Version, riskTexts(risks), howToAccept(risks)), nil
	}
	if update.Conditional {
		return engine.Done("%s is offered conditionally in channel %s, and its risks are accepted", target.Version, version.Channel), nil
	}
	return engine.Done("%s is offered in channel %s", target.Version, version.Channel), nil
}

// Limits for the names of risks that users must copy, in bytes. The API accepts names of that
// length.
const (
	maxRiskName  = 256
	maxRiskNames = 1024
)

// maxOffered limits the number of available versions in a message.
const maxOffered = 3

func notAvailableMessage(version clusterstate.Version, target clusterstate.Target) string {
	message := fmt.Sprintf("%s is not offered in channel %s", target.Version, channelName(version.Channel))
	if target.Channel != "" && target.Channel != version.Channel {
		message = fmt.Sprintf("another client has changed the channel from %s; %s", channelName(target.Channel), message)
	}
	if version.RetrievedUpdates.IsFalse() {
		return message + "; the available updates cannot be retrieved: " + version.RetrievedUpdates.MessageOrReason()
	}
	offered := version.OfferedVersions()
	for i := range offered {
		offered[i] = text.Excerpt(offered[i])
	}
	switch more := len(offered) - maxOffered; {
	case len(offered) == 0:
		return message + ", which offers no update"
	case more > 0:
		return fmt.Sprintf("%s, which offers %s and %d more", message, strings.Join(offered[:maxOffered], ", "), more)
	}
	return message + ", which offers " + strings.Join(offered, ", ")
}

// channelName returns the name of a channel for use in messages.
func channelName(channel string) string { return cmp.Or(text.Excerpt(channel), `""`) }

// reasonRisksUnknown is the reason of a wait for the cluster version operator to evaluate risks.
const reasonRisksUnknown = "RisksUnknown"

func risksUnknownMessage(target clusterstate.Target, risks []clusterstate.Risk) string {
	return fmt.Sprintf("the cluster version operator has not evaluated yet whether %s is recommended in spite of %s", target.Version, riskTexts(risks))
}

func howToAccept(risks []clusterstate.Risk) string {
	names := make([]string, 0, len(risks))
	for _, risk := range risks {
		names = append(names, text.Sanitize(risk.Name, maxRiskName))
	}
	return "to accept them, add to spec.desired.acceptedRisks: " + text.Truncate(strings.Join(names, ", "), maxRiskNames)
}

// riskTexts returns the risks with their reasons.
func riskTexts(risks []clusterstate.Risk) string {
	texts := make([]string, 0, len(risks))
	for _, risk := range risks {
		texts = append(texts, fmt.Sprintf("%s (%s)", text.Excerpt(risk.Name), risk.String()))
	}
	return text.JoinNames(texts)
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// UpdateAvailable waits until the target is offered as it is wanted: recommended, or
// with no risks but accepted ones, and with the image that was named.
func UpdateAvailable(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		return updateAvailable(version, target), nil
	}
}

func updateAvailable(version clusterstate.Version, target clusterstate.Target) engine.Result {
	if version.Current.Matches(target) { // then it is no longer offered
		return alreadyUpdating(target)
	}
	update := version.AvailableUpdate(target)
	if !update.Available {
		return engine.Wait("VersionNotOffered", "%s", notAvailableMessage(version, target))
	}
	if (clusterstate.Release{Image: update.Image}).HasOtherImage(target.Image) {
		return engine.Wait("ImageMismatch", "%s is offered with image %s, but %s is asked for", target.Version, update.Image, target.Image)
	}
	if risks := update.UnacceptedRisks(target); len(risks) > 0 {
		return engine.Wait("RisksNotAccepted", "%s", unacceptedRisksMessage(target, risks))
	}
	if update.Conditional {
		return engine.Done("%s is offered conditionally in channel %s, and its risks are accepted", target.Version, version.Channel)
	}
	return engine.Done("%s is offered in channel %s", target.Version, version.Channel)
}

func notAvailableMessage(version clusterstate.Version, target clusterstate.Target) string {
	message := fmt.Sprintf("%s is not offered in channel %s", target.Version, version.Channel)
	if version.RetrievedUpdates.IsFalse() {
		message += "; the available updates cannot be retrieved: " + version.RetrievedUpdates.MessageOrReason()
	}
	return message
}

func unacceptedRisksMessage(target clusterstate.Target, risks []clusterstate.Risk) string {
	names := make([]string, 0, len(risks))
	texts := make([]string, 0, len(risks))
	for _, risk := range risks {
		names = append(names, risk.Name)
		texts = append(texts, fmt.Sprintf("%s (%s)", risk.Name, risk.String()))
	}
	return fmt.Sprintf("%s is not recommended because of %s; to take it nevertheless, add to spec.desired.acceptedRisks: %s",
		target.Version, text.JoinNames(texts), strings.Join(names, ", "))
}

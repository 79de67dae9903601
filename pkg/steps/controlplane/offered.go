// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Offered waits until the target is offered as it is wanted: recommended, or
// with no risks but accepted ones, and with the image that was named.
func Offered(r client.Reader, target cluster.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := cluster.ReadVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		return offered(version, target), nil
	}
}

func offered(version cluster.Version, target cluster.Target) engine.Result {
	if version.Current.Is(target) { // then it is no longer offered
		return onItsWay(target)
	}
	offer := version.Offer(target.Version)
	if !offer.Offered {
		return engine.Wait("VersionNotOffered", "%s", notOffered(version, target))
	}
	if (cluster.Release{Image: offer.Image}).Differs(target.Image) {
		return engine.Wait("ImageMismatch", "%s is offered with image %s, but %s is asked for", target.Version, offer.Image, target.Image)
	}
	if risks := offer.NotAccepted(target); len(risks) > 0 {
		return engine.Wait("RisksNotAccepted", "%s", notAccepted(target, risks))
	}
	if offer.Conditional {
		return engine.Done("%s is offered conditionally in channel %s, and its risks are accepted", target.Version, version.Channel)
	}
	return engine.Done("%s is offered in channel %s", target.Version, version.Channel)
}

func notOffered(version cluster.Version, target cluster.Target) string {
	message := fmt.Sprintf("%s is not offered in channel %s", target.Version, version.Channel)
	if version.RetrievedUpdates.IsFalse() {
		message += "; the available updates cannot be retrieved: " + version.RetrievedUpdates.Text()
	}
	return message
}

func notAccepted(target cluster.Target, risks []cluster.Risk) string {
	names := make([]string, 0, len(risks))
	texts := make([]string, 0, len(risks))
	for _, risk := range risks {
		names = append(names, risk.Name)
		texts = append(texts, fmt.Sprintf("%s (%s)", risk.Name, risk.Text()))
	}
	return fmt.Sprintf("%s is not recommended because of %s; to take it nevertheless, add to spec.desired.acceptedRisks: %s",
		target.Version, cluster.Names(texts), strings.Join(names, ", "))
}

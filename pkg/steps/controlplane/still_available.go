// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// ReasonUpgradeWithdrawn is the reason for a version that has ceased to be available.
const ReasonUpgradeWithdrawn = "UpgradeWithdrawn"

// Pinned describes an upgrade to a version that was selected before its window.
type Pinned struct {
	// Target is the selected release.
	Target clusterstate.Target
	// CheckAvailability requires that the release is still available. If it is false, the decision
	// is left to the cluster version operator.
	CheckAvailability bool
	// Requested reports whether this attempt has requested the target.
	Requested bool
}

// FailUnlessAvailable passes if the pinned release is still available and recommended, or if this
// attempt has requested it. It fails as AlreadyAtVersion if the release is already installed, and
// as UpgradeWithdrawn if it is no longer available, both confirmed with the API server. It waits
// while the available updates cannot be retrieved, while it is unknown whether the release is
// recommended, or while another client updates the cluster to the
// same release.
func FailUnlessAvailable(r, live client.Reader, pinned Pinned) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		pinned := pinned
		pinned.Requested = pinned.Requested || run.Requested
		version, err := readConfirmed(ctx, r, live, func(v clusterstate.Version) bool {
			result, err := pinned.decide(v)
			return err == nil && result.Failed()
		})
		if err != nil {
			return engine.Result{}, err
		}
		return pinned.decide(version)
	}
}

func (p Pinned) decide(version clusterstate.Version) (engine.Result, error) {
	target := p.Target
	_, updating := version.UpdatingTo()
	switch observed := version.Observe(target); {
	case observed.HasBegun() && p.Requested:
		return alreadyUpdating(target), nil
	case observed == clusterstate.ObservedDone:
		return engine.Fail(engine.ReasonAlreadyAtVersion, "the cluster is at %s already; there was nothing to do", target.Version), nil
	case observed == clusterstate.ObservedBegun:
		return engine.Wait("AnotherUpdateInProgress", "another client updates the cluster to %s", target.Version), nil
	case updating: // no updates are available during an update
		return NotBusy(version, target)
	case !p.CheckAvailability:
		return engine.Done("the availability of %s is not checked", target.Version), nil
	case !version.RetrievedUpdates.IsTrue():
		return engine.Wait("UpdatesNotRetrieved", "the available updates cannot be retrieved: %s", version.RetrievedUpdates.MessageOrReason()), nil
	}
	update := version.AvailableUpdate(target)
	switch risks := update.UnacceptedRisks(target); {
	case !update.Available:
		return engine.Fail(ReasonUpgradeWithdrawn, "%s", notAvailableMessage(version, target)), nil
	case (clusterstate.Release{Image: update.Image}).HasOtherImage(target.Image):
		return engine.Fail(ReasonUpgradeWithdrawn, "%s is offered with image %s, but %s was selected", target.Version, text.Excerpt(update.Image), target.Image), nil
	case len(risks) > 0 && update.RisksUnknown:
		return engine.Wait(reasonRisksUnknown, "%s", risksUnknownMessage(target, risks)), nil
	case len(risks) > 0:
		return engine.Fail(ReasonUpgradeWithdrawn, "%s is not recommended because of %s", target.Version, riskTexts(risks)), nil
	}
	return engine.Done("%s is offered in channel %s", target.Version, channelName(version.Channel)), nil
}

// Precondition applies FailUnlessAvailable to the object before it is patched. It waits instead of
// failing, because only the API server confirms a failure.
func (p Pinned) Precondition(version clusterstate.Version, _ clusterstate.Target) (engine.Result, error) {
	result, err := p.decide(version)
	if err == nil && result.Failed() {
		return engine.Wait(result.Reason(), "%s", result.Message()), nil
	}
	return result, err
}

// WaitUntilAvailable waits until the ClusterVersion is Available, for example after an upgrade.
func WaitUntilAvailable(r client.Reader) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		switch {
		case err != nil:
			return engine.Result{}, err
		case !version.Available.IsTrue():
			return engine.Wait("NotAvailable", "the cluster is not available: %s", version.Available.ReasonAndMessage()), nil
		}
		return engine.Done("the cluster is available"), nil
	}
}

// IsUpgradedAndAvailable is like IsUpgraded, but also requires that the ClusterVersion is
// Available. A negative answer is confirmed with the API server, because the upgrade may fail
// because of it.
func IsUpgradedAndAvailable(r, live client.Reader, target clusterstate.Target) func(context.Context) (bool, error) {
	isUpgraded := func(v clusterstate.Version) bool {
		return v.Observe(target) == clusterstate.ObservedDone && v.Available.IsTrue()
	}
	return func(ctx context.Context) (bool, error) {
		version, err := readConfirmed(ctx, r, live, func(v clusterstate.Version) bool { return !isUpgraded(v) })
		return err == nil && isUpgraded(version), err
	}
}

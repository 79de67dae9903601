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

// NoOtherUpdate waits until no other update is in the way of the target, see NotBusy.
func NoOtherUpdate(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return decide(r, target, NotBusy)
}

// NotRequestedByOther waits while another client has requested the target itself: an upgrade that does
// not adopt that update must not make the same request. It passes if this attempt has made it.
func NotRequestedByOther(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		switch {
		case err != nil:
			return engine.Result{}, err
		case run.Requested || version.Current.Matches(target) || !version.IsRequested(target):
			return engine.Done("no other client has requested %s", target.Version), nil
		}
		if message, rejected := version.RejectionMessage(target); rejected {
			return engine.Wait("AnotherUpdateInProgress", "another client has requested %s in spec.desiredUpdate of the ClusterVersion, and the cluster version operator refuses it: %s", target.Version, message), nil
		}
		return engine.Wait("AnotherUpdateInProgress", "another client has requested %s in spec.desiredUpdate of the ClusterVersion, and it is not installed yet", target.Version), nil
	}
}

// NotBusy passes if no other update is being installed or requested, and if the installed version is
// not later than the target.
func NotBusy(version clusterstate.Version, target clusterstate.Target) (engine.Result, error) {
	if other, updating := version.UpdatingTo(); updating {
		return engine.Wait("AnotherUpdateInProgress", "the cluster is being updated to %s", other), nil
	}
	switch other, pending := version.PendingRequest(); {
	case !pending || version.IsRequested(target):
	case isPending(version, target):
		return engine.Wait("AnotherUpdateInProgress", "spec.desiredUpdate of the ClusterVersion requests %s with image %s, and it is not installed yet", target.Version, text.Excerpt(other.Image)), nil
	default:
		return engine.Wait("AnotherUpdateInProgress", "another client has requested %s in spec.desiredUpdate of the ClusterVersion, and it is not installed yet", other), nil
	}
	change, err := version.ChangeTo(target)
	switch {
	case err != nil:
		return engine.Result{}, err
	case change == clusterstate.Downgrade:
		return engine.Wait("Downgrade", "%s is older than the installed version %s", target.Version, version.Installed), nil
	}
	return engine.Done("%s is a %s from %s", target.Version, change, version.Installed), nil
}

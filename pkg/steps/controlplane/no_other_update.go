// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// NoOtherUpdate waits until no other update blocks the target; see NotBusy.
func NoOtherUpdate(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return check(r, target, NotBusy)
}

// NotRequestedByOther waits while another client has requested the target, because an upgrade that
// does not adopt that update must not make the same request. It passes if this attempt made the
// request.
func NotRequestedByOther(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		observed := version.Observe(target)
		if run.Requested && version.IsOwnRequest(target.Version, run.RequestedImage) != clusterstate.No {
			observed = clusterstate.ObservedNone
		}
		if result := requestedByOtherClient(version, target, observed); !result.IsZero() {
			return result, nil
		}
		return engine.Done("no other client has requested %s", target.Version), nil
	}
}

// requestedByOtherClient returns the result of a step that waits for another client's request for
// the target; the zero Result if there is none.
func requestedByOtherClient(version clusterstate.Version, target clusterstate.Target, observed clusterstate.Observed) engine.Result {
	switch observed {
	case clusterstate.ObservedPending:
		return notInstalledYet(version, target)
	case clusterstate.ObservedRefused:
		message, _ := version.Refusal()
		return engine.Wait("AnotherUpdateInProgress", "%s, and the cluster version operator refuses it: %s; \"oc adm upgrade --clear\" withdraws it", requestedByOther(version, target), message)
	default:
		return engine.Result{}
	}
}

func notInstalledYet(version clusterstate.Version, target clusterstate.Target) engine.Result {
	return engine.Wait("AnotherUpdateInProgress", "%s, and it is not installed yet", requestedByOther(version, target))
}

// NotBusy passes if no other update is being installed or requested, and the installed version is
// not newer than the target. A request that the cluster version operator ignores or rejects blocks
// nothing, because it is replaced.
func NotBusy(version clusterstate.Version, target clusterstate.Target) (engine.Result, error) {
	if other, updating := version.UpdatingTo(); updating {
		return engine.Wait("AnotherUpdateInProgress", "the cluster is being updated to %s", other), nil
	}
	if version.Observe(target) == clusterstate.ObservedOther {
		return notInstalledYet(version, target), nil
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

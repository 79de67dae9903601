// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// WaitUntilUpgraded waits until the target is completely installed on the control plane. It fails
// if another client updates the cluster to another release.
func WaitUntilUpgraded(r, live client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return unlessSuperseded(r, live, target, func(ctx context.Context, run engine.Run, version clusterstate.Version) engine.Result {
		if version.Observe(target) == clusterstate.ObservedDone {
			return engine.Done("%s is installed", target.Version)
		}
		result := engine.Wait("Progressing", "%s is being installed%s", target.Version, butRequested(version, target))
		switch {
		case version.Failing.IsTrue():
			result = engine.Wait("Failing", "the cluster version operator is failing to install %s: %s%s",
				target.Version, version.Failing.MessageOrReason(), butRequested(version, target))
		case version.Progressing.Message != "":
			result = engine.Wait("Progressing", "%s%s", version.Progressing.MessageOrReason(), butRequested(version, target))
		}
		operators, err := clusterstate.ListClusterOperators(ctx, r)
		if err != nil { // without the operators, no progress is visible
			return result.WithProgress(run.Progress)
		}
		isUpdated := func(o clusterstate.ClusterOperator) bool { return o.HasRelease(target.Version) == clusterstate.Yes }
		awaited := clusterstate.AwaitedOperators(version, operators, isUpdated)
		return result.WithProgress(engine.Progress(clusterstate.Progress(run.Progress).Observe(awaited, run.Now)))
	})
}

// IsUpgraded reports whether the target is the latest release in the history and is completely
// installed on the control plane.
func IsUpgraded(r client.Reader, target clusterstate.Target) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		return version.Observe(target) == clusterstate.ObservedDone, err
	}
}

// butRequested returns the end of a message about another client's request for another release;
// empty if there is none.
func butRequested(version clusterstate.Version, target clusterstate.Target) string {
	if version.ObserveRequest() == clusterstate.ObservedNone {
		return ""
	}
	return "; " + requestedByOther(version, target)
}

// requestedByOther describes another client's request. A request for the same version differs from
// the operator's own in its image or in force.
func requestedByOther(version clusterstate.Version, target clusterstate.Target) string {
	name := version.Requested.Release.String()
	if version.Requested.Version == target.Version {
		name = version.Requested.String()
	}
	return fmt.Sprintf("another client has requested %s in spec.desiredUpdate of the ClusterVersion", name)
}

// AnotherRequest returns a message if the update to the target is in progress while another client
// requests another release; empty otherwise.
func AnotherRequest(r client.Reader, target clusterstate.Target) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil || version.Observe(target) != clusterstate.ObservedBegun || version.ObserveRequest() == clusterstate.ObservedNone {
			return "", err
		}
		return requestedByOther(version, target), nil
	}
}

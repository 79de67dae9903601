// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// ObserveRequest returns the state of the request for the target, and the current result of the
// committing step. Both are empty if the target is not requested, or not in the way that the spec
// now requests it. States that may end the upgrade are confirmed with the API server, where the
// owner of the request is also visible. The start of this attempt's update needs no confirmation,
// because it only moves the upgrade forward. An update that started after the request counts even
// if another release has replaced it, because the operator may not have seen it.
func ObserveRequest(r, live client.Reader, target clusterstate.Target) func(context.Context, engine.Run) (engine.Observed, engine.Result, error) {
	return func(ctx context.Context, run engine.Run) (engine.Observed, engine.Result, error) {
		observe := func(version clusterstate.Version) clusterstate.Observed {
			switch {
			case !run.Requested:
				return version.Observe(target)
			case version.HasBegunSince(target, requestedSince(run)) && !version.Observe(target).HasBegun():
				return clusterstate.ObservedBegun
			}
			return version.ObserveOwn(target, run.RequestedImage)
		}
		version, err := readConfirmed(ctx, r, live, func(version clusterstate.Version) bool {
			observed := observe(version)
			return run.Confirm && observed != clusterstate.ObservedBegun && (!run.Requested || observed != clusterstate.ObservedDone)
		})
		if err != nil {
			return engine.ObservedNone, engine.Result{}, err
		}
		observed := observe(version)
		var answer engine.Result
		switch {
		case observed.HasBegun():
			answer = engine.Done("the cluster version operator has accepted %s", target.Version)
		case !run.Requested:
			answer = requestedByOtherClient(version, target, observed)
		case isOutdated(version, target):
		case observed == clusterstate.ObservedPending:
			answer = requestedResult(target)
		case observed == clusterstate.ObservedRefused:
			message, _ := version.Refusal()
			answer = engine.Wait("TargetRefused", "the cluster version operator refuses %s: %s", target.Version, message)
		}
		return engine.Observed(observed), answer, nil
	}
}

// requestedSince returns a time before which the requested update cannot have started: the request,
// or the start of the attempt if the clock of the operator was ahead at the request.
func requestedSince(run engine.Run) time.Time {
	if run.RequestTime.IsZero() || run.RequestTime.After(run.Now.Add(text.MaxClockSkew)) {
		return run.Started
	}
	return run.RequestTime.Add(-text.MaxClockSkew)
}

// IsCommenced reports whether the cluster is at the target or being updated to it. A negative
// answer is confirmed with the API server, because the upgrade may end because of it, and a cache
// may lack both the request and its acceptance.
func IsCommenced(r, live client.Reader, target clusterstate.Target) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		version, err := readConfirmed(ctx, r, live, func(v clusterstate.Version) bool { return !v.Observe(target).HasBegun() })
		return err == nil && version.Observe(target).HasBegun(), err
	}
}

func requestedResult(target clusterstate.Target) engine.Result {
	return engine.Wait("Requested", "requested %s from the cluster version operator", target.Version)
}

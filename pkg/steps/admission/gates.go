// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// The reasons why a version cannot be upgraded to.
const (
	ReasonInvalidVersion = "InvalidVersion"
	ReasonDowngrade      = "Downgrade"
)

// InstalledVersionKnown returns an error unless the ClusterVersion names the installed version.
func InstalledVersionKnown(r client.Reader) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		if version.Installed == "" {
			return engine.Result{}, errors.New("the ClusterVersion names no installed version yet")
		}
		return engine.Done("%s is installed", version.Installed), nil
	}
}

// SpecValid fails unless the requested release is an upgrade.
func SpecValid(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		if err := clusterstate.ValidateVersion(target.Version); err != nil {
			return engine.Fail(ReasonInvalidVersion, "spec.desired.version: %v", err), nil
		}
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		change, err := version.ChangeTo(target)
		switch {
		case err != nil:
			return engine.Result{}, err
		case change == clusterstate.Downgrade:
			return engine.Fail(ReasonDowngrade, "spec.desired.version is %s, and %s is installed: an upgrade leads to a newer version", target.Version, version.Installed), nil
		case change == clusterstate.Same && version.Completed && version.Current.HasOtherImage(target.Image):
			return engine.Fail(ReasonInvalidVersion, "spec.desired.image is not the image of %s that is installed: an upgrade leads to a newer version", target.Version), nil
		}
		return engine.Done("%s is an upgrade", target.Version), nil
	}
}

// NotThereYet fails if the cluster and its machine config pools have the release. If the cache is behind, the
// steps detect that.
func NotThereYet(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		installed, err := checks.IsInstalled(ctx, r, target)
		switch {
		case err != nil:
			return engine.Result{}, fmt.Errorf("determining whether %s is installed: %w", target.Version, err)
		case installed:
			return engine.Fail(engine.ReasonAlreadyAtVersion, "the cluster is at %s already; there was nothing to do", target.Version), nil
		}
		return engine.Done("%s is not installed everywhere", target.Version), nil
	}
}

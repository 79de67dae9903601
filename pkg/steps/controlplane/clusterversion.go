// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// getClusterVersion reads the ClusterVersion in order to write it. It may be shared: it is not to be changed.
func getClusterVersion(ctx context.Context, r client.Reader) (*configv1.ClusterVersion, clusterstate.Version, error) {
	var version configv1.ClusterVersion
	if err := r.Get(ctx, clusterstate.VersionKey, &version); err != nil {
		return nil, clusterstate.Version{}, fmt.Errorf("getting the cluster version: %w", err)
	}
	return &version, clusterstate.VersionOf(&version), nil
}

// patchSpec sends the fields of the spec that change has changed, on condition that
// the ClusterVersion still is as it was read; otherwise it does nothing and
// says that it is not fresh.
func patchSpec(ctx context.Context, w client.Writer, original *configv1.ClusterVersion, change func(*configv1.ClusterVersionSpec)) (applied bool, err error) {
	changed := original.DeepCopy()
	change(&changed.Spec)
	err = w.Patch(ctx, changed, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// retryOnConflict is the answer to what has changed under our hands.
func retryOnConflict() engine.Result {
	return engine.WaitFor(time.Second, "Retrying", "the cluster version has changed meanwhile; looking at it again")
}

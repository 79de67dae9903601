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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// get reads the ClusterVersion in order to write it. It may be shared: it is not to be changed.
func get(ctx context.Context, r client.Reader) (*configv1.ClusterVersion, cluster.Version, error) {
	var version configv1.ClusterVersion
	if err := r.Get(ctx, cluster.VersionKey, &version); err != nil {
		return nil, cluster.Version{}, fmt.Errorf("getting the cluster version: %w", err)
	}
	return &version, cluster.VersionOf(&version), nil
}

// patch sends the fields of the spec that change has changed, on condition that
// the ClusterVersion still is as it was read; otherwise it does nothing and
// says that it is not fresh.
func patch(ctx context.Context, w client.Writer, read *configv1.ClusterVersion, change func(*configv1.ClusterVersionSpec)) (fresh bool, err error) {
	changed := read.DeepCopy()
	change(&changed.Spec)
	err = w.Patch(ctx, changed, client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// lookAgain is the answer to what has changed under our hands.
func lookAgain() engine.Result {
	return engine.WaitFor(time.Second, "Retrying", "the cluster version has changed meanwhile; looking at it again")
}

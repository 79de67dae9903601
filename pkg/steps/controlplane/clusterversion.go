// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// getClusterVersion gets the ClusterVersion for a patch. It may be shared with the cache, so
// callers must not change it.
func getClusterVersion(ctx context.Context, r client.Reader) (*configv1.ClusterVersion, clusterstate.Version, error) {
	var version configv1.ClusterVersion
	if err := r.Get(ctx, clusterstate.VersionKey, &version); err != nil {
		return nil, clusterstate.Version{}, fmt.Errorf("getting the cluster version: %w", err)
	}
	return &version, clusterstate.VersionOf(&version), nil
}

// patchSpec patches the fields of the spec that change sets, with the resource version as a
// precondition. It returns false if the ClusterVersion has changed since it was read.
func patchSpec(ctx context.Context, w client.Writer, original *configv1.ClusterVersion, change func(*configv1.ClusterVersionSpec)) (applied bool, err error) {
	changed := original.DeepCopy()
	change(&changed.Spec)
	return patch(ctx, w, changed, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{}))
}

// patch patches a ClusterVersion. It returns false if the ClusterVersion has changed since it was read.
func patch(ctx context.Context, w client.Writer, version *configv1.ClusterVersion, patch client.Patch) (applied bool, err error) {
	err = w.Patch(ctx, version, patch, client.FieldOwner(clusterstate.FieldManager))
	if apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// FenceAnnotation is the annotation of the ClusterVersion that a fence changes.
const FenceAnnotation = "upgrade.managed.openshift.io/fence"

// fence changes the ClusterVersion unless it has changed since it was read, so earlier requests
// still in flight fail with a conflict. It returns false if the ClusterVersion has changed.
func fence(ctx context.Context, w client.Writer, original *configv1.ClusterVersion) (applied bool, err error) {
	changed := original.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, FenceAnnotation, original.ResourceVersion)
	return patch(ctx, w, changed, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{}))
}

const reasonRetrying = "Retrying"

// retryOnConflict returns a result that waits for one second after a conflict.
func retryOnConflict() engine.Result {
	return engine.WaitFor(time.Second, reasonRetrying, "the ClusterVersion has changed since it was read; reading it again")
}

// maxConflicts is how many conflicts in a row a step of the cleanup answers by reading again at once.
const maxConflicts = 5

// despiteConflicts repeats a step of the cleanup after a conflict, because it may have no later pass: the
// cluster version operator writes the ClusterVersion at any time, and the deadline of a deletion ends the
// cleanup.
func despiteConflicts(step engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		for range maxConflicts - 1 {
			if result, err := step(ctx, run); err != nil || result.Reason() != reasonRetrying {
				return result, err
			}
		}
		return step(ctx, run)
	}
}

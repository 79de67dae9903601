// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/feedback"
)

// ErrRepairPending is a work that cannot be deleted yet, because its deletion may delete the
// ClusterVersion.
var ErrRepairPending = errors.New("the agent has not applied its restored deleteOption, and may own the ClusterVersion")

// RemoveWork deletes a work, unless it has changed since it was read. A work whose deletion would delete
// the ClusterVersion, as a user may have edited it, is repaired first, and deleted once the agent has
// applied it: until then, the agent may own the ClusterVersion, and the error is ErrRepairPending.
func RemoveWork(ctx context.Context, c client.Client, work *workv1.ManifestWork) error {
	if !isProtected(work) {
		if err := repair(ctx, c, work); err != nil {
			return err
		}
		return awaitsRepair(work)
	}
	if f := feedback.Read(work); work.Annotations[delivery.RepairedAnnotation] != "" && f.Applied != metav1.ConditionTrue {
		switch reason, err := detached(ctx, c, work.Namespace); {
		case err != nil:
			return err
		case reason == "":
			return awaitsRepair(work)
		}
	}
	unchanged := client.Preconditions{UID: &work.UID, ResourceVersion: &work.ResourceVersion}
	if err := client.IgnoreNotFound(c.Delete(ctx, work.DeepCopy(), unchanged)); err != nil {
		return fmt.Errorf("deleting ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

// awaitsRepair returns the error for a work that cannot be deleted yet.
func awaitsRepair(work *workv1.ManifestWork) error {
	return fmt.Errorf("deleting ManifestWork %s/%s: %w", work.Namespace, work.Name, ErrRepairPending)
}

// isProtected reports whether no deletion of a work deletes the ClusterVersion.
func isProtected(work *workv1.ManifestWork) bool {
	isCollected := delivery.HasClusterVersion(work) && slices.ContainsFunc(work.OwnerReferences, isRun)
	return delivery.KeepsClusterVersion(work) && !isCollected
}

func isRun(owner metav1.OwnerReference) bool {
	return owner.Kind == "ClusterUpgradeRun" && strings.HasPrefix(owner.APIVersion, fleetv1alpha1.GroupVersion.Group+"/")
}

// repair restores the deleteOption of a work, and removes its owner.
func repair(ctx context.Context, c client.Client, work *workv1.ManifestWork) error {
	repaired := work.DeepCopy()
	if !delivery.KeepsClusterVersion(work) {
		repaired = delivery.KeepClusterVersion(work)
		if repaired.Annotations == nil {
			repaired.Annotations = map[string]string{}
		}
		repaired.Annotations[delivery.RepairedAnnotation] = "deleteOption"
	}
	repaired.OwnerReferences = slices.DeleteFunc(repaired.OwnerReferences, isRun)
	if err := c.Patch(ctx, repaired, client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("restoring the deleteOption of ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

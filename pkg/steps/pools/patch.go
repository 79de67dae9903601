// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"encoding/json"
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigpools,verbs=patch

// Release unpauses a pool and removes the mark in one request. It returns false if the pool has
// changed since it was read, and nothing was applied.
func Release(ctx context.Context, c client.Writer, pool clusterstate.Pool) (bool, error) {
	applied, err := patch(ctx, c, pool, new(false), nil)
	if err != nil {
		return false, fmt.Errorf("unpausing machine config pool %s: %w", pool.Name, err)
	}
	return applied, nil
}

// RemoveMark removes the mark of a pool that a user unpaused; see Release. If the user pauses the
// pool again, it counts as paused by the user.
func RemoveMark(ctx context.Context, c client.Writer, pool clusterstate.Pool) error {
	if _, err := patch(ctx, c, pool, nil, nil); err != nil {
		return fmt.Errorf("removing the mark of machine config pool %s: %w", pool.Name, err)
	}
	return nil
}

// pause pauses a pool and marks it in one request; see Release. If the pool is already paused, it
// only adds the mark.
func pause(ctx context.Context, c client.Writer, pool clusterstate.Pool, mark clusterstate.PoolMark) (bool, error) {
	var paused *bool
	if !pool.Paused {
		paused = new(true)
	}
	applied, err := patch(ctx, c, pool, paused, new(mark.String()))
	if err != nil {
		return false, fmt.Errorf("pausing machine config pool %s: %w", pool.Name, err)
	}
	return applied, nil
}

// patch sets spec.paused, unless paused is nil, and the mark. A nil mark removes it.
func patch(ctx context.Context, c client.Writer, pool clusterstate.Pool, paused *bool, mark *string) (bool, error) {
	changes := map[string]any{"metadata": map[string]any{
		"resourceVersion": pool.ResourceVersion, "annotations": map[string]any{clusterstate.AnnotationPausedBy: mark},
	}}
	if paused != nil {
		changes["spec"] = map[string]any{"paused": *paused}
	}
	data, err := json.Marshal(changes)
	if err != nil {
		return false, err
	}
	object := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: pool.Name}}
	err = c.Patch(ctx, object, client.RawPatch(types.MergePatchType, data), client.FieldOwner(clusterstate.FieldManager))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
)

// reconcileOperator reports the version of a release once the control plane pool has reached it.
// The other pools may take longer. If an update is reverted before the control plane pool has reached
// it, the version remains, and nothing is in progress any more.
func (s *Simulator) reconcileOperator(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request.Name != cvo.MachineConfig {
		return reconcile.Result{}, nil
	}
	var operator configv1.ClusterOperator
	if err := s.client.Get(ctx, request.NamespacedName, &operator); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	release, err := s.release(ctx)
	if err != nil || release == "" || release == cvo.VersionOf(&operator) && !cvo.IsUpdating(&operator) {
		return reconcile.Result{}, err
	}
	var master mcfgv1.MachineConfigPool
	if err := s.client.Get(ctx, client.ObjectKey{Name: Master}, &master); err != nil {
		return reconcile.Result{}, fmt.Errorf("getting the pool of the control plane: %w", err)
	}
	before, now := operator.DeepCopy(), s.options.Clock.Now()
	if release == cvo.VersionOf(&operator) || master.Status.Configuration.Name == RenderedName(Master, release) {
		cvo.SetVersion(&operator, release)
		cvo.SetCondition(&operator, configv1.OperatorProgressing, configv1.ConditionFalse, "AsExpected", "Cluster version is "+release, now)
	} else {
		cvo.SetUpdating(&operator, release, now)
	}
	if err := s.client.Status().Patch(ctx, &operator, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return reconcile.Result{}, fmt.Errorf("patching the status of cluster operator %s: %w", operator.Name, err)
	}
	return reconcile.Result{}, nil
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/feedback"
)

// Withdraw withdraws a request that the cluster has not accepted. It does not wait for a cluster that
// the hub cannot reach: its agent withdraws the request once it is back.
func (c *Cluster) Withdraw(ctx context.Context, _ engine.Run) (engine.Result, error) {
	if c.Run.Spec.ClusterVersion == nil {
		return noClusterVersion, nil
	}
	work, err := c.work(ctx, delivery.UpgradeName(c.Run.Namespace))
	switch {
	case err != nil:
		return engine.Result{}, err
	case !c.isOwn(work) || !work.DeletionTimestamp.IsZero():
		return engine.Skip(reasonNothingDelivered, "the upgrade was not requested"), nil
	}
	if p := ReadPlatform(c.Run, work); c.WasAccepted() || p.IsAccepted() || c.formOf(work) == delivery.FormReadOnly {
		return engine.Skip(reasonTargetAccepted, "the cluster has accepted %s", c.target()), nil
	}
	desired, err := c.upgradeWork(ctx, delivery.FormWithdraw)
	if err != nil {
		return engine.Result{}, err
	}
	work, result, err := c.deliver(ctx, desired)
	if err != nil || result.Reason() != reasonDelivered && !result.IsZero() {
		return result, err
	}
	if result.IsZero() && c.isWithdrawn(work) {
		return engine.Done("the request is withdrawn"), nil
	}
	reachable, err := c.isReachable(ctx)
	switch {
	case err != nil:
		return engine.Result{}, err
	case !reachable:
		return engine.Skip(reasonUnreachable, "the hub cannot reach the cluster; its agent withdraws the request once it is back"), nil
	}
	return engine.Wait(reasonDelivered, "waiting until the agent withdraws the request"), nil
}

// IsAccepted reports whether the history of the cluster holds the target.
func (p *Platform) IsAccepted() bool {
	return p.Stage == feedback.StagePartial || p.Stage == feedback.StageCompleted || p.Stage == feedback.StageSuperseded
}

// isWithdrawn reports whether the agent has withdrawn the request.
func (c *Cluster) isWithdrawn(work *workv1.ManifestWork) bool {
	if c.formOf(work) != delivery.FormWithdraw {
		return false
	}
	f := feedback.Read(work)
	return f.Applied == metav1.ConditionTrue
}

// isReachable reports whether the hub hears of the cluster.
func (c *Cluster) isReachable(ctx context.Context) (bool, error) {
	cluster, err := managedCluster(ctx, c.Client, c.Run.Namespace)
	if err != nil || cluster == nil {
		return false, err
	}
	return cluster.DeletionTimestamp.IsZero() && apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable), nil
}

// RemoveWorks removes the works that have no use once the attempt has ended: those of the preflight and
// of the operators, and that of the platform. The latter stays read-only after a failure, so that a late
// success is seen, and stays if the agent has not withdrawn the request. The work of the operators stays
// if its Job has failed, because the log of the Job has the cause; one that still runs is removed.
func (c *Cluster) RemoveWorks(ctx context.Context, run engine.Run) (engine.Result, error) {
	work, err := c.work(ctx, delivery.UpgradeName(c.Run.Namespace))
	if err != nil {
		return engine.Result{}, err
	}
	form, platform := c.formOf(work), ReadPlatform(c.Run, work)
	accepted := platform.IsAccepted()
	switch {
	case work == nil || form == "" || !work.DeletionTimestamp.IsZero():
	case run.Failure == nil, c.isWithdrawn(work) && !accepted:
		err = c.remove(ctx, work.Name)
	case form == delivery.FormApply, accepted:
		var result engine.Result
		if result, err = c.observeOnly(ctx, work); err == nil && !result.IsZero() {
			return result, nil
		}
	}
	err = errors.Join(err, c.remove(ctx, delivery.PreflightName(c.Run.Namespace)), c.removeOperators(ctx))
	if err != nil {
		return engine.Result{}, err
	}
	return engine.Done("the ManifestWorks are removed"), nil
}

// removeOperators removes the work of the operators unless its Job has failed in this attempt.
func (c *Cluster) removeOperators(ctx context.Context) error {
	name := delivery.OperatorsName(c.Run.Namespace)
	work, err := c.work(ctx, name)
	if err != nil {
		return err
	}
	if c.formOf(work) == delivery.FormApply {
		f := feedback.Read(work)
		if state, _ := f.Action(); state == fleetv1alpha1.ActionDegraded {
			return nil
		}
	}
	return c.remove(ctx, name)
}

// RemoveAll removes all works of the run, of its actions, too. It does not wait.
func (c *Cluster) RemoveAll(ctx context.Context) error {
	var errs []error
	for _, name := range c.names() {
		errs = append(errs, c.remove(ctx, name))
	}
	return errors.Join(errs...)
}

// RemoveUpgrade removes the work of the platform.
func (c *Cluster) RemoveUpgrade(ctx context.Context) error {
	return c.remove(ctx, delivery.UpgradeName(c.Run.Namespace))
}

// RemoveActions removes the works of the actions, and the sets that create them on all clusters.
func (c *Cluster) RemoveActions(ctx context.Context) error {
	var errs []error
	for _, action := range []delivery.Action{delivery.PreUpgrade, delivery.PostUpgrade} {
		name := delivery.ActionName(c.Run.Spec.ManagedClustersUpgrade.UID, action)
		errs = append(errs, c.removeReplicaSet(ctx, name), c.remove(ctx, name))
	}
	return errors.Join(errs...)
}

// names returns the names of the works of the run.
func (c *Cluster) names() []string {
	uid := c.Run.Spec.ManagedClustersUpgrade.UID
	return []string{
		delivery.UpgradeName(c.Run.Namespace), delivery.PreflightName(c.Run.Namespace), delivery.OperatorsName(c.Run.Namespace),
		delivery.ActionName(uid, delivery.PreUpgrade), delivery.ActionName(uid, delivery.PostUpgrade),
	}
}

// ProtectClusterVersion repairs each work of the run whose deletion would delete the ClusterVersion, as
// a user may have edited it. It reports whether a work contains the ClusterVersion.
func (c *Cluster) ProtectClusterVersion(ctx context.Context) (bool, error) {
	found := false
	var errs []error
	for _, name := range c.names() {
		work, err := c.work(ctx, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !c.isOwn(work) || !work.DeletionTimestamp.IsZero() || !delivery.HasClusterVersion(work) {
			continue
		}
		found = true
		if !isProtected(work) {
			errs = append(errs, repair(ctx, c.Client, work))
		}
	}
	return found, errors.Join(errs...)
}

// remove deletes a work of the run.
func (c *Cluster) remove(ctx context.Context, name string) error {
	if err := c.unlist(ctx, name); err != nil {
		return err
	}
	work, err := c.work(ctx, name)
	switch {
	case err != nil:
		return err
	case !c.isOwn(work) || !work.DeletionTimestamp.IsZero() || delivery.IsOfReplicaSet(work):
		return nil
	}
	return RemoveWork(ctx, c.Client, work)
}

// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
)

// Withdraw withdraws a request that the cluster has not accepted. It does not wait for a cluster that the hub cannot reach:
// its agent withdraws the request once it is back.
func (c *Cluster) Withdraw(ctx context.Context, run engine.Run) (engine.Result, error) {
	if c.Run.Spec.ClusterVersion == nil {
		return noClusterVersion, nil
	}
	work, err := c.work(ctx, delivery.UpgradeName(c.Run.Namespace))
	cluster, err2 := ManagedCluster(ctx, c.Client, c.Run.Namespace)
	hasLeft := cluster == nil || !cluster.DeletionTimestamp.IsZero()
	wasApplied, isDeleted := c.Record.Step(fleetv1alpha1.StepUpgradeDelivered).CompleteTime != nil, work == nil || c.isOwn(work) && !work.DeletionTimestamp.IsZero()
	switch err := errors.Join(err, err2); {
	case err != nil:
		return engine.Result{}, err
	case wasApplied && isDeleted && hasLeft: // its works go with it
		return engine.Skip(fleetv1alpha1.ReasonClusterDetached, "the cluster has left the hub"), nil
	case wasApplied && isDeleted: // another client deletes it, and the request stays
	case work == nil && run.Requested:
		return c.fence(ctx)
	case !c.isOwn(work) || !work.DeletionTimestamp.IsZero() || c.formOf(work) == delivery.FormFence:
		return engine.Skip(reasonNothingDelivered, "the upgrade was not requested"), nil
	}
	if p := ReadPlatform(c.Run, work); c.WasAccepted() || p.IsAccepted() || c.formOf(work) == delivery.FormReadOnly {
		return engine.Skip(reasonTargetAccepted, "the cluster has accepted %s", c.target()), nil
	}
	var current clusterstate.Release
	if version := delivery.Read(work).ClusterVersion(); version.Version.IsKnown() && version.Image.IsKnown() {
		current = clusterstate.Release{Version: version.Version.Text, Image: version.Image.Text}
	}
	work, result, err := c.deliverUpgrade(ctx, delivery.FormWithdraw, current)
	if err != nil || result.Reason() != fleetv1alpha1.ReasonDelivered && !result.IsZero() {
		return result, err
	}
	if result.IsZero() && c.isWithdrawn(work) {
		return engine.Done("the request is withdrawn"), nil
	}
	switch {
	case hasLeft || admission.Unreachable(cluster) != "":
		return engine.Skip(fleetv1alpha1.ReasonUnreachable, "the hub cannot reach the cluster; its agent withdraws the request once it is back"), nil
	case c.isAgentOverdue(run.Now):
		return engine.Skip(fleetv1alpha1.ReasonAgentSilent, "the agent does not report; it withdraws the request once it is back"), nil
	}
	return engine.Wait(fleetv1alpha1.ReasonDelivered, "waiting until the agent withdraws the request"), nil
}

// isAgentOverdue reports whether the agent of an available cluster has neither applied the request in time, nor withdrawn it
// since. The cleanup has its own timeout.
func (c *Cluster) isAgentOverdue(now time.Time) bool {
	due := delivery.ApplyBy(c.Run, &c.Record)
	return c.Record.Step(fleetv1alpha1.StepUpgradeDelivered).CompleteTime == nil && !due.IsZero() && !now.Before(due.Add(withdrawTimeout))
}

// fence writes a work that only observes in place of a request whose answer may have been lost. Reading says nothing
// about a request still on its way: it conflicts with this work once it arrives.
func (c *Cluster) fence(ctx context.Context) (engine.Result, error) {
	_, result, err := c.deliverUpgrade(ctx, delivery.FormFence, clusterstate.Release{})
	if err == nil && (result.IsZero() || result.Reason() == fleetv1alpha1.ReasonDelivered) {
		result = engine.Skip(reasonNothingDelivered, "the upgrade was not requested")
	}
	return result, err
}

// IsAccepted reports whether the history of the cluster holds the target.
func (p *Platform) IsAccepted() bool {
	return p.Stage == delivery.StagePartial || p.Stage == delivery.StageCompleted || p.Stage == delivery.StageSuperseded
}

func (c *Cluster) isWithdrawn(work *workv1.ManifestWork) bool {
	return c.formOf(work) == delivery.FormWithdraw && delivery.Read(work).IsApplied()
}

// RemoveWorks removes the works of the preflight, the operators, and the platform once the attempt has ended. After a
// failure, the work of the platform stays read-only, to see a late success, and it stays if the agent has not withdrawn the
// request. The work of the operators stays if its Job has failed, because the log of the Job has the cause; a Job that
// still runs is removed.
func (c *Cluster) RemoveWorks(ctx context.Context, run engine.Run) (engine.Result, error) {
	work, err := c.work(ctx, delivery.UpgradeName(c.Run.Namespace))
	if err != nil {
		return engine.Result{}, err
	}
	form, platform := c.formOf(work), ReadPlatform(c.Run, work)
	accepted := platform.IsAccepted()
	switch {
	case work == nil || form == "" || !work.DeletionTimestamp.IsZero():
	case run.Failure == nil, form == delivery.FormFence, c.isWithdrawn(work) && !accepted:
		err = c.remove(ctx, work.Name)
	case form == delivery.FormApply, accepted:
		var result engine.Result
		if result, err = c.observeOnly(ctx, work); err == nil && !result.IsZero() {
			return result, nil
		}
	}
	err = errors.Join(err, c.RemovePreflight(ctx), c.removeOperators(ctx))
	if err != nil {
		return engine.Result{}, err
	}
	return engine.Done("the ManifestWorks are removed"), nil
}

// RemovePreflight removes the work of the preflight, unless it shows that a pending cluster is obstructed.
func (c *Cluster) RemovePreflight(ctx context.Context) error {
	if c.Run.Spec.AdmissionTime.IsZero() {
		if obstructed, err := c.IsObstructed(ctx); err != nil || obstructed {
			return err
		}
	}
	return c.remove(ctx, delivery.PreflightName(c.Run.Namespace))
}

// IsObstructed reports whether the works that precede the request show that a cluster cannot begin: its agent has not applied
// one, or has not removed an earlier one, or its administrators hold the cluster. After a cancellation, nothing waits for that.
func (c *Cluster) IsObstructed(ctx context.Context) (bool, error) {
	switch upgrade, err := Upgrade(ctx, c.Client, c.Run); {
	case errors.Is(err, ErrNoUpgrade), err == nil && upgrade.Spec.Cancelled:
		return false, nil
	case err != nil:
		return false, err
	}
	silent := false
	for _, name := range []string{delivery.PreflightName(c.Run.Namespace), c.actions()[0]} {
		work, err := c.work(ctx, name)
		switch f := delivery.Read(work); {
		case err != nil:
			return false, err
		case work == nil, !f.Deleting && !c.isOwn(work):
		case f.Applied == metav1.ConditionUnknown: // as of one that is being deleted
			silent = true
		default:
			version := f.ClusterVersion()
			found := admission.CheckHistory(&version, delivery.TargetOf(c.Run))
			return version.State.IsKnown() && found.IsHold(), nil
		}
	}
	return silent, nil
}

// removeOperators removes the work of the operators unless its Job has failed in this attempt.
func (c *Cluster) removeOperators(ctx context.Context) error {
	name := delivery.OperatorsName(c.Run.Namespace)
	work, err := c.work(ctx, name)
	if err != nil || c.formOf(work) == delivery.FormApply && isDegraded(work) {
		return err
	}
	return c.remove(ctx, name)
}

// RemoveAll removes all works of the run, with the works of its actions. It does not wait.
func (c *Cluster) RemoveAll(ctx context.Context) error {
	var errs []error
	for _, name := range c.names() {
		errs = append(errs, c.remove(ctx, name))
	}
	return errors.Join(errs...)
}

// Tidy removes the works that another process has written after the attempt has ended. If it has failed, a request that the
// cluster has not accepted is withdrawn first.
func (c *Cluster) Tidy(ctx context.Context, run engine.Run, failed bool) error {
	if failed {
		run.Failure = &history.StepCondition{}
		work, err := c.work(ctx, delivery.UpgradeName(c.Run.Namespace))
		if err != nil {
			return err
		}
		if form := c.formOf(work); form == delivery.FormApply || form == delivery.FormWithdraw {
			if _, err := c.Withdraw(ctx, run); err != nil {
				return err
			}
		}
	}
	_, err := c.RemoveWorks(ctx, run)
	return err
}

// RemoveActions removes the works of the actions, and the Placements that own the sets with such works on all clusters.
func (c *Cluster) RemoveActions(ctx context.Context) error {
	var errs []error
	for _, name := range c.actions() {
		errs = append(errs, discard[ocmv1beta1.Placement](ctx, c.Client, "Placement", c.ofUpgrade(name)), c.remove(ctx, name))
	}
	return errors.Join(errs...)
}

func (c *Cluster) names() []string {
	cluster := c.Run.Namespace
	return append(c.actions(), delivery.UpgradeName(cluster), delivery.PreflightName(cluster), delivery.OperatorsName(cluster))
}

func (c *Cluster) actions() []string {
	uid := c.Run.Spec.ManagedClustersUpgrade.UID
	return []string{delivery.ActionName(uid, delivery.PreUpgrade), delivery.ActionName(uid, delivery.PostUpgrade)}
}

// ProtectClusterVersion repairs each work of the run whose deletion would delete the ClusterVersion, as a user may have
// edited it. It reports whether a work contains the ClusterVersion.
func (c *Cluster) ProtectClusterVersion(ctx context.Context) (bool, error) {
	works, err := c.withClusterVersion(ctx, c.Client)
	for i := range works {
		if !isProtected(&works[i]) {
			err = errors.Join(err, repair(ctx, c.Client, &works[i]))
		}
	}
	return len(works) > 0, err
}

// DeliversClusterVersion reports whether the API server has a work of the run that contains the ClusterVersion.
func (c *Cluster) DeliversClusterVersion(ctx context.Context, live client.Reader) (bool, error) {
	works, err := c.withClusterVersion(ctx, live)
	return len(works) > 0, err
}

// withClusterVersion returns the works of the run that contain the ClusterVersion and are not being deleted.
func (c *Cluster) withClusterVersion(ctx context.Context, r client.Reader) ([]workv1.ManifestWork, error) {
	var works workv1.ManifestWorkList
	own := client.MatchingLabels{fleetv1beta1.UpgradeLabel: c.Run.Spec.ManagedClustersUpgrade.UID}
	if err := r.List(ctx, &works, client.InNamespace(c.Run.Namespace), own); err != nil {
		return nil, fmt.Errorf("listing the works of ClusterUpgradeRun %s/%s: %w", c.Run.Namespace, c.Run.Name, err)
	}
	names := c.names()
	return slices.DeleteFunc(works.Items, func(work workv1.ManifestWork) bool {
		return !slices.Contains(names, work.Name) || !work.DeletionTimestamp.IsZero() || !delivery.HasClusterVersion(&work)
	}), nil
}

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
	if err := RemoveWork(ctx, c.Client, work); err != nil {
		return err
	}
	c.Writes.note(client.ObjectKeyFromObject(work), nil, "")
	return nil
}

// ErrRepairPending is a work that cannot be deleted yet, because its deletion may delete the ClusterVersion.
var ErrRepairPending = errors.New("the agent has not applied its restored deleteOption, and may own the ClusterVersion")

// RemoveWork deletes a work, unless it has changed since it was read. A work whose deletion would delete the ClusterVersion,
// as a user may have edited it, is repaired first. Until the agent has applied the repair, it may own the ClusterVersion,
// and the error is ErrRepairPending.
func RemoveWork(ctx context.Context, c client.Client, work *workv1.ManifestWork) error {
	if !isProtected(work) {
		if err := repair(ctx, c, work); err != nil {
			return err
		}
		return awaitsRepair(work)
	}
	if work.Annotations[delivery.RepairedAnnotation] != "" && !delivery.Read(work).IsApplied() {
		switch cluster, err := ManagedCluster(ctx, c, work.Namespace); {
		case err != nil:
			return err
		case admission.Detached(cluster) == "":
			return awaitsRepair(work)
		}
	}
	unchanged := client.Preconditions{UID: &work.UID, ResourceVersion: &work.ResourceVersion}
	if err := client.IgnoreNotFound(c.Delete(ctx, work.DeepCopy(), unchanged)); err != nil {
		return fmt.Errorf("deleting ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

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
		metav1.SetMetaDataAnnotation(&repaired.ObjectMeta, delivery.RepairedAnnotation, "deleteOption")
	}
	repaired.OwnerReferences = slices.DeleteFunc(repaired.OwnerReferences, isRun)
	if err := c.Patch(ctx, repaired, client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("restoring the deleteOption of ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

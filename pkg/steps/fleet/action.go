// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/feedback"
)

// failReasons are the reasons with which an action fails a run.
var failReasons = map[delivery.Action]string{
	delivery.PreUpgrade:  fleetv1alpha1.ReasonPreActionDegraded,
	delivery.PostUpgrade: fleetv1alpha1.ReasonPostActionDegraded,
}

// The answers of steps that have nothing to do.
var (
	noAction         = engine.Skip(ReasonNoAction, "there is no such action")
	noOperators      = engine.Skip(ReasonNoOperators, "no operators are upgraded")
	noClusterVersion = engine.Skip(ReasonNoClusterVersion, "no release is requested")
	noSoak           = engine.Skip(ReasonNoSoak, "the cluster is complete at once")
)

// SkipAction answers for the step of an action that the upgrade does not have; the zero Result means that
// it has it, or that the upgrade is not known, which is nil.
func SkipAction(upgrade *fleetv1beta1.ManagedClustersUpgrade, action delivery.Action) engine.Result {
	if upgrade == nil || delivery.HasAction(upgrade, action) {
		return engine.Result{}
	}
	return noAction
}

// SkipOperators does the same for the step of the operators.
func SkipOperators(upgrade *fleetv1beta1.ManagedClustersUpgrade) engine.Result {
	if upgrade == nil || delivery.ApprovesOperators(upgrade) {
		return engine.Result{}
	}
	return noOperators
}

// SkipPlatform answers for the wait for the platform if no release is requested; the zero Result means
// that one is.
func (c *Cluster) SkipPlatform() engine.Result {
	if c.Run.Spec.ClusterVersion == nil {
		return noClusterVersion
	}
	return engine.Result{}
}

// SkipSoak answers for the soak of a cluster that does not soak; the zero Result means that it does.
func (c *Cluster) SkipSoak() engine.Result {
	if c.Run.Spec.Timeouts.Soak == "" {
		return noSoak
	}
	return engine.Result{}
}

// ActionAvailable applies an action, and waits until it is available.
func (c *Cluster) ActionAvailable(action delivery.Action) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		upgrade, err := c.upgrade(ctx)
		if err != nil {
			return engine.Result{}, err
		}
		desired, err := delivery.ActionWork(c.Run, upgrade, action)
		switch {
		case err != nil:
			return engine.Result{}, fmt.Errorf("building the ManifestWork of the action: %w", err)
		case desired == nil:
			return noAction, nil
		case c.ReplicaSets:
			desired = delivery.ByReplicaSet(upgrade, desired)
		}
		result, err := c.available(ctx, desired, failReasons[action])
		if err == nil && result.Reason() == reasonListed {
			return c.awaitReplicaSet(ctx, desired.Name, run.Now, result)
		}
		return result, err
	}
}

// IsActionAvailable reports whether this attempt has applied an action, and it is available.
func (c *Cluster) IsActionAvailable(action delivery.Action) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		return c.isAvailable(ctx, delivery.ActionName(c.Run.Spec.ManagedClustersUpgrade.UID, action))
	}
}

// errNoImage is a hub that does not know its own image.
var errNoImage = errors.New("the image of the Job that approves operators is not configured")

// OperatorsUpgraded approves the upgrades of the operators, and waits until they are upgraded.
func (c *Cluster) OperatorsUpgraded(ctx context.Context, _ engine.Run) (engine.Result, error) {
	upgrade, err := c.upgrade(ctx)
	switch {
	case err != nil:
		return engine.Result{}, err
	case !delivery.ApprovesOperators(upgrade):
		return noOperators, nil
	case c.Image == "":
		return engine.Result{}, errNoImage
	}
	desired, err := delivery.OperatorsWork(c.Run, upgrade, c.Image)
	if err != nil {
		return engine.Result{}, fmt.Errorf("building the ManifestWork that upgrades the operators: %w", err)
	}
	result, err := c.available(ctx, desired, fleetv1alpha1.ReasonOperatorsFailed)
	if result.Reason() == fleetv1alpha1.ReasonOperatorsFailed {
		result = engine.Fail(result.Reason(), "%s; on the cluster, `%s` shows why", result.Message(), delivery.LogCommand(desired))
	}
	return result, err
}

// AreOperatorsUpgraded reports whether the operators are upgraded.
func (c *Cluster) AreOperatorsUpgraded(ctx context.Context) (bool, error) {
	return c.isAvailable(ctx, delivery.OperatorsName(c.Run.Namespace))
}

// available delivers a work, and waits until it is available. It fails with the reason if the work is
// degraded.
func (c *Cluster) available(ctx context.Context, desired *workv1.ManifestWork, reason string) (engine.Result, error) {
	if result, err := c.failIfDetached(ctx); err != nil || !result.IsZero() {
		return result, err
	}
	work, result, err := c.deliver(ctx, desired)
	if err != nil || !result.IsZero() {
		return result, err
	}
	f := feedback.Read(work)
	switch state, message := f.Action(); state {
	case fleetv1alpha1.ActionAvailable:
		return engine.Done("all objects of %s are available", work.Name), nil
	case fleetv1alpha1.ActionDegraded:
		return engine.Fail(reason, "%s", message), nil
	case fleetv1alpha1.ActionProgressing:
		switch { // each reason is saved at once, with its message
		case f.Applied != metav1.ConditionTrue:
			return waitForApply(work.Name, &f), nil
		case f.Available != metav1.ConditionTrue:
			return engine.Wait(reasonDelivered, "%s", message), nil
		}
		return engine.Wait(string(fleetv1alpha1.ActionProgressing), "%s", message), nil
	}
	return engine.Result{}, nil
}

func (c *Cluster) isAvailable(ctx context.Context, name string) (bool, error) {
	work, err := c.work(ctx, name)
	if err != nil || c.formOf(work) != delivery.FormApply {
		return false, err
	}
	f := feedback.Read(work)
	state, _ := f.Action()
	return state == fleetv1alpha1.ActionAvailable, nil
}

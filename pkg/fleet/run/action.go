// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
)

// Answers of steps that have nothing to do.
var (
	noAction         = engine.Skip(ReasonNoAction, "there is no such action")
	noOperators      = engine.Skip(ReasonNoOperators, "no operators are upgraded")
	noClusterVersion = engine.Skip(ReasonNoClusterVersion, "no release is requested")
	noSoak           = engine.Skip(ReasonNoSoak, "the cluster is complete at once")
)

// actionAvailable applies an action, and waits until it is available. It fails with the reason.
func (c *Cluster) actionAvailable(action delivery.Action, reason string) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		upgrade, err := Upgrade(ctx, c.Client, c.Run)
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
		result, err := c.available(ctx, desired, reason, (*delivery.Feedback).Action)
		if err == nil && result.Reason() == reasonListed {
			return c.awaitReplicaSet(ctx, desired.Name, run.Now, result)
		}
		return result, err
	}
}

// OperatorsUpgraded approves the upgrades of the operators, and waits until they are upgraded.
func (c *Cluster) OperatorsUpgraded(ctx context.Context, _ engine.Run) (engine.Result, error) {
	upgrade, err := Upgrade(ctx, c.Client, c.Run)
	switch {
	case err != nil:
		return engine.Result{}, err
	case !delivery.ApprovesOperators(upgrade):
		return noOperators, nil
	case c.Image == "":
		return engine.Result{}, errors.New("the image of the Job that approves operators is not configured")
	}
	desired, result, err := c.operatorsWork(ctx, upgrade)
	if err != nil || !result.IsZero() {
		return result, err
	}
	result, err = c.available(ctx, desired, fleetv1alpha1.ReasonOperatorsFailed, stateOf(desired))
	if result.Reason() == fleetv1alpha1.ReasonOperatorsFailed {
		result = engine.Fail(result.Reason(), "%s; on the cluster, `%s` shows why", result.Message(), delivery.LogCommand(desired))
	}
	return result, err
}

// operatorsWork returns the work that approves the operators. First, the agent looks at the namespaces on the cluster: the
// hub uses no namespace that others have created.
func (c *Cluster) operatorsWork(ctx context.Context, upgrade *fleetv1beta1.ManagedClustersUpgrade) (*workv1.ManifestWork, engine.Result, error) {
	if _, result, err := c.attached(ctx); err != nil || !result.IsZero() {
		return nil, result, err
	}
	work, err := c.work(ctx, delivery.OperatorsName(c.Run.Namespace))
	if err != nil {
		return nil, engine.Result{}, err
	}
	if c.formOf(work) == delivery.FormApply && work.DeletionTimestamp.IsZero() {
		approval := delivery.Read(work).Approval()
		adapted, err := delivery.AdaptOperatorsWork(work, upgrade, &approval)
		return adapted, engine.Result{}, err
	}
	preflight, err := delivery.OperatorsPreflightWork(c.Run, upgrade)
	if err != nil {
		return nil, engine.Result{}, fmt.Errorf("building the ManifestWork that looks for the namespaces: %w", err)
	}
	f, result, err := c.apply(ctx, preflight)
	if err != nil || !result.IsZero() {
		return nil, result, err
	}
	name, label := delivery.ApproverNamespace()
	namespace := f.Namespace(name)
	switch {
	case f.HasUnknown():
		return nil, engine.Wait(reasonNoFeedback, "waiting until the agent reports which namespaces exist"), nil
	case namespace.Exists == metav1.ConditionTrue && !namespace.IsApprover:
		return nil, engine.Fail(fleetv1alpha1.ReasonOperatorsFailed,
			"the cluster has a namespace %s that the hub has not created; delete it, or label it %s=true if only administrators may change its content", name, label), nil
	}
	desired, err := delivery.OperatorsWork(c.Run, upgrade, c.Image, func(namespace string) bool {
		return f.Namespace(namespace).Exists == metav1.ConditionTrue
	})
	if err != nil {
		return nil, engine.Result{}, fmt.Errorf("building the ManifestWork that upgrades the operators: %w", err)
	}
	return desired, engine.Result{}, nil
}

// state reads how far the objects of a work are, and explains it.
type state func(*delivery.Feedback) (fleetv1alpha1.ActionState, string)

func stateOf(work *workv1.ManifestWork) state {
	if delivery.Reports(work) {
		return (*delivery.Feedback).Operators
	}
	return (*delivery.Feedback).Action
}

// available delivers a work, and waits until it is available. It fails with the reason if the work is Degraded.
func (c *Cluster) available(ctx context.Context, desired *workv1.ManifestWork, reason string, read state) (engine.Result, error) {
	if _, result, err := c.attached(ctx); err != nil || !result.IsZero() {
		return result, err
	}
	work, result, err := c.deliver(ctx, desired)
	if err != nil || !result.IsZero() {
		return result, err
	}
	f := delivery.Read(work)
	switch state, message := read(f); state {
	case fleetv1alpha1.ActionAvailable:
		return engine.Done("all objects of %s are available", work.Name), nil
	case fleetv1alpha1.ActionDegraded:
		return engine.Fail(reason, "%s", message), nil
	case fleetv1alpha1.ActionProgressing:
		switch { // each reason is saved at once, with its message
		case !f.IsApplied():
			return waitForApply(work.Name, f), nil
		case f.Available != metav1.ConditionTrue:
			return engine.Wait(reasonApplied, "%s", message), nil
		case delivery.Reports(work) && f.Approval().Over:
			return engine.Wait(reasonInstallPlans, "%s", message), nil
		}
		return engine.Wait(string(fleetv1alpha1.ActionProgressing), "%s", message), nil
	}
	return engine.Result{}, nil
}

// isAvailable reports whether this attempt has applied a work, and its objects are available.
func (c *Cluster) isAvailable(name string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		work, err := c.work(ctx, name)
		if err != nil || c.formOf(work) != delivery.FormApply {
			return false, err
		}
		state, _ := stateOf(work)(delivery.Read(work))
		return state == fleetv1alpha1.ActionAvailable, nil
	}
}

// deploy/action-replica-sets has the same permissions: without the flag, the hub has none of them.
//
// +kubebuilder:rbac:groups=work.open-cluster-management.io,resources=manifestworkreplicasets,verbs=list;watch;create
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions,verbs=create;delete
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions/status,verbs=patch

// errCollected is an object whose Placement was replaced: the garbage collector deletes it.
var errCollected = errors.New("it belongs to an earlier Placement, and is about to be deleted")

// ReplicaSetLimit is how long a ManifestWorkReplicaSet may take for a work before the step of the action is slow, for
// ReasonReplicaSetIgnored.
const (
	ReplicaSetLimit         = time.Minute
	ReasonReplicaSetIgnored = "ReplicaSetIgnored"
)

// list has the ManifestWorkReplicaSet of an action create the work of the cluster.
func (c *Cluster) list(ctx context.Context, desired *workv1.ManifestWork) (engine.Result, error) {
	switch err := c.writeDecision(ctx, desired); {
	case errors.Is(err, errCollected), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return engine.WaitFor(retryAfter, reasonConflict, "ManifestWorkReplicaSet %s is being replaced", desired.Name), nil
	case err != nil:
		return engine.Result{}, fmt.Errorf("delivering by ManifestWorkReplicaSet %s: %w", desired.Name, err)
	}
	return engine.Wait(reasonListed, "waiting until ManifestWorkReplicaSet %s creates the ManifestWork", desired.Name), nil
}

// awaitReplicaSet waits until the set of an action creates the work of the cluster, and says what to do if it does not.
func (c *Cluster) awaitReplicaSet(ctx context.Context, action string, now time.Time, wait engine.Result) (engine.Result, error) {
	decision, err := c.decision(ctx, action)
	if err != nil {
		return engine.Result{}, err
	}
	left := ReplicaSetLimit
	if decision != nil { // and cached
		left -= now.Sub(decision.CreationTimestamp.Time)
	}
	if left > 0 {
		return engine.WaitFor(left, wait.Reason(), "%s", wait.Message()), nil
	}
	return engine.Wait(ReasonReplicaSetIgnored, "not delivered by ManifestWorkReplicaSet %s within %s: see whether the work manager of the hub runs with the feature gate "+
		"ManifestWorkReplicaSet; if it must not, remove the flag --action-replica-sets of this program", action, ReplicaSetLimit), nil
}

// writeDecision lists the cluster for an action, and creates the Placement and the set if they do not exist.
func (c *Cluster) writeDecision(ctx context.Context, desired *workv1.ManifestWork) error {
	upgrade, err := Upgrade(ctx, c.Client, c.Run)
	if err != nil {
		return err
	}
	placement, err := ensure(ctx, c.Client, "Placement", delivery.ActionPlacement(upgrade, desired.Name), upgrade)
	if err != nil {
		return err
	}
	if _, err := ensure(ctx, c.Client, "ManifestWorkReplicaSet", delivery.ActionReplicaSet(placement, desired), placement); err != nil {
		return err
	}
	decision, err := ensure(ctx, c.Client, "PlacementDecision", delivery.ActionDecision(placement, desired), placement)
	switch {
	case err != nil:
		return err
	case decision.Annotations[delivery.Annotation] != desired.Annotations[delivery.Annotation]: // of an earlier attempt
		return errors.Join(errCollected, c.unlist(ctx, desired.Name))
	case len(decision.Status.Decisions) > 0:
		return nil
	}
	before := decision.DeepCopy()
	decision.Status.Decisions = []ocmv1beta1.ClusterDecision{{ClusterName: desired.Namespace}}
	if err := c.Client.Status().Patch(ctx, decision, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("setting the status of PlacementDecision %s: %w", decision.Name, err)
	}
	return nil
}

// ensure returns an object that has an owner, and creates it as desired if it does not exist. The error is errCollected if
// the object is being deleted, or will be because its owner was replaced.
func ensure[T any, P pointer[T]](ctx context.Context, c client.Client, kind string, desired P, owner client.Object) (P, error) {
	existing, err := get[T, P](ctx, c, kind, client.ObjectKeyFromObject(desired))
	switch {
	case err != nil:
		return nil, err
	case existing == nil:
		if err := c.Create(ctx, desired); err != nil {
			return nil, fmt.Errorf("creating %s: %w", desired.GetName(), err)
		}
		return desired, nil
	case !existing.GetDeletionTimestamp().IsZero() || !metav1.IsControlledBy(existing, owner):
		return nil, errCollected
	}
	return existing, nil
}

// decision returns the PlacementDecision that lists the cluster for an action; nil if none does.
func (c *Cluster) decision(ctx context.Context, action string) (*ocmv1beta1.PlacementDecision, error) {
	return get[ocmv1beta1.PlacementDecision](ctx, c.Client, "PlacementDecision", c.ofUpgrade(delivery.ActionDecisionName(action, c.Run.Namespace)))
}

// identify annotates the work of a set, in memory, with what it delivers. The work manager would remove such an annotation.
func (c *Cluster) identify(ctx context.Context, work *workv1.ManifestWork) error {
	decision, err := c.decision(ctx, work.Name)
	if err != nil || decision == nil || !decision.DeletionTimestamp.IsZero() {
		return err
	}
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, delivery.Annotation, decision.Annotations[delivery.Annotation])
	return nil
}

// UnlistActions has the sets of the actions delete the works of the cluster.
func (c *Cluster) UnlistActions(ctx context.Context) error {
	return errors.Join(c.unlist(ctx, c.actions()[0]), c.unlist(ctx, c.actions()[1]))
}

func (c *Cluster) unlist(ctx context.Context, action string) error {
	return discard[ocmv1beta1.PlacementDecision](ctx, c.Client, "PlacementDecision", c.ofUpgrade(delivery.ActionDecisionName(action, c.Run.Namespace)))
}

// ofUpgrade returns the key of an object beside the ManagedClustersUpgrade.
func (c *Cluster) ofUpgrade(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: c.Run.Spec.ManagedClustersUpgrade.Namespace, Name: name}
}

// discard deletes an object, unless it does not exist or is being deleted.
func discard[T any, P pointer[T]](ctx context.Context, c client.Client, kind string, key client.ObjectKey) error {
	object, err := get[T, P](ctx, c, kind, key)
	if err != nil || object == nil || !object.GetDeletionTimestamp().IsZero() {
		return err
	}
	if err := client.IgnoreNotFound(c.Delete(ctx, object, client.Preconditions{UID: new(object.GetUID())})); err != nil {
		return fmt.Errorf("deleting %s %s: %w", kind, key, err)
	}
	return nil
}

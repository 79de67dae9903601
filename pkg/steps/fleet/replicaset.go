// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
)

// These permissions are those of deploy/action-replica-sets: without the flag, the hub has none of them.
//
// +kubebuilder:rbac:groups=work.open-cluster-management.io,resources=manifestworkreplicasets,verbs=list;watch;create
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions,verbs=create;delete
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions/status,verbs=patch

// errCollected is an object whose Placement was replaced: the garbage collector deletes it.
var errCollected = errors.New("it belongs to an earlier Placement, and is about to be deleted")

// ReasonReplicaSetIgnored is a ManifestWorkReplicaSet that has not created the work of the cluster within
// ReplicaSetLimit.
const ReasonReplicaSetIgnored = "ReplicaSetIgnored"

// ReplicaSetLimit is how long the creation of a work by a ManifestWorkReplicaSet may take. After that, the
// step of the action is slow.
const ReplicaSetLimit = time.Minute

// list has the ManifestWorkReplicaSet of an action create the work of the cluster.
func (c *Cluster) list(ctx context.Context, desired *workv1.ManifestWork) (engine.Result, error) {
	err := c.writeDecision(ctx, desired)
	switch {
	case errors.Is(err, errCollected), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return engine.WaitFor(retryAfter, reasonConflict, "ManifestWorkReplicaSet %s is being replaced", desired.Name), nil
	case err != nil:
		return engine.Result{}, fmt.Errorf("delivering by ManifestWorkReplicaSet %s: %w", desired.Name, err)
	}
	return engine.Wait(reasonListed, "waiting until ManifestWorkReplicaSet %s creates the ManifestWork", desired.Name), nil
}

// awaitReplicaSet waits until the set of an action creates the work of the cluster, and tells what is wrong
// if it does not.
func (c *Cluster) awaitReplicaSet(ctx context.Context, action string, now time.Time, wait engine.Result) (engine.Result, error) {
	decision, err := c.decision(ctx, action)
	if err != nil {
		return engine.Result{}, err
	}
	left := ReplicaSetLimit
	if decision != nil { // which the cache has
		left -= now.Sub(decision.CreationTimestamp.Time)
	}
	if left > 0 {
		return engine.WaitFor(left, wait.Reason(), "%s", wait.Message()), nil
	}
	return engine.Wait(ReasonReplicaSetIgnored, "not delivered by ManifestWorkReplicaSet %s within %s: see whether the work manager of the hub runs with the feature gate "+
		"ManifestWorkReplicaSet; if it must not, remove the flag --action-replica-sets of this program", action, ReplicaSetLimit), nil
}

// writeDecision lists the cluster for an action. The Placement and the set are created when they are needed
// first, and again if they were deleted meanwhile.
func (c *Cluster) writeDecision(ctx context.Context, desired *workv1.ManifestWork) error {
	upgrade, err := c.upgrade(ctx)
	if err != nil {
		return err
	}
	placement, err := ensure(ctx, c.Client, delivery.ActionPlacement(upgrade, desired.Name), &ocmv1beta1.Placement{}, upgrade)
	if err != nil {
		return err
	}
	if _, err := ensure(ctx, c.Client, delivery.ActionReplicaSet(placement, desired), &workv1alpha1.ManifestWorkReplicaSet{}, placement); err != nil {
		return err
	}
	decision, err := ensure(ctx, c.Client, delivery.ActionDecision(placement, desired), &ocmv1beta1.PlacementDecision{}, placement)
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

// ensure reads an object that has an owner into existing, or creates it as desired there. The error is
// errCollected if the object is being deleted, or will be because its owner was replaced.
func ensure[T client.Object](ctx context.Context, c client.Client, desired, existing T, owner client.Object) (T, error) {
	err := c.Get(ctx, client.ObjectKeyFromObject(desired), existing)
	switch {
	case apierrors.IsNotFound(err):
		if err := c.Create(ctx, desired); err != nil {
			return existing, fmt.Errorf("creating %s: %w", desired.GetName(), err)
		}
		return desired, nil
	case err != nil:
		return existing, fmt.Errorf("getting %s: %w", desired.GetName(), err)
	case !existing.GetDeletionTimestamp().IsZero() || !metav1.IsControlledBy(existing, owner):
		return existing, errCollected
	}
	return existing, nil
}

// decision returns the PlacementDecision that lists the cluster for an action; nil means that none does.
func (c *Cluster) decision(ctx context.Context, action string) (*ocmv1beta1.PlacementDecision, error) {
	key := client.ObjectKey{Namespace: c.Run.Spec.ManagedClustersUpgrade.Namespace, Name: delivery.ActionDecisionName(action, c.Run.Namespace)}
	var decision ocmv1beta1.PlacementDecision
	err := c.Client.Get(ctx, key, &decision)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting PlacementDecision %s: %w", key, err)
	}
	return &decision, nil
}

// identify annotates the work of a set, in memory, with what it delivers. The work manager would remove such
// an annotation.
func (c *Cluster) identify(ctx context.Context, work *workv1.ManifestWork) error {
	decision, err := c.decision(ctx, work.Name)
	if err != nil || decision == nil || !decision.DeletionTimestamp.IsZero() {
		return err
	}
	if work.Annotations == nil {
		work.Annotations = map[string]string{}
	}
	work.Annotations[delivery.Annotation] = decision.Annotations[delivery.Annotation]
	return nil
}

// unlist has the set delete the work of the cluster.
func (c *Cluster) unlist(ctx context.Context, action string) error {
	decision, err := c.decision(ctx, action)
	if err != nil || decision == nil || !decision.DeletionTimestamp.IsZero() {
		return err
	}
	if err := client.IgnoreNotFound(c.Client.Delete(ctx, decision, client.Preconditions{UID: &decision.UID})); err != nil {
		return fmt.Errorf("deleting PlacementDecision %s/%s: %w", decision.Namespace, decision.Name, err)
	}
	return nil
}

// UnlistActions has the sets of the actions delete the works of the cluster.
func (c *Cluster) UnlistActions(ctx context.Context) error {
	uid := c.Run.Spec.ManagedClustersUpgrade.UID
	return errors.Join(c.unlist(ctx, delivery.ActionName(uid, delivery.PreUpgrade)), c.unlist(ctx, delivery.ActionName(uid, delivery.PostUpgrade)))
}

// removeReplicaSet deletes the Placement of an action, if it has one, with the set and its works on all
// clusters, which the Placement owns.
func (c *Cluster) removeReplicaSet(ctx context.Context, action string) error {
	var placement ocmv1beta1.Placement
	key := client.ObjectKey{Namespace: c.Run.Spec.ManagedClustersUpgrade.Namespace, Name: action}
	err := c.Client.Get(ctx, key, &placement)
	if err == nil && placement.DeletionTimestamp.IsZero() {
		err = c.Client.Delete(ctx, &placement, client.Preconditions{UID: &placement.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Placement %s: %w", key, err)
	}
	return nil
}

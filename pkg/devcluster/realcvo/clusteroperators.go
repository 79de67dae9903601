// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realcvo

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/stage"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
)

// defaultUpdateDuration is how long a simulated operator takes to reach a new version.
const defaultUpdateDuration = timescale.Duration(3 * time.Minute)

const imagesSuffix = "-operator-images"

// releaseConfigMap returns the name of the ConfigMap with the images of an operator.
func releaseConfigMap(operator string) client.ObjectKey {
	return client.ObjectKey{Namespace: "openshift-" + operator + "-operator", Name: operator + imagesSuffix}
}

// clusterOperators simulates the operators. Only its reconciler accesses it, so it needs no lock.
type clusterOperators struct {
	client    client.Client
	speed     timescale.Speed
	durations map[string]timescale.Duration // by operator
	rollouts  map[string]rollout            // by operator
}

// rollout is the version that an operator is updating to and the time when it started.
type rollout struct {
	version string
	since   time.Time
}

// addClusterOperators adds a simulator for the operators that no other component simulates.
func addClusterOperators(mgr manager.Manager, options Options) error {
	c := &clusterOperators{client: mgr.GetClient(), speed: options.Speed, durations: map[string]timescale.Duration{}, rollouts: map[string]rollout{}}
	for _, operator := range options.Operators {
		if !operator.External {
			c.durations[operator.Name] = cmp.Or(operator.Takes, defaultUpdateDuration)
		}
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("cluster-operators").
		For(&configv1.ClusterOperator{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(mapImagesToOperator)).
		WithOptions(stage.Options(1, 50*time.Millisecond)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("playing the cluster operators: %w", err)
	}
	return nil
}

func mapImagesToOperator(_ context.Context, object client.Object) []reconcile.Request {
	operator, found := strings.CutSuffix(object.GetName(), imagesSuffix)
	if !found {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: operator}}}
}

// Reconcile updates an operator to the version in its ConfigMap and reports the version that it has
// reached. It leaves other conditions alone, because a test may have changed them.
func (c *clusterOperators) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	duration, simulated := c.durations[request.Name]
	var operator configv1.ClusterOperator
	if err := c.client.Get(ctx, request.NamespacedName, &operator); !simulated || err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var images corev1.ConfigMap
	if err := c.client.Get(ctx, releaseConfigMap(request.Name), &images); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now, desired := time.Now(), images.Data[cvo.ReleaseVersionKey]
	if desired == cvo.VersionOf(&operator) {
		return reconcile.Result{}, nil
	}
	if c.rollouts[request.Name].version != desired {
		c.rollouts[request.Name] = rollout{version: desired, since: now}
	}
	before := operator.DeepCopy()
	remaining := c.speed.Scale(duration) - now.Sub(c.rollouts[request.Name].since)
	if remaining > 0 {
		cvo.SetCondition(&operator, configv1.OperatorProgressing, configv1.ConditionTrue, "Updating", "Working towards "+desired, now)
	} else {
		cvo.SetVersion(&operator, desired)
		cvo.SetCondition(&operator, configv1.OperatorProgressing, configv1.ConditionFalse, "AsExpected", "", now)
	}
	if err := c.client.Status().Patch(ctx, &operator, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return reconcile.Result{}, fmt.Errorf("patching the status of cluster operator %s: %w", operator.Name, err)
	}
	return reconcile.Result{RequeueAfter: max(remaining, 0)}, nil
}

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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/pace"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/stage"
)

// operatorTakes is how long a real operator takes to reach a new version.
const operatorTakes = pace.Duration(3 * time.Minute)

const imagesSuffix = "-operator-images"

// handedIn is the ConfigMap by which an operator learns of a release.
func handedIn(operator string) client.ObjectKey {
	return client.ObjectKey{Namespace: "openshift-" + operator + "-operator", Name: operator + imagesSuffix}
}

// clusterOperators play the operators. Only their reconciler touches them.
type clusterOperators struct {
	client client.Client
	speed  pace.Speed
	takes  map[string]pace.Duration // by the operator's name
	since  map[string]handed        // by the operator's name
}

// handed is what an operator works towards, and since when.
type handed struct {
	version string
	since   time.Time
}

// addClusterOperators has the manager play the operators that nobody else plays.
func addClusterOperators(mgr manager.Manager, options Options) error {
	c := &clusterOperators{client: mgr.GetClient(), speed: options.Speed, takes: map[string]pace.Duration{}, since: map[string]handed{}}
	for _, operator := range options.Operators {
		if !operator.Elsewhere {
			c.takes[operator.Name] = cmp.Or(operator.Takes, operatorTakes)
		}
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("cluster-operators").
		For(&configv1.ClusterOperator{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(whoseImages)).
		WithOptions(stage.Options(1, 50*time.Millisecond)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("playing the cluster operators: %w", err)
	}
	return nil
}

func whoseImages(_ context.Context, object client.Object) []reconcile.Request {
	operator, are := strings.CutSuffix(object.GetName(), imagesSuffix)
	if !are {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: operator}}}
}

// Reconcile leads an operator to the version that it was handed, and reports what it has reached. Its other conditions
// are left as they are: somebody may have made it degraded.
func (c *clusterOperators) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	takes, ours := c.takes[request.Name]
	var operator configv1.ClusterOperator
	if err := c.client.Get(ctx, request.NamespacedName, &operator); !ours || err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var images corev1.ConfigMap
	if err := c.client.Get(ctx, handedIn(request.Name), &images); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now, wanted := time.Now(), images.Data[cvo.ReleaseVersionKey]
	if wanted == cvo.VersionOf(&operator) {
		return reconcile.Result{}, nil
	}
	if c.since[request.Name].version != wanted {
		c.since[request.Name] = handed{version: wanted, since: now}
	}
	before := operator.DeepCopy()
	rest := c.speed.Of(takes) - now.Sub(c.since[request.Name].since)
	if rest > 0 {
		cvo.SetCondition(&operator, configv1.OperatorProgressing, configv1.ConditionTrue, "Updating", "Working towards "+wanted, now)
	} else {
		cvo.SetVersion(&operator, wanted)
		cvo.SetCondition(&operator, configv1.OperatorProgressing, configv1.ConditionFalse, "AsExpected", "", now)
	}
	if err := c.client.Status().Patch(ctx, &operator, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return reconcile.Result{}, fmt.Errorf("patching the status of cluster operator %s: %w", operator.Name, err)
	}
	return reconcile.Result{RequeueAfter: max(rest, 0)}, nil
}
